// SPDX-License-Identifier: Apache-2.0
#include "step/scores.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace recmill::train {
namespace {

/// `all`: of a type that holds each value of T.
template <typename T, typename To>
Status gather(Communicator& communicator, std::span<const T> own, std::vector<To>& all) {
  if (communicator.ranks() == 1) {
    all.assign(own.begin(), own.end());
    return {};
  }
  RECMILL_ASSIGN_OR_RETURN(const Received received, communicator.all_gather(std::as_bytes(own)));
  all.resize(received.bytes.size() / sizeof(T));
  for (size_t i = 0; i < all.size(); ++i) {
    T value;
    std::memcpy(&value, received.bytes.data() + i * sizeof(T), sizeof(T));
    all[i] = value;
  }
  return {};
}

template <typename T>
void append(const std::vector<T>& more, std::vector<T>& all) {
  all.insert(all.end(), more.begin(), more.end());
}

template <typename T>
std::vector<T> with_labels(const std::vector<T>& of, const std::vector<uint8_t>& unlabelled) {
  std::vector<T> kept;
  for (size_t i = 0; i < of.size(); ++i)
    if (unlabelled[i] == 0) kept.push_back(of[i]);
  return kept;
}

}  // namespace

Scores with_labels(const Scores& scores, const std::vector<uint8_t>& unlabelled) {
  return {with_labels(scores.logits, unlabelled), with_labels(scores.labels, unlabelled),
          with_labels(scores.weights, unlabelled), with_labels(scores.groups, unlabelled)};
}

std::vector<double> probabilities_of(const Scores& scores) {
  std::vector<double> probabilities(scores.logits.size());
  std::ranges::transform(scores.logits, probabilities.begin(), metrics::probability_of);
  return probabilities;
}

void calibrate(Scores& scores, double keep) {
  if (keep >= 1.0) return;
  for (double& logit : scores.logits) logit = metrics::calibrated(logit, keep);
}

void append(const Scores& more, Scores& all) {
  append(more.logits, all.logits);
  append(more.labels, all.labels);
  append(more.weights, all.weights);
  append(more.groups, all.groups);
}

Status gather_scores(Communicator& communicator, const RankBatch& batch, const StepResult& step,
                     Scores& scores) {
  const DenseBatch& dense = batch.dense;
  RECMILL_RETURN_IF_ERROR(gather<float>(communicator, step.logits, scores.logits));
  RECMILL_RETURN_IF_ERROR(gather<float>(communicator, dense.labels, scores.labels));
  RECMILL_RETURN_IF_ERROR(gather<float>(communicator, dense.sample_weights, scores.weights));
  return gather<uint64_t>(communicator, dense.groups, scores.groups);
}

}  // namespace recmill::train
