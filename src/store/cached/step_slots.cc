// SPDX-License-Identifier: Apache-2.0
#include "store/cached/step_slots.h"

#include <algorithm>
#include <bit>

namespace recmill::store {
namespace {

constexpr int64_t kRowsOfAUse = 256;  // up to which each row of a table has a place
constexpr uint32_t kEmpty = ~uint32_t{0};

}  // namespace

StepSlots::StepSlots(const ModelSpec& model, const SlotTables& tables) {
  for (int t = 0; t < tables.tables(); ++t) {
    OfTable& table = tables_.emplace_back();
    table.rows = model.tables[t].rows;
    table.first = tables.begin(t);
  }
}

void StepSlots::OfTable::set(std::span<const RowInSlot> own) {
  uses = own;
  hashed = rows / kRowsOfAUse > std::ssize(uses);
  if (!hashed) {
    places.resize(static_cast<size_t>(rows));
    for (size_t i = 0; i < uses.size(); ++i) places[uses[i].row - first] = static_cast<uint32_t>(i);
    return;
  }
  hash.assign(std::bit_ceil(4 * uses.size() + 2), kEmpty);
  shift = 64 - std::countr_zero(hash.size());
  for (size_t i = 0; i < uses.size(); ++i) {
    size_t place = home(uses[i].row);
    while (hash[place] != kEmpty) place = (place + 1) & (hash.size() - 1);
    hash[place] = static_cast<uint32_t>(i);
  }
}

template <bool kHashed>
int64_t StepSlots::OfTable::find(int64_t row) const {
  if constexpr (!kHashed) {
    const uint32_t at = places[row];
    return at < uses.size() && uses[at].row == first + row ? uses[at].slot : kNone;
  } else {
    size_t place = home(first + row);
    while (hash[place] != kEmpty && uses[hash[place]].row != first + row)
      place = (place + 1) & (hash.size() - 1);
    return hash[place] == kEmpty ? kNone : uses[hash[place]].slot;
  }
}

void StepSlots::set(int table, std::span<const RowInSlot> uses) {
  OfTable& of = tables_[table];
  const auto from = [&](int64_t row) {
    return std::ranges::lower_bound(uses, row, {}, &RowInSlot::row) - uses.begin();
  };
  const auto begin = from(of.first);
  of.set(uses.subspan(begin, from(of.first + of.rows) - begin));
}

int64_t StepSlots::find(int table, std::span<const int64_t> rows, std::span<int64_t> slots) const {
  const OfTable& of = tables_[table];
  int64_t missing = kNone;
  for (size_t i = 0; i < rows.size(); ++i) {
    slots[i] = of.hashed ? of.find<true>(rows[i]) : of.find<false>(rows[i]);
    if (slots[i] == kNone) missing = rows[i];
  }
  return missing;
}

}  // namespace recmill::store
