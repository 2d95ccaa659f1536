// SPDX-License-Identifier: Apache-2.0
#include "step/metrics/sample_window.h"

#include <algorithm>

namespace recmill::train::metrics {
namespace {

template <typename T>
std::vector<T> oldest_first(const std::vector<T>& ring, size_t oldest) {
  std::vector<T> straight(ring.begin() + static_cast<int64_t>(oldest), ring.end());
  straight.insert(straight.end(), ring.begin(), ring.begin() + static_cast<int64_t>(oldest));
  return straight;
}

}  // namespace

void SampleWindow::add(const ScoredSamples& samples) {
  const bool weighted = !samples.weights.empty() || !weights_.empty();
  if (weighted) weights_.resize(logits_.size(), 1.0f);
  for (size_t i = 0; i < samples.size(); ++i) {
    const bool full = capacity_ > 0 && static_cast<int64_t>(logits_.size()) == capacity_;
    if (!full) {
      logits_.push_back(samples.logits[i]);
      labels_.push_back(samples.labels[i]);
      if (weighted) weights_.push_back(samples.weight(i));
      if (!samples.groups.empty()) groups_.push_back(samples.groups[i]);
      continue;
    }
    logits_[next_] = samples.logits[i];
    labels_[next_] = samples.labels[i];
    if (weighted) weights_[next_] = samples.weight(i);
    if (!samples.groups.empty()) groups_[next_] = samples.groups[i];
    next_ = (next_ + 1) % static_cast<size_t>(capacity_);
  }
  total_ += static_cast<int64_t>(samples.size());
}

void SampleWindow::clear() {
  total_ = 0;
  next_ = 0;
  logits_.clear();
  labels_.clear();
  weights_.clear();
  groups_.clear();
}

WindowContents SampleWindow::contents() const {
  return {total_, oldest_first(logits_, next_), oldest_first(labels_, next_),
          weights_.empty() ? weights_ : oldest_first(weights_, next_),
          groups_.empty() ? groups_ : oldest_first(groups_, next_)};
}

void SampleWindow::restore(const WindowContents& contents) {
  clear();
  add({contents.logits, contents.labels, contents.weights, contents.groups});
  total_ = contents.total;
}

Metrics SampleWindow::metrics() const {
  if (next_ == 0) return measure({logits_, labels_, weights_, groups_});
  const auto logits = oldest_first(logits_, next_);
  const auto labels = oldest_first(labels_, next_);
  const auto weights = weights_.empty() ? weights_ : oldest_first(weights_, next_);
  const auto groups = groups_.empty() ? groups_ : oldest_first(groups_, next_);
  return measure({logits, labels, weights, groups});
}

}  // namespace recmill::train::metrics
