// SPDX-License-Identifier: Apache-2.0
#include "model/dlrm.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/bfloat16.h"
#include "device/buffer.h"
#include "kernels/dense_layer/dense_layer.h"
#include "kernels/interaction/interaction.h"
#include "model/initialize.h"

namespace recmill::model {
namespace {

using kernels::bytes_of;
using kernels::Precision;
using kernels::dense_layer::Activation;
using kernels::dense_layer::BackwardArguments;
using kernels::dense_layer::kBlock;
using kernels::dense_layer::Layer;
using kernels::dense_layer::Workspace;

/// Fully connected layers, one behind the other, and where their parameters stand: layer l has
/// weight parameters[first + 2 l] and bias parameters[first + 2 l + 1].
struct Tower {
  std::vector<Layer> layers;
  size_t first_parameter = 0;
};

/// What a block's forward pass keeps for its backward pass: one matrix of each, by feature or by
/// sample as the layers' precision wants it (dense_layer.h).
struct Activation2d {
  int64_t width = 0;
  Precision precision = Precision::float32;
};

Buffer allocate(int64_t bytes) {
  auto buffer = Buffer::allocate(static_cast<size_t>(bytes));
  RECMILL_CHECK(buffer.ok(), buffer.status().message());
  return *std::move(buffer);
}

class DlrmState final : public ShardState {
 public:
  /// `widest`: floats of the widest gradient of one sample. `scratch`: floats for the interaction.
  DlrmState(const std::vector<Activation2d>& kept, int64_t widest, int64_t scratch)
      : gradients_(allocate(2 * kBlock * widest * 4)), scratch_(allocate(scratch * 4)) {
    int64_t end = 0;
    for (const Activation2d& matrix : kept) {
      begin_.push_back(end);
      end += (kBlock * matrix.width * bytes_of(matrix.precision) + 63) / 64 * 64;
    }
    activations_ = allocate(end);
  }

  /// Kept matrix `a`.
  std::byte* at(size_t a) { return activations_.data() + begin_[a]; }
  float* floats(size_t a) { return reinterpret_cast<float*>(at(a)); }
  /// One of two places for the gradient of a block, [kBlock * widest]; the other one of `which`.
  float* gradient(size_t which) {
    return reinterpret_cast<float*>(gradients_.data() + which * gradients_.size() / 2);
  }
  float* other_gradient(const void* which) { return gradient(which == gradient(0) ? 1 : 0); }
  float* scratch() { return scratch_.as<float>().data(); }

  Workspace workspace;

 private:
  std::vector<int64_t> begin_;  // bytes into activations_
  Buffer activations_, gradients_, scratch_;
};

class Dlrm final : public Model {
 public:
  Status make(const ModelOptions& options, const ModelSpec& spec);

  const std::vector<ParameterSpec>& parameters() const override { return parameters_; }
  int64_t parameter_count() const override { return count_; }
  EmbeddingLayout embedding_layout() const override;
  void initialize(uint64_t seed, std::span<float> parameters) const override;
  std::unique_ptr<ShardState> make_state() const override;
  int64_t block_samples() const override { return kBlock; }
  Status load(std::span<const float> parameters, Pool& pool, const Renew& renew) override;
  Status forward(int phase, const ShardInput& input, std::span<const float> total,
                 ShardState& state, std::span<float> sum, std::span<float> logits) const override;
  Status backward(int phase, const ShardInput& input, std::span<const float> total,
                  std::span<const float> logit_gradient, ShardState& state, std::span<float> sum,
                  ShardGradient gradient) const override;

 private:
  Status add_tower(const std::string& name, int64_t inputs, const std::vector<int64_t>& sizes,
                   Tower& tower);
  void take_dense(const ShardInput& input, DlrmState& state) const;
  void backward_layer(const Tower& tower, size_t layer, int64_t samples, BackwardArguments& a,
                      float* gradient, DlrmState& state) const;
  kernels::interaction::Vectors vectors(const ShardInput& input, DlrmState& state) const;

  // Kept matrices: the dense values, the bottom layers' outputs, z, the top layers' outputs but the
  // last.
  size_t bottom_output(size_t layer) const { return 1 + layer; }
  size_t interaction_output() const { return 1 + bottom_.layers.size(); }
  size_t top_output(size_t layer) const { return interaction_output() + 1 + layer; }

  Precision precision_ = Precision::float32;
  int64_t num_dense_ = 0;
  kernels::interaction::InteractionSpec interaction_;
  Tower bottom_, top_;
  std::vector<ParameterSpec> parameters_;
  int64_t count_ = 0;
};

Status Dlrm::make(const ModelOptions& options, const ModelSpec& spec) {
  precision_ =
      options.precision == LayerPrecision::float32 ? Precision::float32 : Precision::bfloat16;
  num_dense_ = spec.num_dense;
  const int64_t dim = spec.features.empty() ? options.bottom.back() : spec.dim_of(0);
  interaction_ = {static_cast<int64_t>(spec.features.size()), dim, !options.bottom.empty(),
                  precision_};
  RECMILL_RETURN_IF_ERROR(add_tower("bottom", num_dense_, options.bottom, bottom_));
  return add_tower("top", interaction_.outputs(), options.top, top_);
}

Status Dlrm::add_tower(const std::string& name, int64_t inputs, const std::vector<int64_t>& sizes,
                       Tower& tower) {
  const bool is_top = &tower == &top_;
  tower.first_parameter = parameters_.size();
  for (size_t l = 0; l < sizes.size(); ++l) {
    const bool last = l + 1 == sizes.size();
    RECMILL_ASSIGN_OR_RETURN(
        auto layer, Layer::make({.inputs = inputs,
                                 .outputs = sizes[l],
                                 .activation = is_top && last ? Activation::none : Activation::relu,
                                 .precision = precision_,
                                 .output_precision = last ? Precision::float32 : precision_,
                                 .needs_input_gradient = is_top || l > 0}));
    tower.layers.push_back(std::move(layer));
    const std::string prefix = name + "." + std::to_string(2 * l);
    parameters_.push_back({prefix + ".weight", {sizes[l], inputs}, count_});
    count_ += parameters_.back().size();
    parameters_.push_back({prefix + ".bias", {sizes[l]}, count_});
    count_ += parameters_.back().size();
    inputs = sizes[l];
  }
  return {};
}

EmbeddingLayout Dlrm::embedding_layout() const {
  EmbeddingLayout layout{interaction_.features * interaction_.dim, {}};
  for (int64_t f = 0; f < interaction_.features; ++f) layout.offset.push_back(f * interaction_.dim);
  return layout;
}

void Dlrm::initialize(uint64_t seed, std::span<float> parameters) const {
  for (const ParameterSpec& p : parameters_) initialize_linear(seed, p, part_of(parameters, p));
}

std::unique_ptr<ShardState> Dlrm::make_state() const {
  std::vector<Activation2d> kept;
  kept.push_back({num_dense_, precision_});
  int64_t widest = std::max(interaction_.outputs(), interaction_.dim);
  const auto keep = [&](const Layer& layer) {
    kept.push_back({layer.spec().outputs, layer.spec().output_precision});
    widest = std::max(widest, layer.spec().outputs);
  };
  for (const Layer& layer : bottom_.layers) keep(layer);
  kept.push_back({interaction_.outputs(), precision_});
  for (size_t l = 0; l + 1 < top_.layers.size(); ++l) keep(top_.layers[l]);
  return std::make_unique<DlrmState>(kept, widest,
                                     kernels::interaction::scratch_size(interaction_));
}

Status Dlrm::load(std::span<const float> parameters, Pool& pool, const Renew& renew) {
  struct Task {
    Layer* layer;
    int64_t piece;
    const ParameterSpec *weight, *bias;
  };
  std::vector<Task> tasks;
  for (Tower* tower : {&bottom_, &top_}) {
    for (size_t l = 0; l < tower->layers.size(); ++l) {
      const ParameterSpec* weight = &parameters_[tower->first_parameter + 2 * l];
      Layer& layer = tower->layers[l];
      for (int64_t piece = 0; piece < layer.pack_tasks(); ++piece) {
        tasks.push_back({&layer, piece, weight, weight + 1});
      }
    }
  }
  pool.run(static_cast<int64_t>(tasks.size()), [&](int64_t t) {
    const Task& task = tasks[static_cast<size_t>(t)];
    if (renew) {
      const int64_t first = task.weight->offset, inputs = task.weight->shape[1];
      renew(first + task.layer->pack_begin(task.piece) * inputs,
            first + task.layer->pack_begin(task.piece + 1) * inputs);
      if (task.piece == 0) renew(task.bias->offset, task.bias->offset + task.bias->size());
    }
    task.layer->pack(task.piece, parameters.data() + task.weight->offset,
                     parameters.data() + task.bias->offset);
  });
  return {};
}

/// The dense values as the first bottom layer reads them.
void Dlrm::take_dense(const ShardInput& input, DlrmState& state) const {
  if (precision_ == Precision::float32) {
    float* to = state.floats(0);
    for (int64_t k = 0; k < num_dense_; ++k) {
      for (int64_t i = 0; i < input.samples; ++i) *to++ = input.dense[i * num_dense_ + k];
    }
    return;
  }
  auto* to = reinterpret_cast<BFloat16*>(state.at(0));
  for (int64_t k = 0; k < input.samples * num_dense_; ++k) to[k] = to_bfloat16(input.dense[k]);
}

kernels::interaction::Vectors Dlrm::vectors(const ShardInput& input, DlrmState& state) const {
  const int64_t stride = interaction_.features * interaction_.dim;
  if (!interaction_.bottom) return {nullptr, input.pooled, stride};
  return {state.floats(bottom_output(bottom_.layers.size() - 1)), input.pooled, stride};
}

Status Dlrm::forward(int /*phase*/, const ShardInput& input, std::span<const float> /*total*/,
                     ShardState& shard_state, std::span<float> /*sum*/,
                     std::span<float> logits) const {
  auto& state = static_cast<DlrmState&>(shard_state);
  take_dense(input, state);
  const void* x = state.at(0);
  for (size_t l = 0; l < bottom_.layers.size(); ++l) {
    void* y = state.at(bottom_output(l));
    bottom_.layers[l].forward(input.samples, x, y, state.workspace);
    x = y;
  }
  void* z = state.at(interaction_output());
  kernels::interaction::forward(interaction_, input.samples, vectors(input, state), z,
                                state.scratch());
  x = z;
  for (size_t l = 0; l < top_.layers.size(); ++l) {
    const bool last = l + 1 == top_.layers.size();
    void* y = last ? static_cast<void*>(logits.data()) : state.at(top_output(l));
    top_.layers[l].forward(input.samples, x, y, state.workspace);
    x = y;
  }
  return {};
}

/// One layer's gradients; a.x, a.y and a.dy are set. Leaves a.dx, where the layer has one, in the
/// half of the state's gradient memory that a.dy is not in.
void Dlrm::backward_layer(const Tower& tower, size_t layer, int64_t samples, BackwardArguments& a,
                          float* gradient, DlrmState& state) const {
  const ParameterSpec* weight = &parameters_[tower.first_parameter + 2 * layer];
  a.dx = state.other_gradient(a.dy);
  a.weight_gradient = gradient + weight[0].offset;
  a.bias_gradient = gradient + weight[1].offset;
  tower.layers[layer].backward(samples, a, state.workspace);
}

Status Dlrm::backward(int /*phase*/, const ShardInput& input, std::span<const float> /*total*/,
                      std::span<const float> logit_gradient, ShardState& shard_state,
                      std::span<float> /*sum*/, ShardGradient gradient) const {
  auto& state = static_cast<DlrmState&>(shard_state);
  BackwardArguments a;
  a.accumulate = gradient.accumulate;
  a.dy = state.gradient(0);
  std::copy(logit_gradient.begin(), logit_gradient.end(), state.gradient(0));
  for (size_t l = top_.layers.size(); l-- > 0; a.dy = a.dx) {
    a.x = state.at(l > 0 ? top_output(l - 1) : interaction_output());
    // The last layer has no activation: its output is not read.
    a.y = l + 1 < top_.layers.size() ? state.at(top_output(l)) : nullptr;
    backward_layer(top_, l, input.samples, a, gradient.parameters, state);
  }
  float* bottom_gradient = state.other_gradient(a.dy);
  kernels::interaction::backward(
      interaction_, input.samples, vectors(input, state), a.dy,
      {bottom_gradient, gradient.pooled, interaction_.features * interaction_.dim},
      state.scratch());
  a.dy = bottom_gradient;
  for (size_t l = bottom_.layers.size(); l-- > 0; a.dy = a.dx) {
    a.x = state.at(l > 0 ? bottom_output(l - 1) : 0);
    a.y = state.at(bottom_output(l));
    backward_layer(bottom_, l, input.samples, a, gradient.parameters, state);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Model>> make_dlrm(const ModelOptions& options, const ModelSpec& spec) {
  auto model = std::make_unique<Dlrm>();
  RECMILL_RETURN_IF_ERROR(model->make(options, spec));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace recmill::model
