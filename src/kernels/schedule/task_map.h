// SPDX-License-Identifier: Apache-2.0
// Runtime thread mapping (RecFlex, section IV-B): which samples of which features each task of a
// fused call works through, decided from the actual batch. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace recmill::kernels {

/// How much there is to do for one feature in this batch.
struct FeatureWork {
  const int64_t* offsets = nullptr;  // [samples + 1] of its bags
  int64_t samples = 0;
  int64_t lookups = 0;      // of all samples
  double per_lookup = 1.0;  // cost of a lookup, in the unit of all features
  double per_sample = 1.0;  // cost of a sample beside its lookups
  double cost() const {
    return per_lookup * static_cast<double>(lookups) + per_sample * static_cast<double>(samples);
  }
};

/// Samples [first, last) of a feature.
struct Piece {
  int64_t feature = 0;
  int64_t first = 0;
  int64_t last = 0;
  bool operator==(const Piece&) const = default;
};

/// Every sample of every feature in exactly one piece; features and samples in ascending order.
struct TaskMap {
  std::vector<Piece> pieces;
  std::vector<int64_t> begins = {0};  // [tasks + 1], into pieces
  int64_t tasks() const { return static_cast<int64_t>(begins.size()) - 1; }
};

/// A tile that no feature is cut by.
constexpr int64_t kWholeFeature = int64_t{1} << 62;

struct TaskMapOptions {
  int threads = 1;
  int64_t tile = kWholeFeature;  // samples of a piece, at most
  double least_task = 0.0;       // cost of a task, at least, unless there is not so much
};

/// Tasks that get smaller: each has a share of the cost that those before it left (guided
/// self-scheduling: Polychronopoulos and Kuck, 1987). So there are few of them, and the last ones
/// to finish are short. Takes O(features + tasks log samples), and keeps the memory of `map`.
void map_tasks(std::span<const FeatureWork> features, const TaskMapOptions& options, TaskMap& map);

}  // namespace recmill::kernels
