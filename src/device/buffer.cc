// SPDX-License-Identifier: Apache-2.0
#include "device/buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "device/map_pages.h"

namespace recmill {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kLine = 64;

size_t round_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

std::byte* map_pages(size_t bytes, size_t unit) {
  // Maps more and gives the ends back.
  const size_t mapped = bytes + (unit > kPage ? unit : 0);
  void* raw = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(raw);
  if (unit <= kPage) return begin;
  const auto address = reinterpret_cast<uintptr_t>(raw);
  const size_t head = round_up(address, unit) - address;
  if (head > 0) ::munmap(begin, head);
  if (mapped - head - bytes > 0) ::munmap(begin + head + bytes, mapped - head - bytes);
  return begin + head;
}

size_t Buffer::mapped_bytes(size_t bytes) {
  return round_up(bytes, bytes >= kHugePage ? kHugePage : kPage);
}

Result<Buffer> Buffer::allocate(size_t bytes) {
  Buffer buffer;
  if (bytes == 0) return buffer;
  const size_t unit = bytes >= kHugePage ? kHugePage : kPage;
  const size_t wanted = mapped_bytes(bytes);
  std::byte* const begin = map_pages(wanted, unit);
  if (begin == nullptr) {
    return Status::Failed("cannot allocate " + std::to_string(bytes) +
                          " bytes: " + std::strerror(errno));
  }
  if (unit > kPage) ::madvise(begin, wanted, MADV_HUGEPAGE);
  buffer.data_ = begin;
  buffer.size_ = bytes;
  buffer.mapped_ = wanted;
  return buffer;
}

size_t Buffer::mapped_bytes_huge(size_t bytes) {
  return mapped_bytes(std::max(bytes, kHugePage));
}

Result<Buffer> Buffer::allocate_huge(size_t bytes) {
  RECMILL_ASSIGN_OR_RETURN(Buffer buffer, allocate(std::max(bytes, kHugePage)));
  buffer.size_ = bytes;
  return buffer;
}

void Buffer::release() {
  if (mapped_ > 0) ::munmap(data_, mapped_);
  data_ = nullptr;
  mapped_ = size_ = 0;
  part_of_.reset();
}

void ask_for_huge_pages(const void* data, size_t bytes) {
  const auto begin = round_up(reinterpret_cast<uintptr_t>(data), kHugePage);
  const auto end = (reinterpret_cast<uintptr_t>(data) + bytes) / kHugePage * kHugePage;
  if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

Result<SharedPages> SharedPages::allocate(size_t bytes) {
  SharedPages made;
  RECMILL_ASSIGN_OR_RETURN(Buffer room, Buffer::allocate(bytes));
  made.room_ = std::make_shared<const Buffer>(std::move(room));
  return made;
}

size_t SharedPages::room_of(size_t bytes) {
  return bytes >= kHugePage ? 0 : round_up(bytes, kLine);
}

Result<Buffer> SharedPages::take(size_t bytes) {
  const size_t room = room_of(bytes);
  if (room == 0) return Buffer::allocate(bytes);
  RECMILL_CHECK(taken_ + room <= room_->size(), "a buffer beyond its shared pages");
  Buffer part;
  part.data_ = room_->data() + taken_;
  part.size_ = bytes;
  part.part_of_ = room_;
  taken_ += room;
  return part;
}

}  // namespace recmill
