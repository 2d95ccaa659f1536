// SPDX-License-Identifier: Apache-2.0
#include "table/slot_names.h"

#include "base/hash.h"
#include "table/table_update.h"

namespace recmill::table {

SlotNames::SlotNames(std::span<const TableSpec> tables, uint64_t seed, int64_t slots)
    : seed_(seed), names_(static_cast<size_t>(slots)) {
  for (const TableSpec& table : tables) table_keys_.push_back(hash_bytes(table.name));
}

std::vector<Random> SlotNames::roundings(const RowStep& step) const {
  std::vector<Random> roundings;
  roundings.reserve(table_keys_.size());
  for (const uint64_t key : table_keys_) roundings.push_back(rounding_of(seed_, key, step));
  return roundings;
}

}  // namespace recmill::table
