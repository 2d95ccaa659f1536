// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/finite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace recmill::checkpoint {
namespace {

/// The first of `bytes` as words whose `exponent` bits are all set; -1: none. Blocks are first
/// looked at as a whole, without a branch.
template <typename Word>
int64_t find(std::span<const std::byte> bytes, Word exponent) {
  constexpr int64_t kBlock = 1024;
  const auto count = static_cast<int64_t>(bytes.size() / sizeof(Word));
  Word words[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t size = std::min(kBlock, count - begin);
    std::memcpy(words, bytes.data() + begin * sizeof(Word), size * sizeof(Word));
    bool any = false;
    for (int64_t i = 0; i < size; ++i) any |= (words[i] & exponent) == exponent;
    for (int64_t i = 0; any && i < size; ++i)
      if ((words[i] & exponent) == exponent) return begin + i;
  }
  return -1;
}

int64_t find_non_finite(ElementType type, std::span<const std::byte> bytes) {
  switch (type) {
    case ElementType::float32:
      return find<uint32_t>(bytes, 0x7F800000);
    case ElementType::bfloat16:
      return find<uint16_t>(bytes, 0x7F80);
    case ElementType::float16:
      return find<uint16_t>(bytes, 0x7C00);
    case ElementType::float64:
      return find<uint64_t>(bytes, 0x7FF0000000000000);
    case ElementType::int64:
    case ElementType::uint64:
    case ElementType::uint32:
    case ElementType::uint8:
      break;
  }
  return -1;
}

// "table/T/weight" or "table/T/state/C", "dense/P", "dense_state/P/C" in words.
std::string in_words(const std::string& entry, int64_t row) {
  const auto part = [&](size_t begin, size_t end) { return entry.substr(begin, end - begin); };
  if (entry.starts_with("table/")) {
    const bool is_weight = entry.ends_with("/weight");
    const size_t end = is_weight ? entry.rfind('/') : entry.rfind("/state/");
    const std::string what =
        is_weight ? "weight" : "optimizer state " + part(end + 7, entry.size());
    return fmt::format("table {}, row {}, {}", part(6, end), row, what);
  }
  if (entry.starts_with("dense/")) return "layer " + entry.substr(6);
  if (entry.starts_with("dense_state/")) {
    const size_t end = entry.rfind('/');
    return fmt::format("layer {}, optimizer state {}", part(12, end), entry.substr(end + 1));
  }
  return fmt::format("{}, row {}", entry, row);
}

}  // namespace

Status check_finite(const EntrySpec& entry, const RowBytes& rows) {
  const int64_t at = find_non_finite(entry.type, rows.bytes);
  if (at < 0) return {};
  const int64_t row = at / (rows.columns.count == 0 ? entry.row_elements() : rows.columns.count);
  return Status::Failed(fmt::format(
      "not finite: {}; a checkpoint holds finite values alone",
      in_words(entry.name, rows.listed.empty() ? rows.first_row + row : rows.listed[row])));
}

}  // namespace recmill::checkpoint
