// SPDX-License-Identifier: Apache-2.0
// How good predictions are, by their logits. Every sum is in float64 and in the order of the
// samples, so that the numbers do not depend on threads, ranks or batches.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace recmill::train::metrics {

/// Predictions, as finite logits, and truths: probabilities near 0 and 1 are many logits each,
/// which rank apart.
struct ScoredSamples {
  std::span<const double> logits;
  std::span<const float> labels;     // above 0.5: positive
  std::span<const float> weights;    // or empty: all 1
  std::span<const uint64_t> groups;  // or empty

  size_t size() const { return logits.size(); }
  float weight(size_t i) const { return weights.empty() ? 1.0f : weights[i]; }
};

/// None: the samples do not define it. All but AUCs need samples of some weight.
struct Metrics {
  int64_t samples = 0;
  double weight = 0;                 // sum of sample weights
  std::optional<double> click_rate;  // weighted mean of labels
  /// Weighted mean of -(y ln p + (1 - y) ln(1 - p)), exact at any logit.
  std::optional<double> log_loss;
  std::optional<double> auc;   // none with one class only
  std::optional<double> gauc;  // none without groups of two classes
  int64_t gauc_groups = 0;     // groups that count: those with both classes
  /// Log loss over that of always predicting the click rate; none with one class only.
  std::optional<double> normalized_entropy;
  std::optional<double> calibration;  // sum of predictions over sum of labels; none without these
  std::optional<double> accuracy;     // share right at threshold 0.5
};

/// Exact area under the ROC curve: the weighted share of (positive, negative) pairs in which the
/// positive scores higher, ties counting half. Sorts a copy: O(n log n), 16 bytes a sample. None
/// when one class is missing.
std::optional<double> auc(const ScoredSamples& samples);

/// AUC inside each group, averaged by the groups' weights; groups of one class count for nothing.
struct GroupedAuc {
  std::optional<double> value;
  int64_t groups = 0;
};
GroupedAuc gauc(const ScoredSamples& samples);

Metrics measure(const ScoredSamples& samples);

/// 1 / (1 + exp(-logit)).
double probability_of(double logit);
/// ln(p / (1 - p)), p kept within [2^-53, 1 - 2^-53].
double logit_of(double probability);

/// The logit on the data as it is, of a model whose training kept the share `keep` of the
/// negatives, which made the odds of a click 1 / keep times what they are: logit + ln keep (He et
/// al., ADKDD 2014, section 6.3).
double calibrated(double logit, double keep);

}  // namespace recmill::train::metrics
