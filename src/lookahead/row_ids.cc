// SPDX-License-Identifier: Apache-2.0
#include "lookahead/row_ids.h"

#include <algorithm>

#include "base/split_mix.h"

namespace recmill::lookahead {

RowIds::RowIds() : places_(1024, kEmpty) {}

size_t RowIds::home(int64_t row) const {
  return split_mix(static_cast<uint64_t>(row)) & (places_.size() - 1);
}

void RowIds::find_or_add(std::span<const int64_t> rows, std::span<Id> ids,
                         std::vector<bool>& fresh) {
  while (4 * (count_ + static_cast<int64_t>(rows.size())) > 3 * std::ssize(places_)) grow();
  fresh.assign(rows.size(), false);
  // Places, and then the rows that they name, are on their way while others are looked at.
  constexpr size_t kAhead = 16;
  const auto touch_place = [&](size_t i) {
    if (i < rows.size()) __builtin_prefetch(&places_[home(rows[i])]);
  };
  const auto touch_row = [&](size_t i) {
    if (i >= rows.size()) return;
    const Id id = places_[home(rows[i])];
    if (id != kEmpty) __builtin_prefetch(&rows_[id]);
  };
  for (size_t i = 0; i < 2 * kAhead; ++i) touch_place(i);
  for (size_t i = 0; i < kAhead; ++i) touch_row(i);
  for (size_t i = 0; i < rows.size(); ++i) {
    touch_place(i + 2 * kAhead);
    touch_row(i + kAhead);
    size_t place = home(rows[i]);
    while (places_[place] != kEmpty && rows_[places_[place]].row != rows[i])
      place = (place + 1) & (places_.size() - 1);
    if (places_[place] == kEmpty) {
      fresh[i] = true;
      if (unused_.empty()) {
        unused_.push_back(static_cast<Id>(rows_.size()));
        rows_.emplace_back();
      }
      places_[place] = unused_.back();
      unused_.pop_back();
      rows_[places_[place]] = {rows[i]};
      ++count_;
    }
    ids[i] = places_[place];
  }
}

void RowIds::remove(Id id) {
  const size_t mask = places_.size() - 1;
  size_t hole = home(rows_[id].row);
  while (places_[hole] != id) hole = (hole + 1) & mask;
  // Those behind that a search from their home would no longer reach move up.
  for (size_t place = (hole + 1) & mask; places_[place] != kEmpty; place = (place + 1) & mask) {
    const size_t from = home(rows_[places_[place]].row);
    if (((place - from) & mask) < ((place - hole) & mask)) continue;
    places_[hole] = places_[place];
    hole = place;
  }
  places_[hole] = kEmpty;
  unused_.push_back(id);
  --count_;
}

void RowIds::grow() {
  std::vector<Id> before(places_.size() * 2, kEmpty);
  before.swap(places_);
  for (const Id id : before) {
    if (id == kEmpty) continue;
    size_t place = home(rows_[id].row);
    while (places_[place] != kEmpty) place = (place + 1) & (places_.size() - 1);
    places_[place] = id;
  }
}

int64_t RowIds::bytes() const {
  return static_cast<int64_t>(rows_.capacity() * sizeof(Row) +
                              (unused_.capacity() + places_.capacity()) * sizeof(Id));
}

}  // namespace recmill::lookahead
