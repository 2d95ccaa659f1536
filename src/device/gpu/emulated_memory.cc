// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/emulated_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace recmill {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kBlock = size_t{2} << 20;  // as CUDA shares memory

/// What GpuMemoryHandle::of_driver says of it.
struct SharedFile {
  int file = -1;  // of the process that has it
  size_t bytes = 0;
};

Status failed(const std::string& what) {
  return Status::Failed(what + ": " + std::strerror(errno));
}

std::string memory_of(size_t bytes) {
  return "memory of " + std::to_string(bytes) + " bytes";
}

Result<void*> map(int file, size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return failed(memory_of(bytes));
  return memory;
}

SharedFile file_of(const GpuMemoryHandle& handle) {
  SharedFile of;
  std::memcpy(&of, handle.of_driver.data(), sizeof of);
  return of;
}

}  // namespace

Result<EmulatedMemory> EmulatedMemory::allocate(size_t bytes) {
  EmulatedMemory made(nullptr, bytes, -1);
  if (bytes > 0 && bytes % kBlock == 0) {
    made.file_ = memfd_create("emulated GPU", MFD_CLOEXEC);
    if (made.file_ < 0 || ftruncate(made.file_, static_cast<off_t>(bytes)) != 0)
      return failed(memory_of(bytes));
    RECMILL_ASSIGN_OR_RETURN(made.address_, map(made.file_, bytes));
  } else if (posix_memalign(&made.address_, kAlignment, std::max<size_t>(bytes, 1)) != 0) {
    return Status::Failed("the machine has no " + memory_of(bytes) + " left");
  }
  std::memset(made.address_, 0xff, bytes);
  return made;
}

EmulatedMemory::~EmulatedMemory() {
  if (file_ < 0) {
    std::free(address_);
  } else {
    if (address_ != nullptr) munmap(address_, bytes_);
    ::close(file_);
  }
}

EmulatedMemory::EmulatedMemory(EmulatedMemory&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)),
      bytes_(other.bytes_),
      file_(std::exchange(other.file_, -1)) {}

Result<GpuMemoryHandle> EmulatedMemory::share() const {
  if (file_ < 0)
    return Status::Failed(memory_of(bytes_) + ", no whole blocks of 2 MiB: it cannot be shared");
  GpuMemoryHandle handle{getpid(), address_, {}};
  const SharedFile of{file_, bytes_};
  std::memcpy(handle.of_driver.data(), &of, sizeof of);
  return handle;
}

Result<void*> EmulatedMemory::open(const GpuMemoryHandle& handle) {
  const SharedFile of = file_of(handle);
  const std::string path =
      "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(of.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return failed(path);
  auto memory = map(file, of.bytes);
  ::close(file);
  return memory;
}

void EmulatedMemory::close(void* memory, const GpuMemoryHandle& handle) {
  munmap(memory, file_of(handle).bytes);
}

}  // namespace recmill
