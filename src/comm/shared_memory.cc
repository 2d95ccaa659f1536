// SPDX-License-Identifier: Apache-2.0
#include "comm/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/proc_bytes.h"
#include "device/buffer.h"
#include "device/map_pages.h"

namespace recmill {
namespace {

constexpr int kCollapse = 25;  // MADV_COLLAPSE, of Linux 6.1, which older headers do not name

double mebi(size_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

std::string cannot_share(size_t bytes) {
  return fmt::format("cannot share {:.1f} MiB of memory", mebi(bytes));
}

Status complaint(const std::string& what, size_t bytes, int error) {
  return Status::Failed(fmt::format("{}: {}: {}", cannot_share(bytes), what, std::strerror(error)));
}

}  // namespace

SharedMemory::SharedMemory(size_t bytes, int file)
    : bytes_(Buffer::mapped_bytes(bytes)), file_(file) {}

Result<SharedMemory> SharedMemory::make(size_t bytes, Handle& handle) {
  // Beyond that it would be processes that are ended, not the call.
  bytes = Buffer::mapped_bytes(bytes);
  const auto available = static_cast<size_t>(proc_bytes("/proc/meminfo", "MemAvailable:"));
  if (available > 0 && bytes > available)
    return Status::Failed(
        fmt::format("{}: the machine has {:.1f} MiB free", cannot_share(bytes), mebi(available)));
  SharedMemory made(bytes, memfd_create("recmill", MFD_CLOEXEC));
  if (made.file_ < 0) return complaint("memfd_create", bytes, errno);
  if (const int error = posix_fallocate(made.file_, 0, static_cast<off_t>(bytes)); error != 0)
    return complaint("posix_fallocate", bytes, error);
  RECMILL_RETURN_IF_ERROR(made.map());
  // Whatever the machine says of huge pages in shared memory. Where there are none, small ones do.
  if (made.bytes_ >= kHugePage) (void)madvise(made.data_, made.bytes_, kCollapse);
  handle = {getpid(), made.file_};
  return made;
}

Result<SharedMemory> SharedMemory::open(size_t bytes, const Handle& handle) {
  const std::string path = fmt::format("/proc/{}/fd/{}", handle.process, handle.file);
  SharedMemory made(bytes, ::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (made.file_ < 0) return complaint(path, bytes, errno);
  RECMILL_RETURN_IF_ERROR(made.map());
  made.seal();
  return made;
}

void SharedMemory::seal() {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
  seal();
}

Status SharedMemory::map() {
  data_ = map_pages(bytes_, bytes_ >= kHugePage ? kHugePage : 1);
  if (data_ == nullptr || mmap(data_, bytes_, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_POPULATE | MAP_FIXED, file_, 0) == MAP_FAILED)
    return complaint("mmap", bytes_, errno);
  return {};
}

}  // namespace recmill
