// SPDX-License-Identifier: Apache-2.0
#include "kernels/codegen/testing/gpu_pool_run.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "kernels/embedding_pool/embedding_pool.h"
#include "kernels/embedding_pool/gpu_templates.h"
#include "kernels/row_values.h"
#include "kernels/testing/random_bags.h"

namespace recmill::kernels::codegen {
namespace {

constexpr int64_t kRows = 61;
constexpr float kNobody = std::numeric_limits<float>::quiet_NaN();

/// A feature of one function: its table, its bags and what comes out. Every array is as large as
/// what may be touched of it.
class Feature {
 public:
  Feature(const PoolFunction& of, const GpuPoolRun& run, uint64_t number)
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
    found_ = expected_;
    if (kernel_.of->parts(kernel_.values).piece > 0) {
      run_sums_.resize((bags_view_.lookups() / gpu::kRun + run.samples) * of.dim);
      arrivals_.resize(run.samples, 0);
    }
    embedding_pool_reference({bags_view_, rows_, of.pooling, expected_.data(), stride_});
  }

  gpu::PoolFeature arguments(int64_t schedule) {
    return {bags_view_.offsets, bags_view_.rows,  bags_view_.weights, data(),
            bags_view_.samples, run_sums_.data(), arrivals_.data(),   schedule};
  }
  gpu::PoolOutput output() { return {found_.data(), stride_}; }
  void add_blocks(int32_t feature, std::vector<gpu::PoolBlock>& blocks) const {
    map_gpu_blocks(bags_view_, kernel_.of->parts(kernel_.values), feature, blocks);
  }

  std::string difference() const {
    const bool exact = kernel_.of->order == Order::contract;
    for (size_t i = 0; i < found_.size(); ++i) {
      const bool same = exact ? std::memcmp(&found_[i], &expected_[i], sizeof(float)) == 0
                              : near(found_[i], expected_[i]);
      if (!same)
        return fmt::format("{}: row {}, element {}: {} in place of {}", of_.name(),
                           i / static_cast<size_t>(stride_), i % static_cast<size_t>(stride_),
                           found_[i], expected_[i]);
    }
    for (const u32 arrived : arrivals_)
      if (arrived != 0) return of_.name() + ": counts of arrivals are left behind";
    return "";
  }

 private:
  const u8* data() const { return reinterpret_cast<const u8*>(table_.get()); }
  static bool near(float found, float expected) {
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
  int64_t stride_ = 0;
  std::vector<float> expected_, found_, run_sums_;
  std::vector<u32> arrivals_;
};

}  // namespace

std::string difference_from_reference(const GpuPoolSource& source, GpuPoolEntry entry,
                                      const GpuPoolRun& run) {
  std::vector<std::unique_ptr<Feature>> features;
  std::vector<gpu::PoolFeature> arguments;
  std::vector<gpu::PoolOutput> outputs;
  std::vector<gpu::PoolBlock> blocks;
  for (size_t f = 0; f < source.functions.size(); ++f) {
    features.push_back(std::make_unique<Feature>(source.functions[f], run, f));
    arguments.push_back(features.back()->arguments(static_cast<int64_t>(f)));
    outputs.push_back(features.back()->output());
    features.back()->add_blocks(static_cast<int32_t>(f), blocks);
  }
  if (blocks.empty()) return "";
  struct Call {
    GpuPoolEntry entry;
    gpu::PoolArguments arguments;
  };
  std::vector<i64> begins{0};  // of blocks of the grid that have some each
  while (begins.back() < std::ssize(blocks))
    begins.push_back(std::min(begins.back() + std::ssize(begins), std::ssize(blocks)));
  const Call call{entry,
                  {arguments.data(), outputs.data(), blocks.data(), begins.data(), nullptr}};
  const size_t of_grid = source.listed ? begins.size() - 1 : blocks.size();
  const Grid grid{{static_cast<unsigned>(of_grid)}, {gpu::kBlockThreads}};
  const auto ran = emulation::run_kernel(
      source.entry.c_str(), grid,
      [](const void* of) {
        const auto& call = *static_cast<const Call*>(of);
        call.entry(call.arguments);
      },
      &call, run.turns);
  if (!ran.ok()) return ran.status().message();
  for (const auto& feature : features) {
    std::string difference = feature->difference();
    if (!difference.empty()) return difference;
  }
  return "";
}

}  // namespace recmill::kernels::codegen
