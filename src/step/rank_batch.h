// SPDX-License-Identifier: Apache-2.0
// One rank's part of a global batch, as it travels from its source to training.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "batch/sparse_batch.h"
#include "batch/step_plan.h"
#include "hotset/hot_cold_order.h"
#include "preprocess/run/preprocessor.h"
#include "step/data/stream_position.h"
#include "store/embedding_store.h"

namespace recmill::train {

/// What a trainer has sent to a GPU of a batch. The trainer outlives it.
class SentInputs {
 public:
  virtual ~SentInputs() = default;
};

struct RankBatch {
  store::Purpose purpose = store::Purpose::train;
  StreamPosition before;  // where the data path was before this batch ...
  StreamPosition after;   // ... and as after it: what a checkpoint after this batch holds
  preprocess::DictionaryVersions dictionaries;  // as after this batch
  bool last_of_pass = false;                    // the last batch of an epoch or of an evaluation
  bool ends_training = false;                   // nothing follows

  SliceCut cut;         // of the global batch
  int first_slice = 0;  // this rank's slices [first_slice, end_slice)
  int end_slice = 0;
  // Where hot and cold inputs are in batches of their own: which these are; whether this evaluation
  // judges the schedule that is over.
  std::optional<hotset::BatchKind> kind = {};
  bool judges = false;
  DenseBatch dense;  // this rank's samples
  SparseBatch sparse;
  RowKeys keys;                     // of this rank's samples, where the reader was asked for it
  std::vector<uint8_t> unlabelled;  // [samples] or empty: those whose label, a 0, is none
  std::shared_ptr<const StepPlan> plan;  // null: requests, which are outside the stream
  std::unique_ptr<store::Prepared> prepared;
  std::unique_ptr<SentInputs> sent;  // null: the step sends them

  /// Of a batch that may have been either kind before, raw and preprocessed values: of `trained` or
  /// `scored` samples with so many dense values and lookups each. Of each id its row, and in
  /// training its place and where its gradient goes.
  static int64_t bytes(int64_t trained, int64_t scored, int64_t dense, int64_t lookups) {
    return std::max(trained * (dense * 12 + lookups * 56), scored * (dense * 12 + lookups * 24));
  }

  /// Bytes of its values: what it takes of memory until it is prepared.
  int64_t held_bytes() const;
  /// The same of `samples` with a label and so many dense values and lookups each.
  static int64_t held_bytes(int64_t samples, int64_t dense, int64_t lookups) {
    return samples * (dense * 4 + 4 + lookups * 16);
  }

  int64_t samples() const { return dense.samples; }
  /// Samples of local slice `slice`, counted from this rank's first one.
  int64_t begin_of(int slice) const { return cut.begin(slice) - cut.begin(first_slice); }
};

/// Lets the store look at the batch's ids: sets `prepared`.
Status prepare(store::EmbeddingStore& store, RankBatch& batch);

/// Copies samples [begin, end) of a batch; vectors of `part` are reused.
void copy_samples(const DenseBatch& whole, int64_t begin, int64_t end, DenseBatch& part);
void copy_samples(const SparseBatch& whole, int64_t begin, int64_t end, SparseBatch& part);
void copy_samples(const RowKeys& whole, int64_t begin, int64_t end, RowKeys& part);

}  // namespace recmill::train
