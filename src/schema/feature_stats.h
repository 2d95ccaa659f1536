// SPDX-License-Identifier: Apache-2.0
// What a data set's columns are like, as a value: measured once by stats/, read by every decider
// and printed by `recmill stats`. Its JSON is described in docs/formats/feature_stats.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json/json_fwd.h"
#include "base/status.h"

namespace recmill {

/// The values in [from, to), or the one value where these are equal, and the sum of their labels.
struct ValueBucket {
  double from = 0, to = 0;
  int64_t cells = 0;
  double labels = 0;
  bool operator==(const ValueBucket&) const = default;
};

struct DenseColumnStats {
  std::string name;
  int64_t missing = 0;                        // cells
  double minimum = 0, maximum = 0, mean = 0;  // of the others; 0 when there are none
  double missing_labels = 0;                  // sum of the labels of cells without a value
  /// By value: four of the same length from each power of two to the next, 0 by itself; those that
  /// have cells.
  std::vector<ValueBucket> buckets;
  bool operator==(const DenseColumnStats&) const = default;
};

/// An id, how often it was looked up, and the sum of the labels of these lookups' samples.
struct FrequentId {
  uint64_t id = 0;
  int64_t lookups = 0;
  double labels = 0;
  bool operator==(const FrequentId&) const = default;
};

struct IdColumnStats {
  std::string name;
  int64_t missing = 0;        // samples with an empty bag
  double missing_labels = 0;  // sum of their labels
  int64_t lookups = 0;        // ids in all bags
  int64_t longest = 0;        // ids in a bag
  /// lengths[0]: empty bags; lengths[b]: bags of 2^(b-1) ... 2^b - 1 ids.
  std::vector<int64_t> lengths;

  bool exact = true;          // every id was counted; else the figures below are estimates
  int64_t cardinality = 0;    // different ids; an estimate has a standard error of 0.81 %
  int64_t undercount = 0;     // a count behind a share below may be low by this much
  double top_1_percent = 0;   // share of the lookups that the most frequent 1 % of the ids take
  double top_10_percent = 0;  // 10 %
  double zipf = 0;            // exponent fitted to count by rank; 0: too few ids
  /// The most frequent ids, at most 12, among the first 65,536 different ones of the data.
  std::vector<FrequentId> frequent;

  int64_t table_rows = 0;            // of the table it was asked for; 0: none
  double expected_collisions = 0;    // ids without a row of their own, under a uniform hash
  int64_t observed_collisions = -1;  // under the hash in use; -1: not exact, or not asked for
  bool operator==(const IdColumnStats&) const = default;
};

struct FeatureStats {
  int64_t samples = 0;
  double label_mean = 0;
  std::vector<DenseColumnStats> dense;
  std::vector<IdColumnStats> ids;
  bool operator==(const FeatureStats&) const = default;
};

Json to_json(const FeatureStats& stats);
/// Errors name the column and the key.
Result<FeatureStats> feature_stats_from_json(const Json& json);

}  // namespace recmill
