// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "step/metrics/metrics.h"

namespace recmill::train::metrics {

/// What a window holds, oldest first. Weights and groups are empty where samples have none.
struct WindowContents {
  int64_t total = 0;  // samples ever added
  std::vector<double> logits;
  std::vector<float> labels, weights;
  std::vector<uint64_t> groups;
  bool operator==(const WindowContents&) const = default;
};

/// The last `capacity` scored samples, oldest first once measured; capacity 0 keeps all of them.
/// 12 bytes a sample, 4 more where samples have weights and 8 where they have groups.
class SampleWindow {
 public:
  explicit SampleWindow(int64_t capacity) : capacity_(capacity) {}

  /// Of a sample.
  static int64_t sample_bytes(bool weights, bool groups) {
    return 12 + (weights ? 4 : 0) + (groups ? 8 : 0);
  }
  /// While it is measured: the samples, the same in the order of time, and sorted.
  static int64_t bytes(int64_t capacity, bool weights, bool groups) {
    return capacity * (2 * sample_bytes(weights, groups) + 16);
  }

  void add(const ScoredSamples& samples);
  void clear();
  WindowContents contents() const;
  /// Begins anew with `contents`, the oldest of them left out where the window is smaller.
  void restore(const WindowContents& contents);
  int64_t total() const { return total_; }  // samples ever added
  Metrics metrics() const;

 private:
  const int64_t capacity_;
  int64_t total_ = 0;
  size_t next_ = 0;  // where the next sample goes once the window is full
  std::vector<double> logits_;
  std::vector<float> labels_, weights_;
  std::vector<uint64_t> groups_;
};

}  // namespace recmill::train::metrics
