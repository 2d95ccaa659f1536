// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/staged_arrays.h"

namespace recmill {
namespace {

/// So much more than is asked for, that a batch a little larger than the last needs no memory.
size_t with_slack(size_t bytes) {
  return bytes + bytes / 4;
}

}  // namespace

int64_t reserved_bytes(int64_t bytes) {
  return static_cast<int64_t>(with_slack(static_cast<size_t>(bytes)));
}

Status reserve(GpuBuffer& buffer, size_t bytes, Gpu& gpu, const std::string& what) {
  if (buffer.size() >= bytes) return {};
  buffer = {};
  RECMILL_ASSIGN_OR_RETURN(buffer, gpu.allocate(with_slack(bytes), what));
  return {};
}

Status reserve(PinnedBuffer& buffer, size_t bytes, Gpu& gpu, const std::string& what) {
  if (buffer.size() >= bytes) return {};
  buffer = {};
  RECMILL_ASSIGN_OR_RETURN(buffer, gpu.allocate_pinned(with_slack(bytes), what));
  return {};
}

GpuBytes StagedArrays::need() const {
  const int64_t bytes = reserved_bytes(static_cast<int64_t>(bytes_));
  return {bytes, bytes};
}

Status StagedArrays::allocate(Gpu& gpu, const std::string& what) {
  RECMILL_RETURN_IF_ERROR(reserve(staged_, bytes_, gpu, what));
  return allocate_on_gpu(gpu, what);
}

Status StagedArrays::allocate_on_gpu(Gpu& gpu, const std::string& what) {
  return reserve(sent_, bytes_, gpu, what);
}

}  // namespace recmill
