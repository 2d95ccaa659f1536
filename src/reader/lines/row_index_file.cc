// SPDX-License-Identifier: Apache-2.0
#include "reader/lines/row_index_file.h"

#include <cstring>
#include <string_view>

#include "base/hash.h"

namespace recmill::reader {
namespace {

constexpr char kMagic[8] = {'R', 'M', 'R', 'O', 'W', 'I', 'D', '4'};

template <typename Value>
void put(std::string& bytes, const Value* values, size_t count) {
  bytes.append(reinterpret_cast<const char*>(values), count * sizeof(Value));
}

// Reads access points up to the end of `bytes`; false where they do not end there.
bool decode_access(std::string_view bytes, size_t count, std::vector<AccessPoint>& points) {
  for (size_t i = 0; i < count; ++i) {
    uint64_t numbers[3];
    constexpr size_t kFixed = sizeof numbers + 3;
    if (bytes.size() < kFixed) return false;
    std::memcpy(numbers, bytes.data(), sizeof numbers);
    const auto small = [&](size_t at) { return static_cast<uint8_t>(bytes[sizeof numbers + at]); };
    AccessPoint point{numbers[0], numbers[1], small(0), small(1), small(2) != 0, {}};
    bytes.remove_prefix(kFixed);
    if (bytes.size() < numbers[2]) return false;
    point.window = bytes.substr(0, numbers[2]);
    bytes.remove_prefix(numbers[2]);
    points.push_back(std::move(point));
  }
  return bytes.empty();
}

}  // namespace

std::string encode_row_index(const RowIndex& index, const std::string& key) {
  std::string bytes(kMagic, sizeof kMagic);
  const uint64_t head[] = {key.size(),
                           index.bytes,
                           static_cast<uint64_t>(index.rows),
                           static_cast<uint64_t>(index.kept),
                           index.blocks.size(),
                           index.bad.size(),
                           index.access.size()};
  put(bytes, head, std::size(head));
  bytes += key;
  put(bytes, index.blocks.data(), index.blocks.size());
  put(bytes, index.bad.data(), index.bad.size());
  for (const AccessPoint& point : index.access) {
    const uint64_t numbers[] = {point.offset, point.compressed, point.window.size()};
    const uint8_t small[] = {point.bits, point.bits_value, point.begins_frame};
    put(bytes, numbers, std::size(numbers));
    put(bytes, small, std::size(small));
    bytes += point.window;
  }
  const uint32_t checksum = crc32c(std::as_bytes(std::span(bytes)));
  put(bytes, &checksum, 1);
  return bytes;
}

std::optional<RowIndex> decode_row_index(const std::string& bytes, const std::string& key) {
  uint64_t head[7];
  const size_t fixed = sizeof kMagic + sizeof head;
  if (bytes.size() < fixed + key.size() + 4) return {};
  uint32_t checksum;
  std::memcpy(&checksum, bytes.data() + bytes.size() - 4, 4);
  const auto content = std::as_bytes(std::span(bytes)).first(bytes.size() - 4);
  if (checksum != crc32c(content)) return {};
  if (std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) return {};
  std::memcpy(head, bytes.data() + sizeof kMagic, sizeof head);
  if (head[0] != key.size() || bytes.compare(fixed, key.size(), key) != 0) return {};
  RowIndex index{head[1], static_cast<int64_t>(head[2]), static_cast<int64_t>(head[3]), {}, {}, {}};
  // Text has a block for every 4,096 rows; row groups, which have no bytes, one for each slice.
  const uint64_t rows = head[2];
  const bool whole = head[1] > 0 ? head[4] == rows / kRowsPerBlock + (rows % kRowsPerBlock > 0)
                                 : head[4] <= rows && (head[4] > 0) == (rows > 0);
  // And so that no product below can wrap, counts are no more than the bytes.
  if (!whole || head[3] > rows || head[5] > rows || head[4] > bytes.size() ||
      head[5] > bytes.size()) {
    return {};
  }
  const size_t blocks = head[4] * sizeof(RowBlock), bad = head[5] * sizeof(int64_t);
  const size_t tables_end = fixed + key.size() + blocks + bad;
  if (bytes.size() < tables_end + 4) return {};
  index.blocks.resize(head[4]);
  index.bad.resize(head[5]);
  if (blocks > 0) std::memcpy(index.blocks.data(), bytes.data() + fixed + key.size(), blocks);
  if (bad > 0) std::memcpy(index.bad.data(), bytes.data() + fixed + key.size() + blocks, bad);
  const auto access = std::string_view(bytes).substr(tables_end, bytes.size() - 4 - tables_end);
  if (!decode_access(access, head[6], index.access)) return {};
  return index;
}

}  // namespace recmill::reader
