// SPDX-License-Identifier: Apache-2.0
// Features that are alike share one tuning and one schedule (RecFlex, section IV-B).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "batch/sparse_batch.h"
#include "kernels/schedule/feature_shape.h"

namespace recmill::kernels::tune {

/// Gathers BagStats of one feature over batches.
class BagCounter {
 public:
  void add(const JaggedView& bags);
  /// Of all samples added; those of bags of one lookup each when there were none.
  BagStats stats() const;

 private:
  int64_t samples_ = 0, lookups_ = 0, empty_ = 0, longest_ = 0;
  double squares_ = 0.0;
};

struct FeatureClass {
  FeatureShape shape;             // of its first feature
  std::vector<int64_t> features;  // ascending
  std::string kind = {};          // what else they have in common, as the family says
  bool operator==(const FeatureClass&) const = default;
};

/// Features with the same table size, dimension, precision, pooling, weighting and kind (where
/// `kinds` [features] are given), whose bags are alike: the mean and the deviation of their lengths
/// within steps of a quarter, the share of empty ones within steps of a tenth, the longest within a
/// factor of two. Classes in the order of their first feature.
std::vector<FeatureClass> group_features(std::span<const FeatureShape> shapes,
                                         std::span<const std::string> kinds = {});

/// Rows that the bags name, each counted once. `seen` [rows of the table] is all false before and
/// after.
int64_t distinct_rows_of(const JaggedView& bags, std::vector<bool>& seen);

/// How far apart two statistics of bags are: the largest of the changes of the mean length,
/// relative to the larger one, of its deviation, relative to the largest of both means and both
/// deviations, and of the share of empty bags; at most 0.2 within a class. Means below 1 / 16 are
/// all alike, and so are deviations. 1 at least where all bags had exactly one lookup and of 2,000
/// one or more has not now, as a schedule for such bags does not take batches with others, which
/// are few where those are rarer; and where all have now, and of those before a hundredth or more
/// had not: fewer may be missing by chance.
double distance(const BagStats& tuned, const BagStats& now);

}  // namespace recmill::kernels::tune
