// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/gpu_properties.h"

#include <algorithm>
#include <string_view>

namespace recmill {
namespace {

constexpr int kWarp = 32;
// Registers are given to warps in units, out of the part of them that each of an SM's
// schedulers has; so since compute capability 3 (CUDA's occupancy calculator).
constexpr int kRegisterUnit = 256, kSchedulers = 4;
constexpr int64_t kSharedUnit = 128;

/// By the tables of compute capabilities in CUDA's programming guide, and data sheets.
struct Known {
  std::string_view architecture;
  int compute, sms;
  int64_t memory_gib;
  int most_threads, most_blocks;
  int64_t shared_kib;
};
constexpr Known kKnown[] = {{"sm_80", 80, 108, 40, 2048, 32, 164},      // A100
                            {"sm_86", 86, 72, 24, 1536, 16, 100},       // A10
                            {"sm_89", 89, 58, 24, 1536, 24, 100},       // L4
                            {"sm_90", 90, 132, 80, 2048, 32, 228},      // H100
                            {"sm_100", 100, 148, 167, 2048, 32, 228}};  // B200

int64_t round_up(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

std::string known_architectures() {
  std::string names;
  for (const Known& known : kKnown)
    names += (names.empty() ? "" : ", ") + std::string(known.architecture);
  return names;
}

Result<GpuProperties> gpu_of_architecture(const std::string& architecture) {
  const auto* const known = std::ranges::find(kKnown, architecture, &Known::architecture);
  if (known == std::end(kKnown))
    return Status::BadRequest("architecture '" + architecture + "' is none of " +
                              known_architectures());
  GpuProperties gpu;
  gpu.name = architecture;
  gpu.compute = known->compute;
  gpu.sms = known->sms;
  gpu.memory = known->memory_gib << 30;
  gpu.most_threads = known->most_threads;
  gpu.most_blocks = known->most_blocks;
  gpu.shared = known->shared_kib << 10;
  gpu.shared_reserved = 1024;
  gpu.shared_of_block = gpu.shared - gpu.shared_reserved;
  return gpu;
}

Status check_shared(const std::string& kernel, int64_t bytes, const GpuProperties& gpu) {
  if (bytes <= gpu.shared_of_block) return {};
  return Status::Failed("kernel " + kernel + ": " + std::to_string(bytes) +
                        " bytes of shared memory for a block, of which " + gpu.name + " has " +
                        std::to_string(gpu.shared_of_block));
}

int blocks_per_sm(const GpuProperties& gpu, const KernelResources& kernel, int threads,
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

double occupancy_of(const GpuProperties& gpu, int blocks, int threads) {
  return static_cast<double>(blocks) * threads / gpu.most_threads;
}

int64_t shared_that_leaves(const GpuProperties& gpu, const KernelResources& kernel, int threads,
                           int64_t blocks) {
  if (blocks_per_sm(gpu, kernel, threads, 0) <= blocks) return 0;
  const int64_t each = gpu.shared / (blocks + 1) / kSharedUnit * kSharedUnit;  // one too many fits
  const int64_t least = each + kSharedUnit - gpu.shared_reserved - kernel.shared;
  return std::clamp<int64_t>(least, 0, gpu.shared_of_block - kernel.shared);
}

}  // namespace recmill
