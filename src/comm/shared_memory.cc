// SPDX-License-Identifier: Apache-2.0
#include "comm/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <string>

namespace recmill {
namespace {

constexpr const char* kFolder = "/dev/shm";

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

size_t SharedMemory::room() {
  struct statvfs found {};
  if (statvfs(kFolder, &found) != 0) return 0;
  if (found.f_blocks == 0) return std::numeric_limits<size_t>::max();  // no limit was set
  return static_cast<size_t>(found.f_bavail) * found.f_frsize;
}

Status SharedMemory::no_room(size_t room) {
  return Status::Failed(
      fmt::format("{} has {:.1f} MiB free; processes of one host need {:.0f} MiB there for "
                  "messages between them",
                  kFolder, mebi(room), mebi(kReserve)));
}

Result<SharedMemory> SharedMemory::make(size_t bytes, Handle& handle) {
  if (const size_t free = room(); free < kReserve || free - kReserve < bytes)
    return no_room(free).at(cannot_share(bytes));
  SharedMemory made(bytes, ::open(kFolder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (made.file_ < 0) return complaint(kFolder, bytes, errno);
  // Without it a full /dev/shm would be a signal at the first store.
  if (const int error = posix_fallocate(made.file_, 0, static_cast<off_t>(bytes)); error != 0)
    return complaint(kFolder, bytes, error);
  RECMILL_RETURN_IF_ERROR(made.map());
  handle = {getpid(), made.file_};
  return made;
}

Result<SharedMemory> SharedMemory::open(size_t bytes, const Handle& handle) {
  const std::string path = fmt::format("/proc/{}/fd/{}", handle.process, handle.file);
  SharedMemory made(bytes, ::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (made.file_ < 0) return complaint(path, bytes, errno);
  RECMILL_RETURN_IF_ERROR(made.map());
  return made;
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
  if (file_ >= 0) close(file_);
}

Status SharedMemory::map() {
  void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file_, 0);
  if (mapped == MAP_FAILED) return complaint("mmap", bytes_, errno);
  data_ = static_cast<std::byte*>(mapped);
  return {};
}

}  // namespace recmill
