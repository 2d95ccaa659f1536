// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/split_mix.h"
#include "device/buffer.h"

namespace recmill {

/// Rows by small numbers, and the numbers by rows, where rows come and go: a hash table by linear
/// probing, of 8 bytes a place, of which at least a quarter is empty. Beside each row is what is
/// known of it.
template <typename Known>
class RowIndex {
 public:
  using Number = uint32_t;
  static constexpr Number kNone = ~Number{0};

  RowIndex() : places_(1024) {}

  /// numbers[i] is that of row first + rows[i], or kNone.
  void find(std::span<const int64_t> rows, std::span<Number> numbers, int64_t first = 0) const {
    search(rows, first, [&](size_t i, const Place& place) { numbers[i] = place.number; });
  }

  /// The same; a row that has none gets new_number(i), which has no row. Each row is named once.
  template <typename NewNumber>
  void find_or_add(std::span<const int64_t> rows, std::span<Number> numbers,
                   const NewNumber& new_number) {
    make_room(std::ssize(rows));
    search(rows, 0, [&](size_t i, const Place& place) {
      numbers[i] = place.number;
      if (place.number != kNone) return;
      numbers[i] = new_number(i);
      put(places_[static_cast<size_t>(&place - places_.data())], rows[i], numbers[i], {});
    });
  }

  /// Neither has a partner yet. Memory grows to the largest number.
  void add(int64_t row, Number number, const Known& known = {}) {
    make_room(1);
    put(empty_place(tag(row)), row, number, known);
  }

  /// Forgets the rows of numbers that have one.
  void remove(std::span<const Number> numbers) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (i + 2 * kAhead < numbers.size()) __builtin_prefetch(&entries_[numbers[i + 2 * kAhead]]);
      if (i + kAhead < numbers.size())
        __builtin_prefetch(&places_[home(tag(entries_[numbers[i + kAhead]].first))]);
      remove_one(numbers[i]);
    }
  }

  // Of a number that has a row:
  int64_t row(Number number) const { return entries_[number].first; }
  Known& known(Number number) { return entries_[number].second; }
  const Known& known(Number number) const { return entries_[number].second; }
  /// Asks memory for these.
  void prefetch(Number number) const { __builtin_prefetch(&entries_[number]); }

  int64_t count() const { return count_; }
  int64_t bytes() const {
    return static_cast<int64_t>(entries_.capacity() * sizeof(Entry) +
                                places_.capacity() * sizeof(Place));
  }

 private:
  using Entry = std::pair<int64_t, Known>;
  struct Place {
    Number number = kNone;
    uint32_t tag = 0;  // of the row: tells most rows apart, and where its home is
  };
  static constexpr size_t kAhead = 16;

  static uint32_t tag(int64_t row) {
    return static_cast<uint32_t>(split_mix(static_cast<uint64_t>(row)));
  }
  size_t home(uint32_t tag) const { return tag & (places_.size() - 1); }
  size_t after(size_t place) const { return (place + 1) & (places_.size() - 1); }

  /// Calls found(i, place) with the place of each row, or the empty one where it would be.
  template <typename Found>
  void search(std::span<const int64_t> rows, int64_t first, const Found& found) const {
    // Places, and then the entries that they name, are on their way while others are looked at.
    uint32_t tags[2 * kAhead];
    const auto touch_place = [&](size_t i) {
      if (i >= rows.size()) return;
      tags[i % (2 * kAhead)] = tag(first + rows[i]);
      __builtin_prefetch(&places_[home(tags[i % (2 * kAhead)])]);
    };
    const auto touch_entry = [&](size_t i) {
      if (i >= rows.size()) return;
      const uint32_t wanted = tags[i % (2 * kAhead)];
      size_t place = home(wanted);
      while (places_[place].number != kNone && places_[place].tag != wanted) place = after(place);
      if (places_[place].number != kNone) __builtin_prefetch(&entries_[places_[place].number]);
    };
    for (size_t i = 0; i < 2 * kAhead; ++i) touch_place(i);
    for (size_t i = 0; i < kAhead; ++i) touch_entry(i);
    for (size_t i = 0; i < rows.size(); ++i) {
      const uint32_t wanted = tags[i % (2 * kAhead)];
      touch_entry(i + kAhead);
      touch_place(i + 2 * kAhead);
      size_t place = home(wanted);
      while (places_[place].number != kNone &&
             (places_[place].tag != wanted ||
              entries_[places_[place].number].first != first + rows[i]))
        place = after(place);
      found(i, places_[place]);
    }
  }

  Place& empty_place(uint32_t tag) {
    size_t place = home(tag);
    while (places_[place].number != kNone) place = after(place);
    return places_[place];
  }

  void put(Place& place, int64_t row, Number number, const Known& known) {
    if (number >= entries_.size()) {
      if (number >= entries_.capacity()) reserve(entries_, number + number / 4 + size_t{16});
      entries_.resize(number + size_t{1});
    }
    entries_[number] = {row, known};
    place = {number, tag(row)};
    ++count_;
  }

  void remove_one(Number number) {
    const size_t mask = places_.size() - 1;
    size_t hole = home(tag(entries_[number].first));
    while (places_[hole].number != number) hole = after(hole);
    // Those behind that a search from their home would no longer reach move up.
    for (size_t place = after(hole); places_[place].number != kNone; place = after(place)) {
      if (((place - home(places_[place].tag)) & mask) < ((place - hole) & mask)) continue;
      places_[hole] = places_[place];
      hole = place;
    }
    places_[hole] = {};
    --count_;
  }

  /// In huge pages: rows are looked for all over it.
  template <typename T>
  static void reserve(std::vector<T>& values, size_t count) {
    values.reserve(count);
    ask_for_huge_pages(values.data() + values.size(), (count - values.size()) * sizeof(T));
  }

  /// For so many more rows.
  void make_room(int64_t rows) {
    size_t wanted = places_.size();
    while (4 * (count_ + rows) > 3 * static_cast<int64_t>(wanted)) wanted *= 2;
    if (wanted == places_.size()) return;
    std::vector<Place> before;
    reserve(before, wanted);
    before.resize(wanted);
    before.swap(places_);
    for (const Place& place : before)
      if (place.number != kNone) empty_place(place.tag) = place;
  }

  std::vector<Entry> entries_;  // by number
  std::vector<Place> places_;   // a power of two
  int64_t count_ = 0;
};

}  // namespace recmill
