// SPDX-License-Identifier: Apache-2.0
#include "preprocess/ops/categorify.h"

#include <algorithm>
#include <array>

#include "base/random.h"

namespace recmill::preprocess {
namespace {

constexpr int kRowBits = 40;
constexpr uint64_t kRowMask = (uint64_t{1} << kRowBits) - 1;
constexpr size_t kFirstSlots = 1024;
constexpr size_t kBlock = 64;  // ids whose slots are fetched together

uint64_t tag(uint64_t hash) {
  return hash & ~kRowMask;
}

}  // namespace

Dictionary::Dictionary(int64_t rows, WhenFull when_full, int64_t min_count)
    : rows_(rows), when_full_(when_full), min_count_(min_count), slots_(kFirstSlots, 0) {
  RECMILL_CHECK(rows >= 2, std::to_string(rows));
  RECMILL_CHECK(static_cast<uint64_t>(rows) <= kRowMask, std::to_string(rows));
}

uint64_t Dictionary::hash_of(uint64_t id) {
  return Random::mix(id);
}

/// The slot that holds `id`, or the empty one where it belongs.
uint64_t Dictionary::slot_of(uint64_t id, uint64_t hash) const {
  const uint64_t mask = slots_.size() - 1;
  uint64_t slot = hash & mask;
  while (slots_[slot] != 0) {
    const uint64_t entry = slots_[slot];
    if (tag(entry) == tag(hash) && ids_[(entry & kRowMask) - 1] == id) break;
    slot = (slot + 1) & mask;
  }
  return slot;
}

uint64_t Dictionary::add(uint64_t id, uint64_t hash, IdCounts& counts) {
  const uint64_t slot = slot_of(id, hash);
  if (slots_[slot] != 0) return slots_[slot] & kRowMask;
  if (min_count_ > 1 && !is_due(id)) return 0;
  if (is_full()) {
    if (when_full_ == WhenFull::clamp) {
      ++counts.clamped;
      return 0;
    }
    ++(when_full_ == WhenFull::drop ? counts.dropped : counts.refused);
    return kNoRow;
  }
  if (min_count_ > 1) seen_.erase(id);
  return append(id, hash);
}

/// Whether an id without a row has been added often enough, this time included.
bool Dictionary::is_due(uint64_t id) {
  if (!counts_sightings_) return seen_.contains(id);
  int64_t& seen = seen_[id];
  if (seen < min_count_ && (seen + 1 < min_count_ || is_full())) {
    ++seen;
    sightings_.push_back(id);
    return seen == min_count_;
  }
  return true;
}

void Dictionary::stop_counting() {
  if (!counts_sightings_) return;
  counts_sightings_ = false;
  // What is left are ids that are due and found no row: they stay dropped, or clamped.
  std::erase_if(seen_, [&](const auto& entry) { return entry.second < min_count_; });
}

/// The new row of an id that has none.
uint64_t Dictionary::append(uint64_t id, uint64_t hash) {
  if (ids_.size() + 1 > slots_.size() / 8 * 5) grow();
  const uint64_t slot = slot_of(id, hash);
  ids_.push_back(id);
  slots_[slot] = tag(hash) | ids_.size();
  return ids_.size();
}

void Dictionary::grow() {
  slots_.assign(slots_.size() * 2, 0);
  const uint64_t mask = slots_.size() - 1;
  for (size_t i = 0; i < ids_.size(); ++i) {
    const uint64_t hash = hash_of(ids_[i]);
    uint64_t slot = hash & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = tag(hash) | (i + 1);
  }
}

void Dictionary::add_all(std::span<const uint64_t> ids, std::span<uint64_t> rows,
                         IdCounts& counts) {
  std::array<uint64_t, kBlock> hashes;
  for (size_t begin = 0; begin < ids.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, ids.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      hashes[i] = hash_of(ids[begin + i]);
      __builtin_prefetch(&slots_[hashes[i] & (slots_.size() - 1)]);
    }
    for (size_t i = 0; i < count; ++i) rows[begin + i] = add(ids[begin + i], hashes[i], counts);
  }
}

uint64_t Dictionary::find(uint64_t id, int64_t version, IdCounts& counts, uint64_t unseen) const {
  const uint64_t row = slots_[slot_of(id, hash_of(id))] & kRowMask;
  if (row != 0 && row <= static_cast<uint64_t>(version)) return row;
  ++counts.unseen;
  return unseen;
}

void Dictionary::find_all(std::span<const uint64_t> ids, int64_t version, std::span<uint64_t> rows,
                          IdCounts& counts, uint64_t unseen) const {
  for (size_t begin = 0; begin < ids.size(); begin += kBlock) {
    const size_t end = std::min(begin + kBlock, ids.size());
    for (size_t i = begin; i < end; ++i) {
      __builtin_prefetch(&slots_[hash_of(ids[i]) & (slots_.size() - 1)]);
    }
    for (size_t i = begin; i < end; ++i) rows[i] = find(ids[i], version, counts, unseen);
  }
}

Status Dictionary::restore(std::span<const uint64_t> ids) {
  if (static_cast<int64_t>(ids.size()) > rows_ - 1) {
    return Status::Failed(std::to_string(ids.size()) + " ids do not fit into " +
                          std::to_string(rows_) + " rows");
  }
  ids_.clear();
  sightings_.clear();
  seen_.clear();
  slots_.assign(kFirstSlots, 0);
  for (const uint64_t id : ids) {
    const uint64_t hash = hash_of(id);
    if (slots_[slot_of(id, hash)] != 0) {
      return Status::Failed("id " + std::to_string(id) + " is there twice");
    }
    append(id, hash);
  }
  return {};
}

Status Dictionary::restore_sightings(std::span<const uint64_t> ids) {
  sightings_.assign(ids.begin(), ids.end());
  seen_.clear();
  for (const uint64_t id : ids) {
    if (slots_[slot_of(id, hash_of(id))] != 0) continue;  // it has got its row
    const int64_t most = is_full() ? min_count_ : min_count_ - 1;
    if (++seen_[id] > most) {
      return Status::Failed("id " + std::to_string(id) + " was seen " + std::to_string(most + 1) +
                            " times and has no row");
    }
  }
  return {};
}

}  // namespace recmill::preprocess
