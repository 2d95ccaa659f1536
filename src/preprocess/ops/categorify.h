// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/saturating.h"
#include "base/status.h"
#include "preprocess/ops/op.h"

namespace recmill::preprocess {

/// Categorify: an exact dictionary from raw ids to rows that grows while it sees training data.
/// The n-th distinct id, in the order of the samples, gets row n, from 1; row 0 is that of ids
/// which evaluation meets and the dictionary lacks. The only op with state: a list of ids that is
/// appended to and never changed, so its first n entries are the dictionary as it was when it had
/// n. That count is its version: what a batch, an evaluation or a checkpoint remembers.
///
/// With a min_count above 1 an id has row 0 until it has been added so often; the sightings before
/// are a second list, appended to as well, of which a version remembers the length too. Passes over
/// the same data again see nothing new: after stop_counting() an id without a row keeps row 0.
///
/// Not safe for use by several threads at once.
class Dictionary {
 public:
  /// Estimate, when it is full: the id, its slot, and what growing takes. As many ids as there are
  /// rows may wait for one, where they have to come `min_count` times.
  static int64_t bytes(int64_t rows, int64_t min_count) {
    constexpr int64_t kEntryBytes = 40;
    return saturating_product({rows, min_count > 1 ? 2 : 1, kEntryBytes});
  }

  /// What a new id becomes when all rows are taken: refused, row 0 (counted as clamped), or left
  /// out (counted as dropped).
  enum class WhenFull { error, clamp, drop };

  /// `rows` >= 2 counts row 0: the dictionary holds up to rows - 1 ids.
  Dictionary(int64_t rows, WhenFull when_full, int64_t min_count = 1);

  /// Row of `id`, which is appended if it is new, was added often enough and there is a row for it;
  /// else kNoRow or row 0.
  uint64_t add(uint64_t id, IdCounts& counts) { return add(id, hash_of(id), counts); }
  /// add() for each id in order; `rows` may be `ids`.
  void add_all(std::span<const uint64_t> ids, std::span<uint64_t> rows, IdCounts& counts);

  /// Row of `id` among the first `version` entries; `unseen`, and counted so, if it is not there.
  uint64_t find(uint64_t id, int64_t version, IdCounts& counts, uint64_t unseen = 0) const;
  /// find() for each id; `rows` may be `ids`.
  void find_all(std::span<const uint64_t> ids, int64_t version, std::span<uint64_t> rows,
                IdCounts& counts, uint64_t unseen = 0) const;

  /// Counts no more sightings: ids that were not due by now never are.
  void stop_counting();

  int64_t version() const { return static_cast<int64_t>(ids_.size()); }
  int64_t rows() const { return rows_; }
  /// The id of row 1 + i at [i]; valid until the next add.
  std::span<const uint64_t> ids() const { return ids_; }
  /// Ids as they were added while their rows were not due; once more each when one became due and
  /// no row was left.
  std::span<const uint64_t> sightings() const { return sightings_; }

  /// Replaces the entries (those of a checkpoint). An id that is there twice, or more ids than
  /// rows, is an error.
  Status restore(std::span<const uint64_t> ids);
  /// The same of sightings, behind restore(). One too many of an id is an error.
  Status restore_sightings(std::span<const uint64_t> ids);

 private:
  static uint64_t hash_of(uint64_t id);
  uint64_t add(uint64_t id, uint64_t hash, IdCounts& counts);
  bool is_due(uint64_t id);
  bool is_full() const { return version() == rows_ - 1; }
  uint64_t append(uint64_t id, uint64_t hash);
  uint64_t slot_of(uint64_t id, uint64_t hash) const;
  void grow();

  const int64_t rows_;
  const WhenFull when_full_;
  const int64_t min_count_;
  std::vector<uint64_t> ids_;  // in order of first sight
  // Open addressing: 0 is empty, else the row (low 40 bits) and 24 bits of the id's hash, so that
  // most other ids are told apart without a look at ids_. Size is a power of two.
  std::vector<uint64_t> slots_;
  std::vector<uint64_t> sightings_;
  std::unordered_map<uint64_t, int64_t> seen_;  // how often, of ids without a row
  bool counts_sightings_ = true;
};

}  // namespace recmill::preprocess
