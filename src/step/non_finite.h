// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "model/model.h"
#include "schema/table_spec.h"
#include "step/rank_batch.h"
#include "store/embedding_store.h"

namespace recmill::train {

/// What a forward pass saw, to be searched for the first value that is not finite.
struct ForwardEvidence {
  const ModelSpec& spec;
  const RankBatch& batch;
  std::span<const store::FeatureOutput> outputs;  // what lookup wrote
  const std::vector<model::ParameterSpec>& layers;
  std::span<const float> parameters;
  std::span<const float> logits;
};

/// Names the first cause of a loss that is not finite: a dense column and sample, a table and row,
/// a layer, or the sample whose logit overflowed. Ok when all of this rank's values are finite.
Status name_non_finite(const ForwardEvidence& evidence);

}  // namespace recmill::train
