// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/hash.h"
#include "base/json/json.h"

namespace recmill::checkpoint {
namespace {

constexpr int64_t kPieceBytes = int64_t{1} << 20;

int64_t rows_of_piece(const EntrySpec& spec) {
  return std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(1, spec.row_bytes()));
}

template <typename T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

std::string value_text(ElementType type, const std::byte* bytes) {
  switch (type) {
    case ElementType::float32:
      return fmt::format("{:.9g}", load<float>(bytes));
    case ElementType::float64:
      return fmt::format("{:.17g}", load<double>(bytes));
    case ElementType::int64:
      return std::to_string(load<int64_t>(bytes));
    case ElementType::uint64:
      return std::to_string(load<uint64_t>(bytes));
    case ElementType::uint32:
      return std::to_string(load<uint32_t>(bytes));
    case ElementType::uint8:
      return std::to_string(load<uint8_t>(bytes));
    case ElementType::bfloat16:
    case ElementType::float16:
      return fmt::format("bits {:#06x}", load<uint16_t>(bytes));
  }
  return "?";
}

/// The first differing element of two entries of one type and shape.
Result<std::optional<Difference>> compare_entries(Reader& a, const Entry& in_a, Reader& b,
                                                  const Entry& in_b) {
  const EntrySpec& spec = in_a.spec;
  const int64_t piece = rows_of_piece(spec), row_bytes = spec.row_bytes();
  const int64_t size = size_of(spec.type);
  std::vector<std::byte> left, right;
  for (int64_t first = 0; first < spec.rows(); first += piece) {
    const int64_t rows = std::min(piece, spec.rows() - first);
    left.resize(rows * row_bytes);
    right.resize(rows * row_bytes);
    RECMILL_RETURN_IF_ERROR(a.read(in_a, first, rows, left));
    RECMILL_RETURN_IF_ERROR(b.read(in_b, first, rows, right));
    const auto at = std::mismatch(left.begin(), left.end(), right.begin()).first - left.begin();
    if (at == static_cast<int64_t>(left.size())) continue;
    const int64_t row = first + at / row_bytes;
    const int64_t element = at % row_bytes / size;
    const int64_t place = at / size * size;
    return std::optional(Difference{spec.name, row, element,
                                    fmt::format("{}: row {}, element {}: {} and {}", spec.name, row,
                                                element, value_text(spec.type, left.data() + place),
                                                value_text(spec.type, right.data() + place))});
  }
  return std::optional<Difference>();
}

void compare_properties(const Json& a, const Json& b, const std::vector<std::string>& ignored,
                        std::vector<Difference>& differences) {
  std::set<std::string> keys;
  for (const Json* json : {&a, &b}) {
    for (const auto& [key, value] : json->items()) keys.insert(key);
  }
  for (const auto& key : keys) {
    if (std::find(ignored.begin(), ignored.end(), key) != ignored.end()) continue;
    const std::string left = a.contains(key) ? a[key].dump() : "nothing";
    const std::string right = b.contains(key) ? b[key].dump() : "nothing";
    if (left == right) continue;
    const std::string name = "property/" + key;
    differences.push_back({name, -1, -1, name + ": " + left + " and " + right});
  }
}

}  // namespace

Result<std::vector<Digest>> digests(Reader& reader) {
  std::vector<Digest> list;
  std::vector<std::byte> bytes;
  for (const Entry& entry : reader.entries()) {
    Digest digest{entry.spec.name, entry.spec.text(), 0};
    const int64_t piece = rows_of_piece(entry.spec);
    for (int64_t first = 0; first < entry.spec.rows(); first += piece) {
      const int64_t rows = std::min(piece, entry.spec.rows() - first);
      bytes.resize(rows * entry.spec.row_bytes());
      RECMILL_RETURN_IF_ERROR(reader.read(entry, first, rows, bytes));
      digest.crc = crc32c(bytes, digest.crc);
    }
    list.push_back(std::move(digest));
  }
  for (const auto& [key, value] : reader.properties().items()) {
    const std::string text = value.dump();
    list.push_back({"property/" + key, "", crc32c(std::as_bytes(std::span(text)))});
  }
  return list;
}

Result<std::vector<Difference>> compare(Reader& a, Reader& b,
                                        const std::vector<std::string>& ignored) {
  std::set<std::string> names;
  for (Reader* reader : {&a, &b}) {
    for (const Entry& entry : reader->entries()) names.insert(entry.spec.name);
  }
  std::vector<Difference> differences;
  for (const auto& name : names) {
    const Entry* in_a = a.find(name);
    const Entry* in_b = b.find(name);
    if (in_a == nullptr || in_b == nullptr) {
      const std::string& path = in_a == nullptr ? a.path() : b.path();
      differences.push_back({name, -1, -1, name + ": is not in " + path});
    } else if (in_a->spec != in_b->spec) {
      differences.push_back(
          {name, -1, -1, name + ": " + in_a->spec.text() + " and " + in_b->spec.text()});
    } else {
      RECMILL_ASSIGN_OR_RETURN(auto difference, compare_entries(a, *in_a, b, *in_b));
      if (difference) differences.push_back(*std::move(difference));
    }
  }
  compare_properties(a.properties(), b.properties(), ignored, differences);
  return differences;
}

}  // namespace recmill::checkpoint
