// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/status.h"

namespace recmill {

/// Memory that processes of one host share. It has no name and takes nothing of /dev/shm, which is
/// small in containers; nothing is left of it when they end, however they end. 2 MiB or more asks
/// for huge pages (device/buffer.h).
class SharedMemory {
 public:
  /// By which others find it, until its maker seals it.
  struct Handle {
    int32_t process = 0;  // 0: none was made
    int32_t file = -1;
  };

  /// Zeroed. All of it is taken from the machine at once: fails, naming the size, where it is not
  /// to be had.
  static Result<SharedMemory> make(size_t bytes, Handle& handle);
  /// That which another process made.
  static Result<SharedMemory> open(size_t bytes, const Handle& handle);
  /// Nobody else opens it: gives its file descriptor back.
  void seal();
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(other.bytes_),
        file_(std::exchange(other.file_, -1)) {}
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(file_, other.file_);
    return *this;
  }

  std::byte* data() const { return data_; }

 private:
  SharedMemory(size_t bytes, int file);
  Status map();

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;  // whole pages
  int file_ = -1;
};

}  // namespace recmill
