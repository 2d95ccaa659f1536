// SPDX-License-Identifier: Apache-2.0
// Models whose forward pass is written with tensors; LibTorch's autograd does the rest.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "batch/feature_layout.h"
#include "model/model.h"
#include "model/model_options.h"

namespace recmill::model {

/// What one slice's forward pass reads. Copies of the inputs, in memory that Torch aligned, so that
/// its kernels run alike wherever the caller's buffers are; parameters are views, not copies.
struct SliceTensors {
  int64_t samples = 0;
  int64_t first_sample = 0;  // global position
  int64_t iteration = 0;
  bool training = false;
  at::Tensor dense;                               // [samples, num_dense]
  at::Tensor pooled;                              // [samples, layout.stride]
  std::vector<at::Tensor> sequences;              // [unpooled features]: [lookups, dim]
  std::vector<std::span<const int64_t>> offsets;  // [unpooled features]: [samples + 1]
  std::span<const JaggedView> rows;               // [features], where reads_rows()
  std::vector<at::Tensor> parameters;             // in the order of parameters()
};

/// Runs each slice on the calling thread, keeps its graph, and differentiates it. A subclass adds
/// its parameters in its constructor and writes run().
///
/// Phases: each phase is a graph of its own. Its inputs are the tensors carried from the phase
/// before and that phase's total over the global batch; as total = sum over slices of `sum`, the
/// gradient by a slice's `sum` is the sum over all slices of their gradients by `total`, which is
/// what backward phases add up. A subclass so writes its forward formulas only.
class TorchModel : public Model {
 public:
  const std::vector<ParameterSpec>& parameters() const override { return parameters_; }
  int64_t parameter_count() const override { return parameter_count_; }
  EmbeddingLayout embedding_layout() const override { return layout_; }
  void initialize(uint64_t seed, std::span<float> parameters) const override;
  std::unique_ptr<SliceState> make_state() const override;
  Status load(std::span<const float> parameters, ThreadPool& pool, const Renew& renew) override;
  int64_t backward_sum_size(int phase) const override {
    return phase == 0 ? 0 : forward_sum_size(phase - 1);
  }
  Status forward(int phase, const SliceInput& input, std::span<const float> total,
                 SliceState& state, std::span<float> sum, std::span<float> logits) const override;
  Status backward(int phase, const SliceInput& input, std::span<const float> total,
                  std::span<const float> logit_gradient, SliceState& state, std::span<float> sum,
                  SliceGradient gradient) const override;

  /// Whether training draws random numbers, others in each iteration.
  virtual bool draws_random() const { return false; }

  /// All phases of a batch that is one slice, in the precision of its tensors: logits [samples].
  /// Throws as run().
  at::Tensor logits_of(const SliceTensors& batch) const;

  struct Segment {
    std::vector<at::Tensor> carry;  // to the next phase; of the last phase: {logits [samples]}
    at::Tensor sum;                 // [forward_sum_size(phase)]; undefined for none
  };
  /// The graphs of a slice's phases, on the device of its tensors. Throws as run().
  class Graph {
   public:
    /// Of one sample at least. The model outlives the graph.
    void begin(const TorchModel& model, SliceTensors slice);
    /// Phase after phase. `total`, which the graph keeps: of the phase before; undefined in the
    /// first one. The segment is good until clear().
    const Segment& forward(int phase, at::Tensor total);
    /// From the last phase on, back. `by_output`: the gradient by the phase's sum, of the last
    /// phase by the logits. Returns that by its total; undefined in the first one.
    at::Tensor backward(int phase, const at::Tensor& by_output);
    /// Pooled, sequences, trained parameters.
    const std::vector<at::Tensor>& leaves() const { return leaves_; }
    /// Beside them, once phase 0 is done; undefined for zeros.
    const std::vector<at::Tensor>& leaf_gradients() const { return leaf_gradients_; }
    void clear() { *this = {}; }

   private:
    struct Phase {
      std::vector<at::Tensor> carried;  // leaves
      at::Tensor total;                 // leaf; undefined for none
      Segment made;
    };
    const TorchModel* model_ = nullptr;
    SliceTensors slice_;
    std::vector<at::Tensor> leaves_;
    std::vector<Phase> phases_;
    std::vector<at::Tensor> leaf_gradients_;   // that phases have added up
    std::vector<at::Tensor> carry_gradients_;  // by what the phase before carried
  };

 protected:
  /// Pooled features are side by side in feature order.
  TorchModel(const ModelOptions& options, const ModelSpec& spec);

  /// One phase of the forward pass, at least one sample. Throws c10::Error or std::exception.
  virtual Segment run(int phase, const SliceTensors& slice, const std::vector<at::Tensor>& carry,
                      const at::Tensor& total) const = 0;
  /// What is wrong with a slice's input, before run() sees it.
  virtual Status check(const SliceInput& /*input*/) const { return {}; }

  enum class Initial { linear, row, zero, one };
  /// Index into parameters() and SliceTensors::parameters. Offsets are multiples of 16 floats.
  int add_parameter(std::string name, std::vector<int64_t> shape, Initial initial,
                    bool trained = true);

  struct Linear {
    int weight = 0, bias = 0;
  };
  using Layers = std::vector<Linear>;
  /// "name.weight" [outputs, inputs], "name.bias" [outputs].
  Linear add_linear(const std::string& name, int64_t inputs, int64_t outputs);
  /// Named as an nn.Sequential of Linear and ReLU names them: "name.0.weight" [sizes[0], inputs],
  /// "name.0.bias", "name.2.weight" ...
  Layers add_layers(const std::string& name, int64_t inputs, const std::vector<int64_t>& sizes);
  /// x [samples, inputs] W^T + b; with bfloat16 the operands and their product are rounded.
  at::Tensor linear(const SliceTensors& slice, const Linear& layer, const at::Tensor& x) const;
  enum class Last { relu, plain };
  /// ReLU after every layer, after the last one as `last` says.
  at::Tensor layers(const SliceTensors& slice, const Layers& stack, at::Tensor x, Last last) const;

  /// x [samples, inputs] times parameter [outputs, inputs] transposed, in the layers' precision.
  at::Tensor product(const SliceTensors& slice, int parameter, const at::Tensor& x) const;
  /// vectors [samples, n, dim]: the products of each with those before it, in the order of
  /// kernels/interaction: [samples, n (n - 1) / 2].
  static at::Tensor pair_products(const at::Tensor& vectors);
  /// The numbers as a tensor of `like`'s device.
  static at::Tensor on_device_of(const at::Tensor& like, const std::vector<int64_t>& numbers);
  /// What options.deep_input names, of the dense values and `rows`; and its width.
  at::Tensor deep_input(const SliceTensors& slice, const at::Tensor& rows) const;
  int64_t deep_inputs(int64_t rows_width) const;

  const ModelOptions options_;
  const ModelSpec spec_;
  const FeatureLayout features_;

 private:
  struct State;
  SliceTensors tensors_of(const SliceInput& input) const;
  void write_gradient(const SliceInput& input, Graph& graph, SliceGradient gradient) const;

  EmbeddingLayout layout_;
  std::vector<ParameterSpec> parameters_;
  std::vector<Initial> initial_;
  int64_t parameter_count_ = 0;
  const float* loaded_ = nullptr;  // the caller's vector, or aligned_
  at::Tensor aligned_;             // a copy where the caller's vector is not aligned to 64 bytes
};

}  // namespace recmill::model
