// SPDX-License-Identifier: Apache-2.0
#include "store/cached/step_slots.h"

#include <algorithm>
#include <bit>

namespace recmill::store {

StepSlots::StepSlots(const SlotTables& tables)
    : numbers_(tables), tables_(static_cast<size_t>(tables.tables())) {}

void StepSlots::set(std::span<const RowInSlot> uses, int64_t first, OfTable& table) {
  const size_t places = std::bit_ceil(std::max<size_t>(2 * uses.size(), 2));
  table.places.assign(places, {});
  table.shift = 64 - std::countr_zero(places);
  for (const RowInSlot& use : uses) {
    const int64_t row = use.row - first;
    size_t place = table.home(row);
    while (table.places[place].row != kNone) place = (place + 1) & (places - 1);
    table.places[place] = {row, use.slot};
  }
}

void StepSlots::set(std::span<const RowInSlot> uses, ThreadPool& pool) {
  const auto begin_of = [&](int64_t t) {
    return std::ranges::lower_bound(uses, numbers_.begin(static_cast<int>(t)), {},
                                    &RowInSlot::row) -
           uses.begin();
  };
  pool.run(std::ssize(tables_), [&](int64_t t) {
    const auto begin = begin_of(t);
    set(uses.subspan(begin, begin_of(t + 1) - begin), numbers_.begin(static_cast<int>(t)),
        tables_[t]);
  });
}

int64_t StepSlots::find(int table, std::span<const int64_t> rows, std::span<int64_t> slots) const {
  const OfTable& of = tables_[table];
  const size_t mask = of.places.size() - 1;
  int64_t missing = kNone;
  for (size_t i = 0; i < rows.size(); ++i) {
    size_t place = of.home(rows[i]);
    while (of.places[place].row != rows[i] && of.places[place].row != kNone)
      place = (place + 1) & mask;
    slots[i] = of.places[place].slot;
    if (slots[i] == kNone) missing = rows[i];
  }
  return missing;
}

}  // namespace recmill::store
