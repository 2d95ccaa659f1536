// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/gpu_properties.h"

#include <algorithm>

namespace recmill {
namespace {

constexpr int kWarp = 32;
// Registers are given to warps in units, out of the part of them that each of a multiprocessor's
// schedulers has; so since compute capability 3 (CUDA's occupancy calculator).
constexpr int kRegisterUnit = 256, kSchedulers = 4;
constexpr int64_t kSharedUnit = 128;

int64_t round_up(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

Result<GpuProperties> gpu_of_architecture(const std::string& architecture) {
  GpuProperties gpu;
  gpu.name = architecture;
  gpu.shared_reserved = 1024;
  if (architecture == "sm_80") {
    gpu.compute = 80;
    gpu.multiprocessors = 108;
    gpu.memory = int64_t{40} << 30;
    gpu.shared = 164 << 10;
    gpu.shared_of_block = 163 << 10;
    return gpu;
  }
  if (architecture == "sm_90") {
    gpu.compute = 90;
    gpu.multiprocessors = 132;
    gpu.memory = int64_t{80} << 30;
    gpu.shared = 228 << 10;
    gpu.shared_of_block = 227 << 10;
    return gpu;
  }
  return Status::BadRequest("architecture '" + architecture +
                            "' is not known: sm_80 and sm_90 are");
}

int blocks_of_multiprocessor(const GpuProperties& gpu, const KernelResources& kernel, int threads,
                             int64_t dynamic_shared) {
  const int64_t warps = (threads + kWarp - 1) / kWarp;
  int64_t blocks = std::min<int64_t>(gpu.most_blocks, gpu.most_threads / (warps * kWarp));
  const int64_t shared = kernel.shared + dynamic_shared;
  if (shared > gpu.shared_of_block) return 0;
  blocks = std::min(blocks, gpu.shared / round_up(shared + gpu.shared_reserved, kSharedUnit));
  if (kernel.registers > 0) {
    const int64_t of_warp = round_up(int64_t{kernel.registers} * kWarp, kRegisterUnit);
    blocks = std::min(blocks, gpu.registers / kSchedulers / of_warp * kSchedulers / warps);
  }
  return static_cast<int>(blocks);
}

int64_t shared_that_leaves(const GpuProperties& gpu, const KernelResources& kernel, int threads,
                           int64_t blocks) {
  if (blocks_of_multiprocessor(gpu, kernel, threads, 0) <= blocks) return 0;
  const int64_t each = gpu.shared / (blocks + 1) / kSharedUnit * kSharedUnit;  // one too many fits
  const int64_t least = each + kSharedUnit - gpu.shared_reserved - kernel.shared;
  return std::clamp<int64_t>(least, 0, gpu.shared_of_block - kernel.shared);
}

}  // namespace recmill
