// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "step/metrics/metrics.h"
#include "step/rank_batch.h"
#include "step/trainer.h"

namespace recmill::train {

/// Predictions and truths of the samples of one global batch, in global order.
struct Scores {
  std::vector<double> logits;
  std::vector<float> labels;
  std::vector<float> weights;    // or empty: all 1
  std::vector<uint64_t> groups;  // or empty

  metrics::ScoredSamples view() const { return {logits, labels, weights, groups}; }
};

/// Of every sample, in float64.
std::vector<double> probabilities_of(const Scores& scores);

/// Turns predictions of a model that trained on the share `keep` of the negatives into those on the
/// data as it is (metrics::calibrated); keep = 1 changes nothing.
void calibrate(Scores& scores, double keep);

/// Those of the samples that have a label.
Scores with_labels(const Scores& scores, const std::vector<uint8_t>& unlabelled);

/// Appends scores of later samples.
void append(const Scores& more, Scores& all);

/// Brings the ranks' scores together on every rank. Collective.
Status gather_scores(Communicator& communicator, const RankBatch& batch, const StepResult& step,
                     Scores& scores);

}  // namespace recmill::train
