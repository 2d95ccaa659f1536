// SPDX-License-Identifier: Apache-2.0
// The seam between models and embedding rows, wherever those live.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "batch/sparse_batch.h"
#include "batch/step_plan.h"
#include "device/stream.h"
#include "lookahead_plan/moved_rows.h"
#include "schema/table_spec.h"
#include "table/row_block.h"
#include "table/table_share.h"

namespace recmill::store {

enum class Purpose { train, evaluate, serve };

/// This rank's samples of one global batch.
struct Batch {
  int64_t iteration = 0;
  Purpose purpose = Purpose::train;
  SliceCut cut;         // of the global batch
  int first_slice = 0;  // this rank owns slices [first_slice, end_slice)
  int end_slice = 1;
  const SparseBatch* sparse = nullptr;   // samples [cut.begin(first_slice), cut.begin(end_slice))
  std::shared_ptr<const StepPlan> plan;  // null: outside the stream of training; never of train
};

/// What prepare() found out about a batch. Opaque; travels with the batch; used by one lookup and
/// at most one update. It refers to the batch's SparseBatch, which must outlive it; the store
/// outlives both.
class Prepared {
 public:
  virtual ~Prepared() = default;
};

/// Where lookups of one feature go, float32, in memory of the stream's device. Pooled: sample i of
/// the rank's batch at data + i * stride, dim floats. Unpooled: lookup j of the feature at data + j
/// * stride.
struct FeatureOutput {
  float* data = nullptr;
  int64_t stride = 0;  // floats
};
using Output = std::span<const FeatureOutput>;  // [features]

/// The loss's gradient by what lookup() wrote, laid out alike. Of a GPU it
/// begins at a multiple of 16 bytes, and `stride` is the dimension or a multiple of 4.
struct FeatureGradient {
  const float* data = nullptr;
  int64_t stride = 0;  // floats
};
using Gradient = std::span<const FeatureGradient>;  // [features]

/// One training step. `learning_rate_scale` multiplies each table's own learning rate.
struct Step {
  int64_t iteration = 0;  // counts from 0
  double learning_rate_scale = 1.0;
};

/// One prepared batch and the gradient of the same iteration. Both are the caller's again when
/// update() returns: a store that finishes later keeps what it needs. A gradient of a GPU is the
/// caller's again when the stream comes to what is enqueued then.
struct Update {
  Prepared* prepared = nullptr;
  Gradient gradient;
};

using table::RowBlock;
using table::RowSnapshot;

/// Of a GPU's training batches, once they have been updated: lookups of rows in the host's memory,
/// and such rows that were updated.
struct FarCounts {
  int64_t lookups = 0, rows = 0;

  FarCounts& operator+=(const FarCounts& other) {
    lookups += other.lookups;
    rows += other.rows;
    return *this;
  }
};

struct StoreStats {
  int64_t lookups = 0;
  int64_t distinct_rows = 0;  // of training batches, once they have been updated
  int64_t updated_rows = 0;
  MovedRows moved = {};     // by plans of a cache
  FarCounts far = {};       // of a store on a GPU
  FarCounts last_far = {};  // of the last update alone
};

/// Contract: docs/ARCHITECTURE.md. prepare() may run on another thread, ahead of training, in
/// iteration order; the rest on one. With one rank on the CPU any threads prepare and look up
/// batches that do not train, while no row is written. lookup, update and settle are collective, in
/// iteration order, with an empty batch where a rank has none. No schedule changes an answer.
class EmbeddingStore {
 public:
  virtual ~EmbeddingStore() = default;

  /// Works on ids only: distinct rows, addresses, order of lookups. A row outside its table is an
  /// error that names feature, sample and row.
  virtual Result<std::unique_ptr<Prepared>> prepare(const Batch& batch) = 0;

  /// Enqueues the lookups into the caller's output. Sees every update of earlier iterations and
  /// none of later ones. Evaluation and serving change nothing.
  virtual Status lookup(Prepared& prepared, Output output, Stream& stream) = 0;

  /// Sums the gradients of each distinct row over all `updates` of this iteration, all slices and
  /// all ranks, and applies its row optimizer once. Batches of several updates have the same number
  /// of slices; within a slice the fold goes on over the updates: order (update, feature, sample,
  /// position). May finish later; what a later lookup needs is finished before it.
  virtual Status update(std::span<const Update> updates, const Step& step, Stream& stream) = 0;

  /// Everything finished; every row at home and current.
  virtual Status settle() = 0;

  /// The rows as they are now; after settle(), one at a time. Until it has been read, an update
  /// first keeps copies of the rows that it changes and that were not read yet; it waits for the
  /// reader where these copies are more than `kept_bytes`.
  virtual std::unique_ptr<RowSnapshot> snapshot(int64_t kept_bytes) = 0;
  /// A snapshot that is read at once.
  Status read_rows(const std::function<Status(const RowBlock&)>& sink) {
    return snapshot(0)->read(sink);
  }
  /// The smallest range that covers this rank's rows and columns of a table; with hash sharding it
  /// covers other ranks' rows too.
  virtual table::Extent extent(int table) const = 0;
  /// Replaces rows; those of other owners are ignored, so that every rank may be given all of them.
  /// Of rows that follow each other; of all columns, or those of extent(), always with state by
  /// row; not while a snapshot is there.
  virtual Status write_rows(const RowBlock& block) = 0;

  virtual StoreStats stats() const = 0;
};

}  // namespace recmill::store
