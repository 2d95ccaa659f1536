// SPDX-License-Identifier: Apache-2.0
// Memory for rows and activations on the CPU device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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
      part_of_ = std::move(other.part_of_);
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
  friend class SharedPages;
  void release();
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  size_t mapped_ = 0;                      // bytes mapped, 0 for none
  std::shared_ptr<const Buffer> part_of_;  // SharedPages: whose bytes these are
};

/// Asks for huge pages where memory that is somebody else's spans whole ones: a vector of gigabytes
/// that is about to be written for the first time.
void ask_for_huge_pages(const void* data, size_t bytes);

/// Small buffers beside each other, so that they too are in huge pages: a thousand tables of half
/// a megabyte cost a hundred pages, not a hundred thousand, and each one's cache lines are spread
/// evenly over a cache's sets.
class SharedPages {
 public:
  /// Room for `bytes`. Fails as Buffer::allocate().
  static Result<SharedPages> allocate(size_t bytes);
  /// What a buffer takes of the room; 0: it is large enough for huge pages of its own.
  static size_t room_of(size_t bytes);
  /// A buffer of zeros: the next ones of the room, room_of() of which must be left, or a buffer of
  /// its own. The memory stays mapped while one of its buffers lives.
  Result<Buffer> take(size_t bytes);

 private:
  std::shared_ptr<const Buffer> room_;
  size_t taken_ = 0;
};

}  // namespace recmill
