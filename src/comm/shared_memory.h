// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/status.h"

namespace recmill {

/// Memory in /dev/shm that processes of one host share. It never has a name there, so that nothing
/// is left when they end, however they end.
class SharedMemory {
 public:
  /// By which others find it, as long as its maker has it mapped.
  struct Handle {
    int32_t process = 0;  // 0: none was made
    int32_t file = -1;
  };

  /// Bytes of /dev/shm that are left to the MPI library. It maps memory there without having taken
  /// it, Open MPI 4 MiB a process, and a process that stores where none is left dies of a signal.
  static constexpr size_t kReserve = size_t{32} << 20;

  /// Bytes that are free in /dev/shm; 0 where there is none.
  static size_t room();
  /// Names `room` and the reserve that it does not reach.
  static Status no_room(size_t room);

  /// Zeroed. All of it is taken from the machine at once: fails, naming the size, where it is not
  /// to be had beside the reserve.
  static Result<SharedMemory> make(size_t bytes, Handle& handle);
  /// That which another process made.
  static Result<SharedMemory> open(size_t bytes, const Handle& handle);
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
  SharedMemory(size_t bytes, int file) : bytes_(bytes), file_(file) {}
  Status map();

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  int file_ = -1;
};

}  // namespace recmill
