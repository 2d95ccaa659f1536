// SPDX-License-Identifier: Apache-2.0
// How predictions are held against measurements.
#pragma once

#include <span>
#include <vector>

namespace recmill::bench {

/// Spearman's rank correlation of two lists of one length, 2 or more: Pearson's of their ranks,
/// where equal values share the mean of theirs. 0 where all values of a list are equal.
double spearman(std::span<const double> a, std::span<const double> b);

/// |predicted - measured| / measured.
double relative_error(double predicted, double measured);

/// The factors of terms whose sums are nearest `values`, all above 0, by the sum of squares of
/// relative errors: values[i] ~ sum over k of factor[k] * terms[i][k]. As costs are, none is below
/// 0: one that would be is 0, and the others are found without it. Terms that others make up are
/// left out likewise.
std::vector<double> fit_costs(std::span<const std::vector<double>> terms,
                              std::span<const double> values);

}  // namespace recmill::bench
