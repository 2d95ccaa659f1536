// SPDX-License-Identifier: Apache-2.0
// The forward half of a step with layers on the CPU, slice by slice: from a prepared batch to
// logits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/status.h"
#include "batch/feature_layout.h"
#include "comm/communicator.h"
#include "comm/ordered_reduce.h"
#include "comm/slice_tree.h"
#include "device/thread_pool.h"
#include "model/model.h"
#include "step/forward_state.h"
#include "step/rank_batch.h"
#include "store/embedding_store.h"

namespace recmill::train {

/// Room for at least `count` floats; what it held is lost where it grows. Fails where memory is
/// short.
Result<float*> reserve_rows(Buffer& buffer, int64_t count);

/// All that a batch changes is in its ForwardState. With one rank any number of threads may call at
/// once, each with a state of its own, while nobody updates rows or parameters; the bits are those
/// of one thread. With several ranks every call but bind() is collective, one at a time.
class Scorer {
 public:
  /// All referenced objects outlive it; the model has loaded its parameters. `slices`: of the
  /// global batch.
  Scorer(const ModelSpec& spec, const model::Model& model, store::EmbeddingStore& store,
         Communicator& communicator, ThreadPool& pool, int slices);

  /// Logits of this rank's samples, and the other results of `state`; changes nothing else. `batch`
  /// is prepared.
  Status predict(const RankBatch& batch, ForwardState& state);

  const FeatureLayout& features() const { return features_; }

  // predict() is these three, and a step of training begins with them:

  /// Sizes the state's memory for the batch, and points to it. Fails where memory is short.
  Status bind(const RankBatch& batch, bool training, ForwardState& state);
  /// Rows of the batch that was bound.
  Status look_up(const RankBatch& batch, ForwardState& state);
  /// After the last phase of a block, on the thread that computes its slice: of a model with one
  /// phase before the slice's next block, while activations are warm. `slice` is one of the state.
  using AfterBlock = std::function<Status(size_t slice, size_t block)>;
  /// Logits from rows. Where the state trains a model of several phases, its slices then hold their
  /// activations, until give_back().
  Status run_layers(const RankBatch& batch, ForwardState& state, const AfterBlock& after = {});

  /// Activations that a slice needs no longer. Any thread.
  void give_back(std::unique_ptr<model::SliceState> activations);

  /// Calls `body` for each slice of the state that has samples, on all threads. Returns the first
  /// slice's error.
  Status over_slices(const ForwardState& state, const std::function<Status(size_t slice)>& body);

  /// Adds the parts of slices that have samples, over all ranks. Collective.
  template <typename T>
  Status add_slices(OrderedReduce<T>& reduce, const ForwardState& state,
                    const std::function<const T*(size_t slice)>& part_of, std::span<T> total) {
    std::vector<SlicePart<T>> parts;
    for (size_t slice = 0; slice < state.slices.size(); ++slice) {
      if (state.slices[slice].blocks.empty()) continue;
      const int global = own_.begin + static_cast<int>(slice);
      parts.push_back({{global, global + 1}, part_of(slice)});
    }
    return reduce(parts, total);
  }
  /// Adds `sum` of all slices: `total` [size].
  Status add_sums(const ForwardState& state, int64_t size, std::vector<float>& total);

 private:
  void bind_slice(const RankBatch& batch, size_t index, ForwardState& state) const;
  void bind_block(const RankBatch& batch, int64_t begin, int64_t samples, ForwardState& state,
                  ForwardState::Block& block) const;
  std::unique_ptr<model::SliceState> take_activations();
  Status run_slice(int phase, size_t index, ForwardState& state, const AfterBlock& after) const;
  Status run_in_any_blocks(const RankBatch& batch, ForwardState& state);

  const FeatureLayout features_;
  const model::Model& model_;
  store::EmbeddingStore& store_;
  const Communicator& communicator_;
  ThreadPool& pool_;
  const SliceRange own_;
  const model::EmbeddingLayout layout_;
  OrderedReduce<float> reduce_sums_;  // with one rank of no state
  std::mutex mutex_;
  // Those that no slice holds; guarded by mutex_. Last in, first out: of a model with one phase,
  // each thread works in one and the same, whatever batches it takes part in.
  std::vector<std::unique_ptr<model::SliceState>> free_activations_;
};

}  // namespace recmill::train
