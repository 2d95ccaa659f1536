// SPDX-License-Identifier: Apache-2.0
#include "step/gpu/gpu_rank_sum.h"

#include <algorithm>

namespace recmill::train {
namespace {

/// Values that a rank adds at most, of so many.
int64_t part_of(int64_t count, int ranks) {
  constexpr int64_t kAlignFloats = 4;  // 16 bytes
  const int64_t part = (count + ranks - 1) / ranks;
  return (part + kAlignFloats - 1) / kAlignFloats * kAlignFloats;
}

size_t bytes_of(int64_t floats) {
  return static_cast<size_t>(floats) * sizeof(float);
}

}  // namespace

Result<std::unique_ptr<GpuRankSum>> GpuRankSum::make(Gpu& gpu, GpuExchange& exchange, int rank,
                                                     int ranks, int64_t most,
                                                     const GpuStepKernels& kernels) {
  std::unique_ptr<GpuRankSum> made(new GpuRankSum(exchange, rank, ranks, kernels));
  RECMILL_ASSIGN_OR_RETURN(made->parts_, gpu.allocate(static_cast<size_t>(need(ranks, most)),
                                                      "sums of gradients over ranks"));
  return made;
}

int64_t GpuRankSum::need(int ranks, int64_t most) {
  return ranks * part_of(most, ranks) * int64_t{sizeof(float)};
}

Status GpuRankSum::add(float* values, int64_t count, GpuStream& stream) {
  const int64_t part = part_of(count, ranks_);
  const auto begin = [&](int rank) { return std::min(rank * part, count); };
  const auto size = [&](int rank) { return begin(rank + 1) - begin(rank); };
  auto* const parts = parts_.address<float>();
  std::vector<DevicePieces> of_others(ranks_), own_of_all(ranks_), own(ranks_);
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank == rank_) continue;
    of_others[rank] = {{values + begin(rank), bytes_of(size(rank))}};
    own_of_all[rank] = {{parts + rank * part, bytes_of(size(rank_))}};
    own[rank] = {{values + begin(rank_), bytes_of(size(rank_))}};
  }
  RECMILL_RETURN_IF_ERROR(exchange_.all_to_all(of_others, own_of_all, stream));
  RECMILL_RETURN_IF_ERROR(kernels_.sum_of_ranks(
      {values + begin(rank_), parts, size(rank_), part, rank_, ranks_}, stream));
  return exchange_.all_to_all(own, of_others, stream);
}

}  // namespace recmill::train
