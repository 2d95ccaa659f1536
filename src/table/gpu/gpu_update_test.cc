// SPDX-License-Identifier: Apache-2.0
// Row updates of GPUs: the bits of update_tables_reference().
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "kernels/codegen/testing/test_code.h"
#include "kernels/row_update/gpu_update_arguments.h"
#include "table/testing/gpu_update_run.h"

namespace recmill::table {
namespace {

namespace gpu = kernels::gpu;

/// Each table twice: with a hot row, and without.
std::vector<GpuUpdateCase> all_cases() {
  std::vector<GpuUpdateCase> cases;
  for (const TableSpec& spec : gpu_update_specs())
    for (int of_table = 0; of_table < 2; ++of_table)
      cases.emplace_back(spec, 1 << cases.size() % 5, cases.size());
  return cases;
}

/// Whether a row has more lookups than `more` and not more than `most`.
bool has_row_between(const DistinctRows& distinct, int64_t more, int64_t most) {
  for (int64_t i = 0; i < distinct.count(); ++i) {
    const int64_t lookups = distinct.begins[i + 1] - distinct.begins[i];
    if (lookups > more && lookups <= most) return true;
  }
  return false;
}

/// What cases are of and have in the first iteration, in words.
std::set<std::string> traits_of(const std::vector<GpuUpdateCase>& cases) {
  std::set<std::string> traits;
  for (size_t c = 0; c < cases.size(); ++c) {
    const GpuUpdateCase& of = cases[c];
    const DistinctRows distinct = GpuUpdateLookups(of, c).distinct;
    const std::string precision(name_of(of.spec.precision));
    const std::string both = std::string(name_of(of.spec.optimizer.kind)) + " " + precision;
    traits.insert(both + (of.mean ? " mean" : " sum"));
    traits.insert(precision + (of.weighted ? " weighted" : " not weighted"));
    if (of.is_wide()) {
      traits.insert(both + " wide");
      continue;
    }
    if (has_row_between(distinct, 0, 1)) traits.insert(both + " once");
    if (has_row_between(distinct, 1, gpu::kListedRow)) traits.insert(both + " few");
    if (has_row_between(distinct, gpu::kListedRow, kLongRowOfTests))
      traits.insert(both + " listed");
    if (has_row_between(distinct, kLongRowOfTests, 1 << 20)) traits.insert(both + " long");
  }
  return traits;
}

TEST(GpuUpdate, IsTestedInEveryWayWithEveryOptimizerAndPrecision) {
  const std::set<std::string> traits = traits_of(all_cases());
  const auto expect = [&](const std::string& trait) {
    EXPECT_TRUE(traits.contains(trait)) << trait;
  };
  for (const auto& [precision, of_precision] : EnumNames<RowPrecision>::names) {
    for (const auto& [kind, of_kind] : EnumNames<OptimizerKind>::names)
      for (const char* trait : {"mean", "sum", "once", "few", "listed", "long"})
        expect(std::string(of_kind) + " " + std::string(of_precision) + " " + trait);
    for (const char* trait : {"weighted", "not weighted"})
      expect(std::string(of_precision) + " " + trait);
  }
  for (const char* precision : {"float32", "float16"})
    expect("rowwise_adagrad " + std::string(precision) + " wide");
}

TEST(GpuUpdate, HasTheReferencesBitsWithEveryOptimizerPrecisionAndOrder) {
  std::vector<GpuUpdateCase> cases = all_cases();
  const auto sources = gpu_update_samples();
  const auto codes = kernels::codegen::test_codes(
      std::vector<kernels::codegen::GpuSource>(sources.begin(), sources.end()), kGpuUpdateEntries);
  const emulation::Turns orders[] = {
      {emulation::Order::forward}, {emulation::Order::reverse}, {emulation::Order::random, 5}};
  for (int64_t iteration = 0; iteration < 3; ++iteration) {
    const Status status = update_on_gpu(cases, sources, codes, {iteration, 0.5}, orders[iteration]);
    ASSERT_TRUE(status.ok()) << status.message();
    for (const GpuUpdateCase& of : cases)
      ASSERT_TRUE(of.is_same()) << name_of(of.spec.optimizer.kind) << " "
                                << name_of(of.spec.precision) << " dim " << of.spec.dim
                                << " slices " << of.slices << " hot " << of.hot << " iteration "
                                << iteration;
  }
}

TEST(GpuUpdate, AtLearningRate0HasTheReferencesBits) {
  std::vector<GpuUpdateCase> cases = all_cases();
  for (GpuUpdateCase& of : cases) {
    std::vector<float> weights(of.spec.rows * of.spec.dim, -0.0f);
    for (EmbeddingTable* table : {&of.plain, &of.on_gpu})
      table->write(0, of.spec.rows, weights, {});
  }
  const auto sources = gpu_update_samples();
  const auto codes = kernels::codegen::test_codes(
      std::vector<kernels::codegen::GpuSource>(sources.begin(), sources.end()), kGpuUpdateEntries);
  const Status status = update_on_gpu(cases, sources, codes, {0, 0.0}, {emulation::Order::forward});
  ASSERT_TRUE(status.ok()) << status.message();
  for (const GpuUpdateCase& of : cases) {
    ASSERT_TRUE(of.is_same()) << name_of(of.spec.optimizer.kind) << " dim " << of.spec.dim;
    std::vector<float> weights(of.spec.rows * of.spec.dim);
    of.on_gpu.read(0, of.spec.rows, weights, {});
    for (const float weight : weights)
      ASSERT_TRUE(weight == 0.0f && std::signbit(weight)) << name_of(of.spec.optimizer.kind);
  }
}

}  // namespace
}  // namespace recmill::table
