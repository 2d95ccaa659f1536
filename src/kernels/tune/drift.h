// SPDX-License-Identifier: Apache-2.0
// Whether features still are as they were when their schedules were chosen (RecFlex, section IV-A3:
// schedules are tuned again when the input's distribution shifts).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batch/sparse_batch.h"
#include "kernels/tune/feature_classes.h"
#include "kernels/tune/tuning.h"

namespace recmill::kernels::tune {

/// Farther than this (distance()) from the statistics of its class, a feature has drifted. Features
/// of one class are up to 0.2 apart.
constexpr double kDriftDistance = 0.4;

struct Drift {
  int64_t feature = 0;
  BagStats tuned, now;
  double distance = 0.0;
  bool operator==(const Drift&) const = default;
};

/// The features of `classes` that drifted, the farthest first; `now` [features].
std::vector<Drift> drifted(std::span<const FeatureClass> classes, std::span<const BagStats> now);

/// Watches batches go by. Counts a window of them, then compares, then lets many pass; what it
/// costs is a walk over the offsets of less than a hundredth of all batches.
class DriftWatch {
 public:
  static constexpr int64_t kWindowBatches = 8;     // at least
  static constexpr int64_t kWindowSamples = 1024;  // at least: fewer say little
  static constexpr int64_t kPassed = 1000;         // batches between windows

  /// `features`: of the model; classes name some of them.
  DriftWatch(std::vector<FeatureClass> classes, size_t features);
  /// What drifted, where this batch ends a window; ends watching when something did.
  std::vector<Drift> see(const SparseBatch& batch);

 private:
  const std::vector<FeatureClass> classes_;
  std::vector<BagCounter> counters_;  // [features], of the window under way
  int64_t batches_ = 0, samples_ = 0;
  int64_t passing_ = 0;
  bool over_ = false;
};

/// Recorded times without what drifted, and what did.
struct Regrouped {
  FamilyTimes times;
  std::vector<Drift> moved;
};

/// Features that did not drift keep their class and its times. The others are in classes of their
/// own, grouped by what they are now, without candidates: measure() times these. `features`: each
/// alone in its class, as it is now; the classes cover these, and no others of the record.
Regrouped regroup(const FamilyTimes& record, std::span<const FeatureClass> features);

}  // namespace recmill::kernels::tune
