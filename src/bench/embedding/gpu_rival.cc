// SPDX-License-Identifier: Apache-2.0
#include "bench/embedding/gpu_rival.h"

#include <cmath>
#include <cstring>

#include "base/files.h"
#include "base/json/json.h"

namespace recmill::bench {
namespace {

constexpr double kTolerance = 5e-5;  // of rows of order 0.01 after one update

}  // namespace

std::vector<std::string> gpu_rivals_with(OptimizerKind optimizer) {
  if (optimizer == OptimizerKind::sgd) return {"torch_embeddingbag", "torch_embedding", "triton"};
  return {"torch_embedding"};  // moments of one more would not fit beside ours in 80 GB
}

Result<GpuRival> GpuRival::start(const std::string& system, const std::string& folder,
                                 const BenchOptions& options) {
  const char* device = options.device == DeviceKind::cuda ? "cuda" : "cpu";
  RECMILL_ASSIGN_OR_RETURN(
      Rival process, Rival::start(options.python, {options.scripts + "/gpu_embedding_tables.py",
                                                   folder, system, device}));
  return GpuRival(system, folder, std::move(process));
}

void GpuRival::check(std::span<const float> expected, int limit_s) {
  if (ask("check", 1, limit_s).is_null()) return;
  if (const Status compared = compare(expected); !compared.ok()) leave(compared);
}

Status GpuRival::compare(std::span<const float> expected) const {
  RECMILL_ASSIGN_OR_RETURN(const std::string bytes,
                           read_text(posix_files(), folder_ + "/check.bin"));
  if (bytes.size() != expected.size_bytes()) return Status::Failed("its answer has another size");
  std::vector<float> found(expected.size());
  std::memcpy(found.data(), bytes.data(), bytes.size());
  for (size_t i = 0; i < found.size(); ++i)
    if (!(std::fabs(found[i] - expected[i]) <= kTolerance))
      return Status::Failed("element " + std::to_string(i) +
                            " of its sampled rows: " + std::to_string(found[i]) + " in place of " +
                            std::to_string(expected[i]));
  return {};
}

}  // namespace recmill::bench
