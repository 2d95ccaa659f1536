// SPDX-License-Identifier: Apache-2.0
#include "kernels/codegen/testing/gpu_pool_run.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "kernels/codegen/testing/test_code.h"
#include "kernels/embedding_pool/embedding_pool.h"
#include "kernels/embedding_pool/gpu_templates.h"
#include "kernels/near_rows/near_rows.h"
#include "kernels/row_values.h"
#include "kernels/testing/random_bags.h"

namespace recmill::kernels::codegen {
namespace {

using recmill::testing::TestArrays;

constexpr int64_t kRows = 61;
constexpr float kNobody = std::numeric_limits<float>::quiet_NaN();

/// A feature of one function: its table, its bags and what comes out. Every array is as large as
/// what may be touched of it.
class Feature {
 public:
  Feature(const PoolFunction& of, const GpuPoolRun& run, uint64_t number, TestArrays& arrays)
      : of_(of),
        kernel_(*find_gpu_pool_kernel(of.schedule)),
        bags_(random_bags({run.samples, run.longest, kRows, of.weighted}, run.seed * 100 + number)),
        table_(new (std::align_val_t(64)) std::byte[kRows * of.row_bytes]) {
    rows_ = {table_.get(), kRows, of.row_bytes, of.dim};
    rows_.precision = of.precision;
    const auto values = random_floats(kRows * of.dim, 5 + number);
    for (int64_t i = 0; i < kRows * of.dim; ++i)
      set_weight(rows_, i / of.dim, i % of.dim, values[i]);
    bags_view_ = bags_.view(run.samples);
    stride_ = of.dim + static_cast<int64_t>(number % 2) * 3;  // a gap that nobody may write
    const int64_t rows = of.pooling == Pooling::none ? bags_view_.lookups() : bags_view_.samples;
    expected_.assign(rows == 0 ? 0 : (rows - 1) * stride_ + of.dim, kNobody);
    output_ = arrays.put(expected_);
    put_arguments(run, arrays);
    embedding_pool_reference({bags_view_, rows_, of.pooling, expected_.data(), stride_});
  }

  gpu::PoolFeature arguments(int64_t schedule) {
    arguments_.schedule = schedule;
    return arguments_;
  }
  gpu::PoolOutput output() { return {output_, stride_}; }
  void add_blocks(int32_t feature, std::vector<gpu::PoolBlock>& blocks) const {
    map_gpu_blocks(bags_view_, kernel_.of->parts(kernel_.values), feature, blocks);
  }

  std::string difference(TestArrays& arrays) const {
    const bool exact = kernel_.of->order == Order::contract;
    const auto found = arrays.get(output_);
    for (size_t i = 0; i < found.size(); ++i) {
      const bool same = exact ? std::memcmp(&found[i], &expected_[i], sizeof(float)) == 0
                              : is_near(found[i], expected_[i]);
      if (!same)
        return fmt::format("{}: row {}, element {}: {} in place of {}", of_.name(),
                           i / static_cast<size_t>(stride_), i % static_cast<size_t>(stride_),
                           found[i], expected_[i]);
    }
    for (const u32 arrived : arrays.get(arguments_.arrivals))
      if (arrived != 0) return of_.name() + ": counts of arrivals are left behind";
    return "";
  }

 private:
  void put_arguments(const GpuPoolRun& run, TestArrays& arrays) {
    const int64_t lookups = bags_view_.lookups();
    const bool pieces = kernel_.of->parts(kernel_.values).piece > 0;
    arguments_.offsets = arrays.put(bags_.offsets);
    arguments_.lookups = arrays.put(of_.two_memories ? slots() : bags_.rows);
    arguments_.weights = bags_.weights.empty() ? nullptr : arrays.put(bags_.weights);
    const std::span rows(reinterpret_cast<const u8*>(table_.get()),
                         static_cast<size_t>(kRows * of_.row_bytes));
    arguments_.rows =
        arrays.put(of_.two_memories ? near_rows() : std::vector(rows.begin(), rows.end()));
    if (of_.two_memories) arguments_.far = arrays.put(rows);
    arguments_.near = near_.near();
    arguments_.samples = run.samples;
    arguments_.run_sums =
        arrays.put(std::vector<float>(pieces ? (lookups / gpu::kRun + run.samples) * of_.dim : 0));
    arguments_.arrivals = arrays.put(std::vector<u32>(pieces ? run.samples : 0));
  }
  std::vector<int64_t> slots() const {
    std::vector<int64_t> slots;
    for (const int64_t row : bags_.rows) slots.push_back(near_.slot(row));
    return slots;
  }
  std::vector<u8> near_rows() const {
    std::vector<u8> bytes;
    for (const int64_t row : near_.near_rows()) {
      const auto* const from = reinterpret_cast<const u8*>(table_.get()) + row * of_.row_bytes;
      bytes.insert(bytes.end(), from, from + of_.row_bytes);
    }
    return bytes;
  }
  static bool is_near(float found, float expected) {
    if (std::isnan(found) || std::isnan(expected)) return std::isnan(found) == std::isnan(expected);
    return std::fabs(found - expected) <= 1e-5f * (1.0f + std::fabs(expected)) * 10.0f;
  }
  struct Free {
    void operator()(std::byte* data) const { operator delete[](data, std::align_val_t(64)); }
  };

  const PoolFunction of_;
  const GpuPoolKernel kernel_;
  SparseFeature bags_;
  JaggedView bags_view_;
  std::unique_ptr<std::byte[], Free> table_;
  RowStorage rows_;
  const NearRows near_{kRows, {0, 1, 5, 17, 18, 40, kRows - 1}};  // where there are two memories
  int64_t stride_ = 0;
  std::vector<float> expected_;
  float* output_ = nullptr;  // of the GPU
  gpu::PoolFeature arguments_ = {};
};

}  // namespace

std::string difference_from_reference(const GpuPoolSource& source, EmulatedEntry entry,
                                      const GpuPoolRun& run) {
  emulation::Turns turns = run.turns;
  turns.count_lanes = run.timed;  // a block's clock on the emulator
  Gpu gpu(recmill::testing::test_driver({.turns = turns}), {});
  GpuStream stream = *gpu.open_stream();
  TestArrays arrays(gpu, stream);
  std::vector<std::unique_ptr<Feature>> features;
  std::vector<gpu::PoolFeature> arguments;
  std::vector<gpu::PoolOutput> outputs;
  std::vector<gpu::PoolBlock> blocks;
  for (size_t f = 0; f < source.functions.size(); ++f) {
    features.push_back(std::make_unique<Feature>(source.functions[f], run, f, arrays));
    arguments.push_back(features.back()->arguments(static_cast<int64_t>(f)));
    outputs.push_back(features.back()->output());
    features.back()->add_blocks(static_cast<int32_t>(f), blocks);
  }
  if (blocks.empty()) return "";
  std::vector<i64> begins{0};  // of blocks of the grid that have some each
  while (begins.back() < std::ssize(blocks))
    begins.push_back(std::min(begins.back() + std::ssize(begins), std::ssize(blocks)));
  const auto kernel = gpu.load(test_code(source, entry));
  if (!kernel.ok()) return kernel.status().message();
  i64* const clocks = run.timed ? arrays.put(std::vector<i64>(blocks.size())) : nullptr;
  const gpu::PoolArguments all{arrays.put(arguments), arrays.put(outputs), arrays.put(blocks),
                               arrays.put(begins), clocks};
  const size_t of_grid = source.listed ? begins.size() - 1 : blocks.size();
  const Grid grid{{static_cast<unsigned>(of_grid)}, {gpu::kBlockThreads}};
  Status status = gpu.launch(*kernel, grid, all, stream);
  if (status.ok()) status = stream.synchronize();
  if (!status.ok()) return status.message();
  for (const auto& feature : features) {
    std::string difference = feature->difference(arrays);
    if (!difference.empty()) return difference;
  }
  if (run.timed)
    for (const i64 clock : arrays.get(clocks))
      if (clock <= 0) return "a block took no time";
  return "";
}

}  // namespace recmill::kernels::codegen
