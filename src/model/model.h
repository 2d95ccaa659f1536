// SPDX-License-Identifier: Apache-2.0
// The dense part of a recommendation model: from dense values and looked-up rows to a logit, and
// back.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "batch/sparse_batch.h"
#include "device/thread_pool.h"
#include "schema/table_spec.h"

namespace recmill::model {

/// One named part of the flat float32 parameter vector, e.g. {"bottom.0.weight", {512, 13}, 0}.
/// Names and shapes are those of the equivalent PyTorch model's state_dict.
struct ParameterSpec {
  std::string name;
  std::vector<int64_t> shape;  // row-major
  int64_t offset = 0;          // floats into the flat vector
  bool trained = true;         // false: running statistics, carried in checkpoints only
  int64_t size() const {
    int64_t product = 1;
    for (int64_t extent : shape) product *= extent;
    return product;
  }
};

/// Where each feature's rows are in the embedding buffer of a batch.
/// Pooled features: sample i at pooled + i * stride + offset[f]. An unpooled feature has a buffer
/// of its own, [lookups][dim].
struct EmbeddingLayout {
  int64_t stride = 0;           // floats a sample
  std::vector<int64_t> offset;  // [features]; -1 for an unpooled feature
};

/// The samples of one slice, or of a block of it (Model::block_samples()).
struct SliceInput {
  int64_t first_sample = 0;  // global position, for dropout
  int64_t iteration = 0;
  int64_t samples = 0;
  bool training = false;         // backward follows
  const float* dense = nullptr;  // [samples][num_dense]
  float* pooled = nullptr;       // [samples][layout.stride]; the model may use gaps of the layout
  struct Sequence {
    const float* rows = nullptr;       // [lookups of the slice][dim]
    const int64_t* offsets = nullptr;  // [samples + 1]; subtract offsets[0]
  };
  std::span<const Sequence> sequences;  // [unpooled features], in feature order
  std::span<const JaggedView> rows;     // [features], of the slice; empty unless reads_rows()
};

/// Where backward writes: by pooled rows, by sequence rows, by parameters.
struct SliceGradient {
  float* pooled = nullptr;            // [samples][layout.stride]
  std::span<float* const> sequences;  // [unpooled features], each [lookups of the slice][dim]
  float* parameters = nullptr;        // [parameter count]
  bool accumulate = false;  // adds to the parameters' gradient: a slice's later blocks; else
                            // overwrites it
};

/// Activations of one slice (or block) between forward and backward; reused from batch to batch.
class SliceState {
 public:
  virtual ~SliceState() = default;
};

/// A model computes each slice alone, on the calling thread, in an order that is a function of the
/// slice alone. What needs the global batch (batch normalisation) cuts forward and backward into
/// phases: after each phase but the last, the caller adds the slices' sums by the balanced tree,
/// and hands the total to every slice of the next phase.
class Model {
 public:
  virtual ~Model() = default;

  virtual const std::vector<ParameterSpec>& parameters() const = 0;
  virtual int64_t parameter_count() const = 0;  // floats of the flat vector, trained or not
  virtual EmbeddingLayout embedding_layout() const = 0;
  /// Whether SliceInput::rows must be filled (DeepFM with first_order = dense).
  virtual bool reads_rows() const { return false; }

  /// Values of all parameters, drawn from `seed`: a function of (seed, name, element).
  virtual void initialize(uint64_t seed, std::span<float> parameters) const = 0;

  virtual std::unique_ptr<SliceState> make_state() const = 0;

  /// Computes new values of the parameters [begin, end) in place.
  using Renew = std::function<void(int64_t begin, int64_t end)>;

  /// Takes new parameter values into use (packs them for the kernels). Called after every update,
  /// and before the first forward; `parameters` must stay where it is until the next call. With
  /// `renew`, the update itself: it is called once for each parameter, in pieces, from any threads,
  /// before that piece is read, so that a piece is packed while a cache holds it.
  virtual Status load(std::span<const float> parameters, ThreadPool& pool,
                      const Renew& renew = {}) = 0;

  /// 1, plus one for each synchronisation over the global batch.
  virtual int phases() const { return 1; }
  /// Floats that a slice sums for the end of `phase` (0 for the last one).
  virtual int64_t forward_sum_size(int /*phase*/) const { return 0; }
  virtual int64_t backward_sum_size(int /*phase*/) const { return 0; }

  /// Samples that forward and backward take at once, at most. A slice goes through in such blocks
  /// in order, each forward and backward before the next, so that a cache holds its activations. No
  /// limit where there is more than one phase.
  virtual int64_t block_samples() const { return std::numeric_limits<int64_t>::max(); }

  /// Whether a sample's logit is the same bits in whatever block of samples it is, so that
  /// scoring need not keep to slices. Of models with one phase.
  virtual bool scores_in_any_block() const { return false; }

  /// Phase 0 ... phases() - 1 in this order. `total`: the tree's sum at the end of the phase
  /// before, empty in phase 0; `sum`: what this slice contributes; `logits` [samples]: written by
  /// the last phase.
  virtual Status forward(int phase, const SliceInput& input, std::span<const float> total,
                         SliceState& state, std::span<float> sum,
                         std::span<float> logits) const = 0;

  /// Phase phases() - 1 ... 0 in this order. `total`: the tree's sum of the backward phase before
  /// (of phase + 1), `logit_gradient` [samples]: by the loss. The gradient is complete after phase
  /// 0.
  virtual Status backward(int phase, const SliceInput& input, std::span<const float> total,
                          std::span<const float> logit_gradient, SliceState& state,
                          std::span<float> sum, SliceGradient gradient) const = 0;

  /// Totals of the forward phases of one training iteration, to update running statistics with;
  /// called once an iteration. `samples` is the size of the global batch.
  virtual void finish_iteration(std::span<const std::vector<float>> /*totals*/, int64_t /*samples*/,
                                std::span<float> /*parameters*/) const {}
};

}  // namespace recmill::model
