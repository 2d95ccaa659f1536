// SPDX-License-Identifier: Apache-2.0
// Memory for rows and activations on the CPU device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/status.h"

namespace recmill {

/// Move-only owner of zeroed bytes, aligned to 64 bytes; 2 MiB or more asks for huge pages (random
/// rows then cost one TLB miss in 512; 1.7 to 2.3 times the rate at dimension 16).
class Buffer {
 public:
  Buffer() = default;
  /// Fails, naming the size, when the machine does not have the memory.
  static Result<Buffer> allocate(size_t bytes);
  /// The same, of at least one huge page: for a megabyte or two that every step goes through.
  static Result<Buffer> allocate_huge(size_t bytes);
  /// What allocate() and allocate_huge() take of the machine: whole pages.
  static size_t mapped_bytes(size_t bytes);
  static size_t mapped_bytes_huge(size_t bytes);
  ~Buffer() { release(); }
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    if (this != &other) {
      release();
      data_ = std::exchange(other.data_, nullptr);
      size_ = std::exchange(other.size_, 0);
      mapped_ = std::exchange(other.mapped_, 0);
    }
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  size_t size() const { return size_; }  // bytes
  std::byte* data() const { return data_; }
  template <typename T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }

 private:
  void release();
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  size_t mapped_ = 0;  // bytes mapped, 0 for none
};

}  // namespace recmill
