// SPDX-License-Identifier: Apache-2.0
// Row updates of GPUs: the bits of update_tables_reference().
#include <gtest/gtest.h>

#include "kernels/codegen/testing/test_code.h"
#include "kernels/row_update/gpu_update_arguments.h"
#include "table/testing/gpu_update_run.h"

namespace recmill::table {
namespace {

namespace gpu = kernels::gpu;

/// Whether a row has more lookups than `more` and not more than `most`.
bool has_row_between(const DistinctRows& distinct, int64_t more, int64_t most) {
  for (int64_t i = 0; i < distinct.count(); ++i) {
    const int64_t lookups = distinct.begins[i + 1] - distinct.begins[i];
    if (lookups > more && lookups <= most) return true;
  }
  return false;
}

TEST(GpuUpdate, IsTestedWithRowsOfWarpsAndRowsOfBlocks) {
  std::vector<GpuUpdateCase> cases;
  for (const TableSpec& spec : gpu_update_specs()) cases.emplace_back(spec, 8, cases.size());
  int64_t listed = 0, is_long = 0;
  for (const GpuUpdateCase& of : cases) {
    const GpuUpdateLookups lookups(of, 0);
    listed += has_row_between(lookups.distinct, gpu::kListedRow, kLongRowOfTests) ? 1 : 0;
    is_long += has_row_between(lookups.distinct, kLongRowOfTests, 1 << 20) ? 1 : 0;
  }
  EXPECT_GT(listed, 10);
  EXPECT_GT(is_long, 10);
}

TEST(GpuUpdate, HasTheReferencesBitsWithEveryOptimizerPrecisionAndOrder) {
  std::vector<GpuUpdateCase> cases;
  for (const TableSpec& spec : gpu_update_specs())
    cases.emplace_back(spec, 1 << cases.size() % 5, cases.size());
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
                                << " shards " << of.shards << " iteration " << iteration;
  }
}

}  // namespace
}  // namespace recmill::table
