// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "schema/column_range.h"

namespace recmill::checkpoint {

struct EntrySpec;

/// What makes the rows of an entry that are in no block (docs/formats/checkpoint.md).
struct RowRule {
  enum class Kind { constant, uniform };
  Kind kind = Kind::constant;
  float value = 0.0f;  // constant: of each element; uniform: elements are in [-value, value)
  // uniform:
  uint64_t seed = 0, stream = 0;
  bool operator==(const RowRule&) const = default;
};

/// Whether entries of this type can have it: floats of at most 32 bits.
bool can_make(const RowRule& rule, const EntrySpec& entry);

/// Rows [first, first + count), of `columns` of each: out [count][columns].
void make_rows(const RowRule& rule, const EntrySpec& entry, int64_t first, int64_t count,
               ColumnRange columns, std::span<std::byte> out);

}  // namespace recmill::checkpoint
