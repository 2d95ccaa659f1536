// SPDX-License-Identifier: Apache-2.0
// What the visits of a candidate come to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.h"

namespace recmill::kernels::tune {

/// The numbers below `count` in a random order.
std::vector<size_t> shuffled(size_t count, const Random& random, uint64_t item);

double median(std::vector<double> values);

/// The time of a batch, by its visits: the mean of those without a hiccup. A schedule that is often
/// late, as one whose table does not always stay in the cache, has its share of that, which the
/// median would not show.
double typical(const std::vector<double>& values);

struct VisitTime {
  double nanoseconds = 0.0;
  double spread = 0.0;  // half the distance between the quartiles, as a share of it
};
/// Of `batches` [batches][visits] the mean over those that were visited (equation 5), which are the
/// same for all candidates.
VisitTime time_of(const std::vector<std::vector<double>>& batches);

}  // namespace recmill::kernels::tune
