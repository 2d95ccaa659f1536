// SPDX-License-Identifier: Apache-2.0
#include "step/metrics/testing/metric_cases.h"

#include "base/random.h"

namespace recmill::train::metrics {
namespace {

// Ways of logits, each a number of the case in turn.
double draw_logit(const Random& random, uint64_t way, uint64_t i) {
  const double centred = 2.0 * static_cast<double>(random.uniform(i, 0)) - 1.0;
  const auto step = static_cast<double>(random.below(5, i, 4)) - 2.0;
  switch (way) {
    case 0:
      return 8 * centred;
    case 1:
      return 2 * step;  // five values: many ties
    case 2:
      return 100 * centred;  // probabilities of 0 and 1, in float32 and in float64
    case 3:
      return -60 - 10 * step;  // probabilities that float32 rounds to 0
    case 4:
      return 40 + step * 0x1p-40;  // logits that float32 does not tell apart
    default:
      return step * 1e6;
  }
}

}  // namespace

MetricCase metric_case(uint64_t number) {
  const Random random(17, Purpose::test, number);
  MetricCase made;
  const uint64_t samples = 1 + random.below(64, 0, 16);
  const uint64_t way = number % 6, weighting = number / 6 % 3, classes = number / 18 % 5;
  for (uint64_t i = 0; i < samples; ++i) {
    made.logits.push_back(draw_logit(random, way, i));
    // One class, the other, mostly the first, and two of both.
    const uint64_t in_eight = classes < 2 ? 8 * classes : classes == 2 ? 1 : 4;
    made.labels.push_back(random.below(8, i, 8) < in_eight ? 1.0f : 0.0f);
    if (weighting == 1) made.weights.push_back(0.01f + 5 * random.uniform(i, 12));
    if (weighting == 2) made.weights.push_back(static_cast<float>(random.below(3, i, 12)));
    made.groups.push_back(random.below(4, i, 20));
  }
  return made;
}

}  // namespace recmill::train::metrics
