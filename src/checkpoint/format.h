// SPDX-License-Identifier: Apache-2.0
// The checkpoint format as values: docs/formats/checkpoint.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json_fwd.h"
#include "base/status.h"
#include "checkpoint/row_rule.h"
#include "schema/column_range.h"
#include "schema/options.h"

namespace recmill::checkpoint {

enum class ElementType { float32, bfloat16, float16, float64, int64, uint64, uint32, uint8 };

/// Bytes of one element.
int64_t size_of(ElementType type);

/// A named array. Its rows are counted by shape[0]; the other extents make up a row.
struct EntrySpec {
  std::string name;
  ElementType type = ElementType::float32;
  std::vector<int64_t> shape;

  int64_t rows() const { return shape[0]; }
  int64_t row_elements() const;
  int64_t row_bytes() const { return row_elements() * size_of(type); }
  ColumnRange all_columns() const { return {0, row_elements()}; }
  std::string text() const;  // "float32 [1000, 16]"
  bool operator==(const EntrySpec&) const = default;
};

/// Where some rows of an entry are, or some columns of them.
struct Block {
  int64_t part = 0;
  int64_t offset = 0;  // bytes into the part file
  int64_t first_row = 0;
  int64_t last_row = 0;
  int64_t rows = 0;
  bool listed = false;  // row numbers are before the rows
  uint32_t crc = 0;
  ColumnRange columns = {};  // elements of a row; none: all of them

  ColumnRange columns_of(const EntrySpec& entry) const {
    return columns.count == 0 ? entry.all_columns() : columns;
  }
  int64_t bytes(const EntrySpec& entry) const {
    return rows * (columns_of(entry).count * size_of(entry.type) + (listed ? 8 : 0));
  }
  bool operator==(const Block&) const = default;
};

struct Entry {
  EntrySpec spec;
  std::vector<Block> blocks = {};
  std::optional<RowRule> rule = {};  // none: all rows are in blocks
};

struct Part {
  std::string file;
  int64_t bytes = 0;
};

struct Manifest {
  int64_t step = 0;
  JsonObject properties;
  std::vector<Part> parts;
  std::vector<Entry> entries;  // sorted by name
};

inline constexpr char kManifestName[] = "manifest";
inline constexpr int64_t kBlockBytes = int64_t{4} << 20;

/// The manifest file as bytes, and back; an error says what is wrong.
std::string encode(const Manifest& manifest);
Result<Manifest> decode(const std::string& bytes);
/// The same for a part of one, whose entries need not be complete.
Result<Manifest> decode_incomplete(const std::string& bytes);

/// Joins what the parts hold: sorts entries and blocks, and checks that parts agree on each entry,
/// and that every element is there exactly once (of listed blocks: that the count is right), or
/// with a rule at most once.
Status arrange(std::vector<Entry>& entries);

/// "step-000000000012".
std::string folder_name(int64_t step);

}  // namespace recmill::checkpoint

namespace recmill {
template <>
struct EnumNames<checkpoint::ElementType> {
  using Type = checkpoint::ElementType;
  static constexpr std::array names{std::pair{Type::float32, std::string_view{"float32"}},
                                    std::pair{Type::bfloat16, std::string_view{"bfloat16"}},
                                    std::pair{Type::float16, std::string_view{"float16"}},
                                    std::pair{Type::float64, std::string_view{"float64"}},
                                    std::pair{Type::int64, std::string_view{"int64"}},
                                    std::pair{Type::uint64, std::string_view{"uint64"}},
                                    std::pair{Type::uint32, std::string_view{"uint32"}},
                                    std::pair{Type::uint8, std::string_view{"uint8"}}};
};
}  // namespace recmill
