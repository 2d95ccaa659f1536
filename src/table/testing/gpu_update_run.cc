// SPDX-License-Identifier: Apache-2.0
#include "table/testing/gpu_update_run.h"

#include <cstring>
#include <list>
#include <utility>

#include "device/gpu/testing/test_gpu.h"
#include "kernels/row_update/gpu_update_arguments.h"
#include "kernels/testing/random_bags.h"
#include "table/gpu/gpu_rows.h"
#include "table/optimizers/row_formulas.h"
#include "table/table_update.h"

namespace recmill::table {
namespace {

namespace gpu = kernels::gpu;
using recmill::testing::TestArrays;

static_assert(sizeof(gpu::Source) == sizeof(LookupSource));
static_assert(sizeof(gpu::Gradients) == sizeof(kernels::GradientRows));

constexpr int64_t kRows = 50, kSamples = 64;

/// What a kernel is given of a case, in the GPU's memory.
gpu::UpdateTable put_arguments(const GpuUpdateCase& of, const GpuRows& rows,
                               const GpuUpdateLookups& lookups, const RowStep& step,
                               TestArrays& arrays) {
  const DistinctRows& distinct = lookups.distinct;
  std::vector<gpu::Gradients> gradients;
  for (const auto& values : lookups.values) gradients.push_back({arrays.put(values), of.spec.dim});
  gpu::UpdateTable table = {};
  table.records = rows.records();
  table.row_state = rows.row_state();
  std::vector<int64_t> slots = distinct.rows;
  if (const kernels::NearRows* const near = rows.near(); near != nullptr) {
    for (int64_t& slot : slots) slot = near->slot(slot);
    table.row_of_slot = rows.row_of_near_slot();
    table.far_records = rows.far_records();
    table.far_row_state = rows.far_row_state();
    table.near = near->near();
  }
  table.slots = arrays.put(slots);
  table.found = {arrays.put(distinct.rows),
                 arrays.put(distinct.begins),
                 reinterpret_cast<const gpu::Source*>(arrays.put(distinct.sources)),
                 distinct.weights.empty() ? nullptr : arrays.put(distinct.weights),
                 distinct.counts.empty() ? nullptr : arrays.put(distinct.counts),
                 arrays.put(std::vector{distinct.count()})};
  table.gradients = arrays.put(gradients);
  table.slices = static_cast<u64>(of.slices);
  table.rounding_key = rounding_of(of.on_gpu, step).key();
  table.long_row = of.is_wide() ? 0 : kLongRowOfTests;
  table.l2 = l2_of_gradients(of.spec.optimizer);
  const auto bytes = formula_bytes(of.spec.optimizer, step);
  std::memcpy(table.formula, bytes.data(), bytes.size());
  return table;
}

/// Those of a case, where the GPU has them.
GpuRows rows_of(const GpuUpdateCase& of, Gpu& on) {
  if (of.spec.name != kTwoMemories) return *GpuRows::allocate(of.on_gpu, on);
  const std::vector<int64_t> near{0, 1, 2, 11, 30, kRows - 1};
  return *GpuRows::allocate(of.on_gpu, on, GpuMemory::host,
                            std::make_shared<const kernels::NearRows>(kRows, near));
}

/// Two launches of a kernel, for rows of the tables that are its own.
Status launch(Gpu& on, const KernelCode& code, const gpu::UpdateTable* tables,
              const std::vector<gpu::UpdateBlock>& blocks, TestArrays& arrays, GpuStream& stream) {
  RECMILL_ASSIGN_OR_RETURN(const auto kernel, on.load(code));
  gpu::UpdateArguments all{tables, arrays.put(blocks), std::ssize(blocks), {}, nullptr, 0};
  const int64_t room = std::ssize(blocks) * kRows;
  all.listed = {arrays.put(std::vector<gpu::ListedRow>(room + all.block_count)), room};
  all.progress = arrays.put(std::vector<gpu::UpdateProgress>(1));
  for (all.is_listing = 1; all.is_listing >= 0; --all.is_listing)
    RECMILL_RETURN_IF_ERROR(on.launch(kernel, {{7}, {gpu::kUpdateThreads}}, all, stream));
  return {};
}

}  // namespace

GpuUpdateCase::GpuUpdateCase(TableSpec of, int slices_of, uint64_t number)
    : spec(std::move(of)),
      slices(slices_of),
      weighted((number / 2 + 1) % 4 >= 2),
      mean(number / 2 % 2 == 1),
      hot(number % 2 == 0),
      plain(EmbeddingTable::without_rows(spec, 42, RowShare(kRows, 0, 1))),
      on_gpu(EmbeddingTable::without_rows(spec, 42, RowShare(kRows, 0, 1))) {
  ThreadPool pool(1);
  for (EmbeddingTable* table : {&plain, &on_gpu}) {
    RECMILL_CHECK(table->allocate(nullptr).ok());
    table->fill(pool);
  }
}

bool GpuUpdateCase::is_same() const {
  const kernels::RowStorage &a = plain.rows(), &b = on_gpu.rows();
  return std::memcmp(a.data, b.data, a.count * a.stride) == 0 &&
         (a.row_state == nullptr ||
          std::memcmp(a.row_state, b.row_state, a.count * sizeof(float)) == 0);
}

GpuUpdateLookups::GpuUpdateLookups(const GpuUpdateCase& of, uint64_t seed) {
  std::vector<kernels::FeatureBags> bags;
  for (int f = 0; f < 2; ++f) {
    features.push_back(kernels::random_bags(
        {kSamples, 3, kRows, of.weighted && f == 1, of.hot ? 2 : 5}, seed + f));
    values.push_back(kernels::random_floats(kSamples * of.spec.dim, seed + 10 + f));
  }
  for (int f = 0; f < 2; ++f) {
    bags.push_back({features[f].view(kSamples), of.mean && f == 1 ? Pooling::mean : Pooling::sum});
    gradients.push_back({values[f].data(), of.spec.dim});
  }
  kernels::distinct_rows_reference({kRows, bags}, {0, kernels::slice_begins(kSamples, of.slices)},
                                   distinct);
}

Status update_on_gpu(std::vector<GpuUpdateCase>& cases, std::span<const GpuUpdateSource> sources,
                     std::span<const KernelCode> kernels, const RowStep& step,
                     const emulation::Turns& turns) {
  Gpu on(recmill::testing::test_driver({.turns = turns}), {});
  GpuStream stream = *on.open_stream();
  TestArrays arrays(on, stream);
  auto staging = *on.allocate_pinned(1 << 20, "rows");
  std::list<GpuUpdateLookups> lookups;
  std::vector<GpuRows> rows;
  std::vector<gpu::UpdateTable> tables;
  std::vector<std::vector<gpu::UpdateBlock>> blocks(sources.size());
  for (GpuUpdateCase& of : cases) {
    lookups.emplace_back(of, 100 * step.iteration + tables.size());
    rows.push_back(rows_of(of, on));
    RECMILL_RETURN_IF_ERROR(rows.back().upload(of.on_gpu, staging, stream));
    tables.push_back(put_arguments(of, rows.back(), lookups.back(), step, arrays));
    const GpuUpdateFunction function = gpu_update_function(of.spec);
    for (size_t s = 0; s < sources.size(); ++s) {
      const auto place = std::ranges::find(sources[s].functions, function);
      if (place == sources[s].functions.end()) continue;
      tables.back().schedule = place - sources[s].functions.begin();
      // As many blocks as there may be rows, of which some find none.
      for (int64_t part = 0; part < 2; ++part)
        blocks[s].push_back({static_cast<i32>(tables.size()) - 1, static_cast<i32>(part)});
    }
    const TableUpdate plain{&of.plain, &lookups.back().distinct, lookups.back().gradients,
                            of.slices};
    update_tables_reference({&plain, 1}, step);
  }
  const auto* const there = arrays.put(tables);
  for (size_t s = 0; s < sources.size(); ++s)
    RECMILL_RETURN_IF_ERROR(launch(on, kernels[s], there, blocks[s], arrays, stream));
  for (size_t c = 0; c < cases.size(); ++c)
    RECMILL_RETURN_IF_ERROR(rows[c].download(cases[c].on_gpu, staging, stream));
  return {};
}

}  // namespace recmill::table
