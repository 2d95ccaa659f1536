// SPDX-License-Identifier: Apache-2.0
// Arrays that go to a GPU together, or come from it: laid out one behind the other in pinned memory
// and on the GPU, sent or fetched by one copy. The memory is used again from batch to batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "device/gpu/gpu.h"

namespace recmill {

/// Bytes of a GPU's memory, and pinned ones of the host's.
struct GpuBytes {
  int64_t device = 0, pinned = 0;

  GpuBytes& operator+=(const GpuBytes& other) {
    device += other.device;
    pinned += other.pinned;
    return *this;
  }
  GpuBytes operator*(int64_t times) const { return {device * times, pinned * times}; }
};

/// An array's place among them.
template <class T>
struct StagedArray {
  size_t at = 0;  // bytes
  int64_t count = 0;
};

class StagedArrays {
 public:
  /// Begins anew: what was sent before must have been used to its end.
  void clear() { bytes_ = 0; }
  /// Room for so many.
  template <class T>
  StagedArray<T> add(int64_t count) {
    const StagedArray<T> array{bytes_, count};
    constexpr size_t kAlignment = 256;
    bytes_ += (static_cast<size_t>(count) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return array;
  }
  /// What allocate() takes for all that was added.
  GpuBytes need() const;
  /// Memory for all that was added. Fails, naming `what`, where it is short.
  Status allocate(Gpu& gpu, const std::string& what);
  /// The same on the GPU alone, for what is neither sent nor fetched.
  GpuBytes need_on_gpu() const { return {need().device, 0}; }
  Status allocate_on_gpu(Gpu& gpu, const std::string& what);

  /// To fill in, once allocated.
  template <class T>
  std::span<T> host(const StagedArray<T>& array) const {
    return {reinterpret_cast<T*>(staged_.as<std::byte>().data() + array.at),
            static_cast<size_t>(array.count)};
  }
  /// Where it will be on the GPU.
  template <class T>
  T* device(const StagedArray<T>& array) const {
    return reinterpret_cast<T*>(sent_.address<std::byte>() + array.at);
  }
  /// Enqueues the copy of all of them, or of one.
  Status send(GpuStream& stream) {
    return bytes_ == 0 ? Status() : stream.to_device(sent_, staged_, bytes_);
  }
  template <class T>
  Status send(const StagedArray<T>& array, GpuStream& stream) {
    return stream.to_device(sent_, staged_, static_cast<size_t>(array.count) * sizeof(T), array.at,
                            array.at);
  }
  /// Enqueues the copy of all of them back.
  Status fetch(GpuStream& stream) {
    return bytes_ == 0 ? Status() : stream.to_host(staged_, sent_, bytes_);
  }

 private:
  PinnedBuffer staged_;
  GpuBuffer sent_;
  size_t bytes_ = 0;
};

/// What reserve() takes for so many bytes.
int64_t reserved_bytes(int64_t bytes);
/// Makes a buffer of a GPU at least so large; what it held is lost where it grows.
Status reserve(GpuBuffer& buffer, size_t bytes, Gpu& gpu, const std::string& what);
Status reserve(PinnedBuffer& buffer, size_t bytes, Gpu& gpu, const std::string& what);

}  // namespace recmill
