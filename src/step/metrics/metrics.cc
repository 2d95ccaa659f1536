// SPDX-License-Identifier: Apache-2.0
#include "step/metrics/metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace recmill::train::metrics {
namespace {

struct Scored {
  double logit;
  float weight;
  bool positive;
};

// Walks runs of equal scores upwards: each positive beats the negatives below it, and half of those
// beside it.
std::optional<double> auc_of(std::vector<Scored>& samples) {
  std::sort(samples.begin(), samples.end(),
            [](const Scored& a, const Scored& b) { return a.logit < b.logit; });
  double below = 0, pairs = 0, positives = 0;
  for (size_t i = 0; i < samples.size();) {
    double tied_positive = 0, tied_negative = 0;
    const double logit = samples[i].logit;
    for (; i < samples.size() && samples[i].logit == logit; ++i) {
      (samples[i].positive ? tied_positive : tied_negative) += samples[i].weight;
    }
    pairs += tied_positive * (below + 0.5 * tied_negative);
    below += tied_negative;
    positives += tied_positive;
  }
  if (positives == 0 || below == 0) return std::nullopt;
  return pairs / (positives * below);
}

Scored scored(const ScoredSamples& samples, size_t i) {
  return {samples.logits[i], samples.weight(i), samples.labels[i] > 0.5f};
}

// -ln(1 - p) of a logit, without p: neither overflows nor rounds to 0 before exp() does.
double softplus(double logit) {
  return std::max(logit, 0.0) + std::log1p(std::exp(-std::fabs(logit)));
}

// Of two weights as shares of their sum, the smaller of which may vanish beside it.
double entropy(double a, double b) {
  if (a <= 0 || b <= 0) return 0.0;
  const double smaller = std::min(a, b) / (a + b);
  return -(smaller * std::log(smaller) + (1 - smaller) * std::log1p(-smaller));
}

}  // namespace

std::optional<double> auc(const ScoredSamples& samples) {
  std::vector<Scored> copy(samples.size());
  for (size_t i = 0; i < copy.size(); ++i) copy[i] = scored(samples, i);
  return auc_of(copy);
}

GroupedAuc gauc(const ScoredSamples& samples) {
  if (samples.groups.empty()) return {};
  std::vector<size_t> order(samples.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return samples.groups[a] < samples.groups[b]; });
  GroupedAuc result;
  double sum = 0, weight = 0;
  std::vector<Scored> group;
  for (size_t i = 0; i < order.size();) {
    const uint64_t key = samples.groups[order[i]];
    double group_weight = 0;
    group.clear();
    for (; i < order.size() && samples.groups[order[i]] == key; ++i) {
      group.push_back(scored(samples, order[i]));
      group_weight += group.back().weight;
    }
    if (const auto value = auc_of(group)) {
      sum += group_weight * *value;
      weight += group_weight;
      ++result.groups;
    }
  }
  if (weight > 0) result.value = sum / weight;
  return result;
}

Metrics measure(const ScoredSamples& samples) {
  Metrics metrics;
  metrics.samples = static_cast<int64_t>(samples.size());
  double loss = 0, labels = 0, others = 0, predictions = 0, right = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const double w = samples.weight(i), y = samples.labels[i], logit = samples.logits[i];
    metrics.weight += w;
    loss += w * (y * softplus(-logit) + (1 - y) * softplus(logit));
    labels += w * y;
    others += w * (1 - y);
    predictions += w * probability_of(logit);
    right += (logit > 0) == (y > 0.5) ? w : 0.0;
  }
  if (metrics.weight > 0) {
    metrics.click_rate = labels / metrics.weight;
    metrics.log_loss = loss / metrics.weight;
    metrics.accuracy = right / metrics.weight;
  }
  const double baseline = entropy(labels, others);
  if (baseline > 0) metrics.normalized_entropy = *metrics.log_loss / baseline;
  if (labels > 0) metrics.calibration = predictions / labels;
  metrics.auc = auc(samples);
  const GroupedAuc grouped = gauc(samples);
  metrics.gauc = grouped.value;
  metrics.gauc_groups = grouped.groups;
  return metrics;
}

double probability_of(double logit) {
  const double e = std::exp(-std::fabs(logit));
  return logit >= 0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
}

double logit_of(double probability) {
  constexpr double kSmallest = 1.0 / (int64_t{1} << 53);
  const double p = std::clamp(probability, kSmallest, 1.0 - kSmallest);
  return std::log(p / (1.0 - p));
}

double calibrated(double logit, double keep) {
  return logit + std::log(keep);
}

}  // namespace recmill::train::metrics
