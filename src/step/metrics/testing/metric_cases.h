// SPDX-License-Identifier: Apache-2.0
// Seeded samples that are hard on metrics: ties, weights of 0, saturated logits, single classes.
#pragma once

#include <cstdint>
#include <vector>

#include "step/metrics/metrics.h"

namespace recmill::train::metrics {

struct MetricCase {
  std::vector<double> logits;
  std::vector<float> labels, weights;  // weights: or empty
  std::vector<uint64_t> groups;
  ScoredSamples view() const { return {logits, labels, weights, groups}; }
};

inline constexpr uint64_t kMetricCases = 10000;

/// Case `number`, the same on every machine: 1 to 64 samples with labels 0 and 1.
MetricCase metric_case(uint64_t number);

}  // namespace recmill::train::metrics
