// SPDX-License-Identifier: Apache-2.0
// Logistic regression over raw columns, by which models are judged: each id an indicator, dense
// columns standardised, the L2 strength that is best on the rows that are scored.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include "batch/column_batch.h"

namespace recmill::cli {

/// Rows as sparse features.
struct FeatureRows {
  std::vector<size_t> ends;
  std::vector<std::pair<int, double>> features;  // index, value
  std::vector<double> labels;
};

/// Makes features of columns. Indexes are those of the rows that fit() saw.
class IndicatorFeatures {
 public:
  /// Dense columns enter as they are, or, with `logarithms`, as ln(1 + max(x, 0)).
  IndicatorFeatures(const ColumnBatch& rows, bool logarithms) : logarithms_(logarithms) {
    for (const auto& column : rows.dense) {
      double sum = 0, squares = 0;
      for (const float cell : column) {
        const double x = value(cell);
        sum += x;
        squares += x * x;
      }
      const double n = static_cast<double>(rows.samples), mean = sum / n;
      const double variance = squares / n - mean * mean;
      means_.push_back(mean);
      scales_.push_back(variance > 0 ? 1 / std::sqrt(variance) : 0);
    }
    size_ = static_cast<int>(1 + rows.dense.size());
    for (size_t c = 0; c < rows.ids.size(); ++c) {
      for (const uint64_t id : rows.ids[c].ids) {
        if (indexes_.emplace(std::pair(c, id), size_).second) ++size_;
      }
    }
  }

  int size() const { return size_; }

  FeatureRows of(const ColumnBatch& rows) const {
    FeatureRows out;
    for (size_t i = 0; i < static_cast<size_t>(rows.samples); ++i) {
      out.features.emplace_back(0, 1.0);
      for (size_t c = 0; c < rows.dense.size(); ++c) {
        out.features.emplace_back(static_cast<int>(1 + c),
                                  (value(rows.dense[c][i]) - means_[c]) * scales_[c]);
      }
      for (size_t c = 0; c < rows.ids.size(); ++c) {
        const auto& offsets = rows.ids[c].offsets;
        for (auto j = offsets[i]; j < offsets[i + 1]; ++j) {
          const auto found = indexes_.find({c, rows.ids[c].ids[static_cast<size_t>(j)]});
          if (found != indexes_.end()) out.features.emplace_back(found->second, 1.0);
        }
      }
      out.ends.push_back(out.features.size());
      out.labels.push_back(rows.labels[i]);
    }
    return out;
  }

 private:
  double value(float cell) const {
    if (std::isnan(cell)) return 0;
    return logarithms_ ? std::log1p(std::max(cell, 0.0f)) : cell;
  }

  const bool logarithms_;
  int size_ = 0;
  std::vector<double> means_, scales_;
  std::map<std::pair<size_t, uint64_t>, int> indexes_;
};

using Vector = std::vector<double>;

inline double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

inline Vector logits(const FeatureRows& rows, const Vector& weights) {
  Vector out;
  for (size_t i = 0, begin = 0; i < rows.ends.size(); begin = rows.ends[i++]) {
    double sum = 0;
    for (size_t j = begin; j < rows.ends[i]; ++j) {
      sum += weights[static_cast<size_t>(rows.features[j].first)] * rows.features[j].second;
    }
    out.push_back(sum);
  }
  return out;
}

/// Sum of log losses plus strength / 2 of the squared weights (but the first), and its gradient.
inline double objective(const FeatureRows& rows, const Vector& weights, double strength,
                        Vector& gradient) {
  double loss = 0.5 * strength * (dot(weights, weights) - weights[0] * weights[0]);
  for (size_t k = 0; k < weights.size(); ++k) gradient[k] = k == 0 ? 0 : strength * weights[k];
  const Vector z = logits(rows, weights);
  for (size_t i = 0, begin = 0; i < z.size(); begin = rows.ends[i++]) {
    loss += std::log1p(std::exp(-std::abs(z[i]))) + std::max(z[i], 0.0) - rows.labels[i] * z[i];
    const double error = 1 / (1 + std::exp(-z[i])) - rows.labels[i];
    for (size_t j = begin; j < rows.ends[i]; ++j) {
      gradient[static_cast<size_t>(rows.features[j].first)] += error * rows.features[j].second;
    }
  }
  return loss;
}

/// Minimises by L-BFGS, from `weights` on.
inline void fit(const FeatureRows& rows, double strength, Vector& weights) {
  Vector gradient(weights.size()), next_gradient(weights.size());
  double loss = objective(rows, weights, strength, gradient);
  std::deque<std::pair<Vector, Vector>> steps;  // changes of weights and gradients
  for (int iteration = 0; iteration < 60; ++iteration) {
    Vector direction = gradient;
    std::vector<double> shares(steps.size());
    for (size_t k = steps.size(); k-- > 0;) {
      const auto& [s, y] = steps[k];
      shares[k] = dot(s, direction) / dot(s, y);
      for (size_t i = 0; i < direction.size(); ++i) direction[i] -= shares[k] * y[i];
    }
    const double scale = steps.empty() ? 1 / std::sqrt(1 + dot(gradient, gradient))
                                       : dot(steps.back().first, steps.back().second) /
                                             dot(steps.back().second, steps.back().second);
    for (double& x : direction) x *= scale;
    for (size_t k = 0; k < steps.size(); ++k) {
      const auto& [s, y] = steps[k];
      const double share = shares[k] - dot(y, direction) / dot(s, y);
      for (size_t i = 0; i < direction.size(); ++i) direction[i] += share * s[i];
    }
    const double slope = dot(direction, gradient);
    Vector next(weights.size());
    double rate = 1, next_loss = 0;
    for (int halvings = 0; halvings < 30; ++halvings, rate /= 2) {
      for (size_t i = 0; i < next.size(); ++i) next[i] = weights[i] - rate * direction[i];
      next_loss = objective(rows, next, strength, next_gradient);
      if (next_loss <= loss - 1e-4 * rate * slope) break;
    }
    if (loss - next_loss < 1e-6 * std::abs(loss)) return;
    Vector s(weights.size()), y(weights.size());
    for (size_t i = 0; i < s.size(); ++i) {
      s[i] = next[i] - weights[i];
      y[i] = next_gradient[i] - gradient[i];
    }
    if (dot(s, y) > 1e-12) steps.emplace_back(std::move(s), std::move(y));
    if (steps.size() > 8) steps.pop_front();
    weights.swap(next);
    gradient.swap(next_gradient);
    loss = next_loss;
  }
}

/// The chance that a positive row is above a negative one; ties count half.
inline double area_under_curve(const Vector& scores, const Vector& labels) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  double pairs = 0, positives = 0, negatives = 0;
  for (size_t i = 0; i < order.size();) {
    double up = 0, down = 0;
    const double score = scores[order[i]];
    for (; i < order.size() && scores[order[i]] == score; ++i) {
      (labels[order[i]] == 1 ? up : down) += 1;
    }
    pairs += up * (negatives + 0.5 * down);
    positives += up;
    negatives += down;
  }
  return pairs / (positives * negatives);
}

/// The best AUC of `eval` over strengths of L2, falling, and both ways with dense columns.
inline double regression_auc(const ColumnBatch& train, const ColumnBatch& eval,
                             std::span<const double> strengths) {
  double best = 0;
  for (const bool logarithms : {false, true}) {
    if (logarithms && train.dense.empty()) continue;
    const IndicatorFeatures features(train, logarithms);
    const FeatureRows rows = features.of(train), held = features.of(eval);
    Vector weights(static_cast<size_t>(features.size()), 0.0);
    for (const double strength : strengths) {  // each starts where the last one ended
      fit(rows, strength, weights);
      best = std::max(best, area_under_curve(logits(held, weights), held.labels));
    }
  }
  return best;
}

}  // namespace recmill::cli
