// SPDX-License-Identifier: Apache-2.0
#include "bench/zipf.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace recmill::bench {

ZipfRows::ZipfRows(int64_t rows, double exponent, int64_t shift)
    : rows_(rows), shift_(shift), shares_(rows) {
  double sum = 0.0;
  for (int64_t i = 0; i < rows; ++i)
    shares_[i] = sum += std::pow(static_cast<double>(i + 1), -exponent);
  for (double& share : shares_) share /= sum;
  while (std::gcd(stride_, rows) != 1) ++stride_;
}

int64_t ZipfRows::row(double uniform) const {
  const auto rank = std::upper_bound(shares_.begin(), shares_.end(), uniform) - shares_.begin();
  return (std::min<int64_t>(rank, rows_ - 1) * stride_ + shift_) % rows_;
}

}  // namespace recmill::bench
