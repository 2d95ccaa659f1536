// SPDX-License-Identifier: Apache-2.0
// Row updates of GPUs on the emulator: the bits of update_tables_reference().
#include <gtest/gtest.h>

#include <cstring>
#include <list>

#include "device/emulation/emulator.h"
#include "kernels/row_update/gpu_update_arguments.h"
#include "kernels/testing/random_bags.h"
#include "table/table_update.h"
#include "table/testing/gpu_update_samples.h"

namespace recmill::table {
namespace {

namespace gpu = kernels::gpu;

static_assert(sizeof(gpu::Source) == sizeof(LookupSource));
static_assert(sizeof(gpu::Gradients) == sizeof(kernels::GradientRows));

constexpr int64_t kRows = 50, kSamples = 64;

/// A table that is updated twice: by the reference and by the kernel.
struct Case {
  TableSpec spec;
  int shards = 1;
  bool weighted = false, mean = false;
  EmbeddingTable plain, on_gpu;

  Case(TableSpec of, int shards_of, uint64_t number)
      : spec(std::move(of)),
        shards(shards_of),
        weighted(number % 2 == 1),
        mean(number % 3 == 1),
        plain(EmbeddingTable::without_rows(spec, 42, RowShare(kRows, 0, 1))),
        on_gpu(EmbeddingTable::without_rows(spec, 42, RowShare(kRows, 0, 1))) {
    Pool pool(1);
    for (EmbeddingTable* table : {&plain, &on_gpu}) {
      RECMILL_CHECK(table->allocate(nullptr).ok());
      table->fill(pool);
    }
  }
  bool is_same() const {
    const kernels::RowStorage &a = plain.rows(), &b = on_gpu.rows();
    return std::memcmp(a.data, b.data, a.count * a.stride) == 0 &&
           (a.row_state == nullptr ||
            std::memcmp(a.row_state, b.row_state, a.count * sizeof(float)) == 0);
  }
};

/// What one iteration looks up of a case's table, and gradients.
struct Lookups {
  std::vector<SparseFeature> features;
  std::vector<std::vector<float>> values;
  std::vector<kernels::GradientRows> gradients;
  DistinctRows distinct;
  int64_t count = 0;  // of distinct

  Lookups(const Case& of, uint64_t seed) {
    std::vector<kernels::FeatureBags> bags;
    for (int f = 0; f < 2; ++f) {
      features.push_back(
          kernels::random_bags({kSamples, 3, kRows, of.weighted && f == 1, 3}, seed + f));
      values.push_back(kernels::random_floats(kSamples * of.spec.dim, seed + 10 + f));
    }
    for (int f = 0; f < 2; ++f) {
      bags.push_back(
          {features[f].view(kSamples), of.mean && f == 1 ? Pooling::mean : Pooling::sum});
      gradients.push_back({values[f].data(), of.spec.dim});
    }
    kernels::distinct_rows_reference({kRows, bags}, {0, kernels::shard_begins(kSamples, of.shards)},
                                     distinct);
    count = distinct.count();
  }
};

gpu::UpdateTable arguments(Case& of, const Lookups& lookups, const RowStep& step,
                           int64_t schedule) {
  const DistinctRows& distinct = lookups.distinct;
  gpu::UpdateTable table = {};
  table.records = reinterpret_cast<u8*>(of.on_gpu.rows().data);
  table.row_state = of.on_gpu.rows().row_state;
  table.slots = distinct.rows.data();
  table.found = {distinct.rows.data(),
                 distinct.begins.data(),
                 reinterpret_cast<const gpu::Source*>(distinct.sources.data()),
                 distinct.weights.empty() ? nullptr : distinct.weights.data(),
                 distinct.counts.empty() ? nullptr : distinct.counts.data(),
                 &lookups.count};
  table.gradients = reinterpret_cast<const gpu::Gradients*>(lookups.gradients.data());
  table.shards = static_cast<u64>(of.shards);
  table.rounding_key = rounding_of(of.on_gpu, step).key();
  table.schedule = schedule;
  const auto bytes = formula_bytes(of.spec.optimizer, step);
  std::memcpy(table.formula, bytes.data(), bytes.size());
  return table;
}

/// One iteration of all cases, whose functions are the source's.
Result<emulation::Usage> update(std::vector<Case>& cases, const GpuUpdateSource& source,
                                const RowStep& step, const emulation::Turns& turns) {
  std::list<Lookups> lookups;
  std::vector<gpu::UpdateTable> tables;
  std::vector<gpu::UpdateBlock> blocks;
  for (Case& of : cases) {
    lookups.emplace_back(of, 100 * step.iteration + tables.size());
    const auto place = std::ranges::find(source.functions, gpu_update_function(of.spec));
    tables.push_back(arguments(of, lookups.back(), step, place - source.functions.begin()));
    const int64_t rows = gpu::rows_of_update_block(static_cast<int>(of.spec.dim));
    // As many blocks as there may be rows, of which some find none.
    for (int64_t part = 0; part * rows < kRows; ++part)
      blocks.push_back({static_cast<i32>(tables.size()) - 1, static_cast<i32>(part)});
    const TableUpdate plain{&of.plain, &lookups.back().distinct, lookups.back().gradients,
                            of.shards};
    update_tables_reference({&plain, 1}, step);
  }
  const gpu::UpdateArguments all{tables.data(), blocks.data()};
  return emulation::run_kernel(
      source.entry.c_str(), {{static_cast<unsigned>(blocks.size())}, {gpu::kUpdateThreads}},
      [](const void* of) { gpu_update_entry(*static_cast<const gpu::UpdateArguments*>(of)); }, &all,
      turns);
}

TEST(GpuUpdate, HasTheReferencesBitsWithEveryOptimizerPrecisionAndOrder) {
  std::vector<Case> cases;
  for (const TableSpec& spec : gpu_update_specs())
    cases.emplace_back(spec, 1 << cases.size() % 5, cases.size());
  const GpuUpdateSource source = gpu_update_sample();
  const emulation::Turns orders[] = {
      {emulation::Order::forward}, {emulation::Order::reverse}, {emulation::Order::random, 5}};
  for (int64_t iteration = 0; iteration < 3; ++iteration) {
    const auto ran = update(cases, source, {iteration, 0.5}, orders[iteration]);
    ASSERT_TRUE(ran.ok()) << ran.status().message();
    for (const Case& of : cases)
      ASSERT_TRUE(of.is_same()) << name_of(of.spec.optimizer.kind) << " "
                                << name_of(of.spec.precision) << " dim " << of.spec.dim
                                << " shards " << of.shards << " iteration " << iteration;
  }
}

}  // namespace
}  // namespace recmill::table
