// SPDX-License-Identifier: Apache-2.0
#include "remote/record_map.h"

#include <algorithm>
#include <utility>

#include "base/split_mix.h"
#include "base/status.h"

namespace recmill::remote {
namespace {

constexpr int64_t kChunkBytes = 64 << 10;
constexpr size_t kFirstEntries = 16;

}  // namespace

RecordMap::RecordMap(int64_t record_bytes)
    : record_bytes_(static_cast<size_t>(record_bytes)),
      chunk_records_(static_cast<uint32_t>(std::max<int64_t>(1, kChunkBytes / record_bytes))) {
  rows_.assign(kFirstEntries, kNoRow);
  places_.resize(kFirstEntries);
}

/// The hash as a fraction of the entries.
size_t RecordMap::first_entry(int64_t row) const {
  const auto hash = static_cast<unsigned __int128>(split_mix(static_cast<uint64_t>(row)));
  return static_cast<size_t>(hash * rows_.size() >> 64);
}

int64_t RecordMap::entry_of(int64_t row) const {
  for (size_t i = first_entry(row);; i = i + 1 == rows_.size() ? 0 : i + 1) {
    if (rows_[i] == row) return static_cast<int64_t>(i);
    if (rows_[i] == kNoRow) return -1;
  }
}

const std::byte* RecordMap::find(int64_t row) const {
  const int64_t entry = entry_of(row);
  return entry < 0 ? nullptr : record(places_[static_cast<size_t>(entry)]);
}

size_t RecordMap::insert(int64_t row) {
  if (const int64_t entry = entry_of(row); entry >= 0) return static_cast<size_t>(entry);
  if (4 * (used_ + 1) > 3 * rows_.size()) grow();
  size_t i = first_entry(row);
  while (rows_[i] != kNoRow) i = i + 1 == rows_.size() ? 0 : i + 1;
  rows_[i] = row;
  places_[i] = kInitial;
  ++used_;
  return i;
}

void RecordMap::grow() {
  const size_t entries = rows_.size() + rows_.size() / 2;
  const auto rows = std::exchange(rows_, std::vector<int64_t>(entries, kNoRow));
  const auto places = std::exchange(places_, std::vector<uint32_t>(entries));
  for (size_t from = 0; from < rows.size(); ++from) {
    if (rows[from] == kNoRow) continue;
    size_t i = first_entry(rows[from]);
    while (rows_[i] != kNoRow) i = i + 1 == entries ? 0 : i + 1;
    rows_[i] = rows[from];
    places_[i] = places[from];
  }
}

std::byte* RecordMap::make(int64_t row) {
  uint32_t& place = places_[insert(row)];
  if (place != kInitial) return record(place);
  ++records_;
  if (!free_places_.empty()) {
    place = free_places_.back();
    free_places_.pop_back();
    return record(place);
  }
  RECMILL_CHECK(next_place_ != kInitial, "rows of one table at one server");
  place = next_place_++;
  if (place / chunk_records_ == chunks_.size())
    chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(chunk_records_ * record_bytes_));
  return record(place);
}

void RecordMap::make_initial(int64_t row) {
  uint32_t& place = places_[insert(row)];
  if (place == kInitial) return;
  --records_;
  free_places_.push_back(std::exchange(place, kInitial));
}

int64_t RecordMap::bytes() const {
  return static_cast<int64_t>(rows_.size() * (sizeof(int64_t) + sizeof(uint32_t)) +
                              chunks_.size() * chunk_records_ * record_bytes_ +
                              free_places_.size() * sizeof(uint32_t));
}

}  // namespace recmill::remote
