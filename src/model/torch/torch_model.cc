// SPDX-License-Identifier: Apache-2.0
#include "model/torch/torch_model.h"

#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/hash.h"
#include "base/random.h"
#include "model/initialize.h"
#include "model/torch/guarded.h"
#include "model/torch/host.h"

namespace recmill::model {
namespace {

constexpr int64_t kAlignFloats = 16;  // 64 bytes
constexpr int64_t kRenewed = 16384;   // parameters that are renewed at once

/// A view of floats that nobody writes through.
at::Tensor view_of(const float* values, at::IntArrayRef shape) {
  return at::from_blob(const_cast<float*>(values), shape, at::kFloat);
}

at::Tensor copy_of(std::span<const float> values) {
  return view_of(values.data(), {std::ssize(values)}).clone();
}

void copy_out(const at::Tensor& tensor, float* out, int64_t floats) {
  if (!tensor.defined()) {
    std::fill_n(out, floats, 0.0f);
    return;
  }
  const at::Tensor values = tensor.contiguous();
  RECMILL_CHECK(values.numel() == floats && values.scalar_type() == at::kFloat);
  std::copy_n(values.const_data_ptr<float>(), floats, out);
}

void add_to(at::Tensor& sum, const at::Tensor& part) {
  if (!part.defined()) return;
  sum = sum.defined() ? sum + part : part;
}

}  // namespace

struct TorchModel::State : SliceState {
  Graph graph;
};

TorchModel::TorchModel(const ModelOptions& options, const ModelSpec& spec)
    : options_(options), spec_(spec), features_(spec), layout_{features_.columns(), {}} {
  for (const FeatureLayout::Feature& feature : features_.features())
    layout_.offset.push_back(feature.is_pooled() ? feature.column : -1);
}

int TorchModel::add_parameter(std::string name, std::vector<int64_t> shape, Initial initial,
                              bool trained) {
  ParameterSpec spec{std::move(name), std::move(shape), parameter_count_, trained};
  parameter_count_ += (spec.size() + kAlignFloats - 1) / kAlignFloats * kAlignFloats;
  parameters_.push_back(std::move(spec));
  initial_.push_back(initial);
  return static_cast<int>(parameters_.size()) - 1;
}

TorchModel::Linear TorchModel::add_linear(const std::string& name, int64_t inputs,
                                          int64_t outputs) {
  const int weight = add_parameter(name + ".weight", {outputs, inputs}, Initial::linear);
  return {weight, add_parameter(name + ".bias", {outputs}, Initial::linear)};
}

TorchModel::Layers TorchModel::add_layers(const std::string& name, int64_t inputs,
                                          const std::vector<int64_t>& sizes) {
  Layers stack;
  for (size_t l = 0; l < sizes.size(); ++l) {
    stack.push_back(add_linear(fmt::format("{}.{}", name, 2 * l), inputs, sizes[l]));
    inputs = sizes[l];
  }
  return stack;
}

at::Tensor TorchModel::product(const SliceTensors& slice, int parameter,
                               const at::Tensor& x) const {
  const at::Tensor& weight = slice.parameters[parameter];
  if (options_.precision == LayerPrecision::float32) return at::linear(x, weight);
  return at::linear(x.to(at::kBFloat16), weight.to(at::kBFloat16)).to(at::kFloat);
}

at::Tensor TorchModel::linear(const SliceTensors& slice, const Linear& layer,
                              const at::Tensor& x) const {
  const at::Tensor& bias = slice.parameters[layer.bias];
  if (options_.precision == LayerPrecision::float32) {
    return at::linear(x, slice.parameters[layer.weight], bias);
  }
  return product(slice, layer.weight, x) + bias;
}

at::Tensor TorchModel::layers(const SliceTensors& slice, const Layers& stack, at::Tensor x,
                              Last last) const {
  for (size_t l = 0; l < stack.size(); ++l) {
    x = linear(slice, stack[l], x);
    if (l + 1 < stack.size() || last == Last::relu) x = at::relu(x);
  }
  return x;
}

// Positions i n + j, i > j, of the matrix of products, made where it is.
at::Tensor TorchModel::pair_products(const at::Tensor& vectors) {
  const int64_t n = vectors.size(1);
  const at::Tensor pairs =
      at::tril_indices(n, n, -1, at::TensorOptions(at::kLong).device(vectors.device()));
  return at::bmm(vectors, vectors.transpose(1, 2))
      .flatten(1)
      .index_select(1, pairs[0] * n + pairs[1]);
}

at::Tensor TorchModel::on_device_of(const at::Tensor& like, const std::vector<int64_t>& numbers) {
  return at::tensor(numbers, at::kLong).to(like.device());
}

at::Tensor TorchModel::deep_input(const SliceTensors& slice, const at::Tensor& rows) const {
  switch (options_.deep_input) {
    case DeepInput::dense:
      return slice.dense;
    case DeepInput::rows:
      return rows;
    case DeepInput::all:
      return at::cat({slice.dense, rows}, 1);
  }
  RECMILL_CHECK(false);
  return {};
}

int64_t TorchModel::deep_inputs(int64_t rows_width) const {
  return (options_.deep_input != DeepInput::rows ? spec_.num_dense : 0) +
         (options_.deep_input != DeepInput::dense ? rows_width : 0);
}

void TorchModel::initialize(uint64_t seed, std::span<float> parameters) const {
  RECMILL_CHECK(static_cast<int64_t>(parameters.size()) == parameter_count_);
  std::ranges::fill(parameters, 0.0f);
  for (size_t p = 0; p < parameters_.size(); ++p) {
    const std::span<float> values = part_of(parameters, parameters_[p]);
    if (initial_[p] == Initial::linear) initialize_linear(seed, parameters_[p], values);
    if (initial_[p] == Initial::one) std::ranges::fill(values, 1.0f);
    if (initial_[p] == Initial::row) initialize_uniform(seed, parameters_[p], values);
  }
}

std::unique_ptr<SliceState> TorchModel::make_state() const {
  return std::make_unique<State>();
}

Status TorchModel::load(std::span<const float> parameters, ThreadPool& pool, const Renew& renew) {
  RECMILL_CHECK(static_cast<int64_t>(parameters.size()) == parameter_count_);
  if (renew) host().run_ranges(pool, parameter_count_, kRenewed, renew);
  loaded_ = parameters.data();
  if (reinterpret_cast<uintptr_t>(loaded_) % (kAlignFloats * sizeof(float)) == 0) return {};
  return guarded("load", [&]() -> Status {
    if (!aligned_.defined()) aligned_ = at::empty({parameter_count_}, at::kFloat);
    std::ranges::copy(parameters, aligned_.mutable_data_ptr<float>());
    loaded_ = aligned_.const_data_ptr<float>();
    return {};
  });
}

SliceTensors TorchModel::tensors_of(const SliceInput& input) const {
  RECMILL_CHECK(loaded_ != nullptr);
  SliceTensors slice;
  slice.samples = input.samples;
  slice.first_sample = input.first_sample;
  slice.iteration = input.iteration;
  slice.training = input.training;
  slice.rows = input.rows;
  slice.dense = spec_.num_dense == 0
                    ? at::empty({input.samples, 0})
                    : view_of(input.dense, {input.samples, spec_.num_dense}).clone();
  slice.pooled = view_of(input.pooled, {input.samples, layout_.stride}).clone();
  for (const FeatureLayout::Feature& feature : features_.sequences()) {
    const SliceInput::Sequence& from = input.sequences[feature.sequence];
    const int64_t lookups = from.offsets[input.samples] - from.offsets[0];
    slice.sequences.push_back(lookups == 0 ? at::empty({0, feature.dim})
                                           : view_of(from.rows, {lookups, feature.dim}).clone());
    slice.offsets.emplace_back(from.offsets, static_cast<size_t>(input.samples) + 1);
  }
  for (const auto& spec : parameters_) {
    slice.parameters.push_back(view_of(loaded_ + spec.offset, spec.shape));
  }
  return slice;
}

at::Tensor TorchModel::logits_of(const SliceTensors& batch) const {
  Segment made;
  for (int phase = 0; phase < phases(); ++phase) made = run(phase, batch, made.carry, made.sum);
  return made.carry.at(0);
}

void TorchModel::Graph::begin(const TorchModel& model, SliceTensors slice) {
  model_ = &model;
  slice_ = std::move(slice);
  phases_.assign(model.phases(), {});
  carry_gradients_.clear();
  leaves_ = {slice_.pooled};
  leaves_.insert(leaves_.end(), slice_.sequences.begin(), slice_.sequences.end());
  for (size_t p = 0; p < model.parameters_.size(); ++p)
    if (model.parameters_[p].trained) leaves_.push_back(slice_.parameters[p]);
  leaf_gradients_.assign(leaves_.size(), {});
  if (!slice_.training) return;
  for (at::Tensor& leaf : leaves_) leaf.set_requires_grad(true);
}

const TorchModel::Segment& TorchModel::Graph::forward(int phase, at::Tensor total) {
  const c10::AutoGradMode grad(slice_.training);
  Phase& now = phases_[phase];
  if (phase > 0) {
    for (const at::Tensor& tensor : phases_[phase - 1].made.carry)
      now.carried.push_back(tensor.detach().set_requires_grad(slice_.training));
    now.total = std::move(total);
    now.total.set_requires_grad(slice_.training);
  }
  now.made = model_->run(phase, slice_, now.carried, now.total);
  return now.made;
}

at::Tensor TorchModel::Graph::backward(int phase, const at::Tensor& by_output) {
  const Phase& now = phases_[phase];
  std::vector<at::Tensor> outputs = now.made.carry;
  std::vector<at::Tensor> output_gradients = std::move(carry_gradients_);
  if (phase + 1 < model_->phases()) outputs.push_back(now.made.sum);
  output_gradients.push_back(by_output);
  std::vector<at::Tensor> inputs = leaves_;
  inputs.insert(inputs.end(), now.carried.begin(), now.carried.end());
  if (now.total.defined()) inputs.push_back(now.total);
  auto gradients = torch::autograd::grad(outputs, inputs, output_gradients, false, false, true);
  for (size_t l = 0; l < leaves_.size(); ++l) add_to(leaf_gradients_[l], gradients[l]);
  carry_gradients_.clear();
  for (size_t c = 0; c < now.carried.size(); ++c) {
    const at::Tensor& by_carried = gradients[leaves_.size() + c];
    carry_gradients_.push_back(by_carried.defined() ? by_carried : at::zeros_like(now.carried[c]));
  }
  return now.total.defined() ? gradients.back() : at::Tensor();
}

Status TorchModel::forward(int phase, const SliceInput& input, std::span<const float> total,
                           SliceState& slice_state, std::span<float> sum,
                           std::span<float> logits) const {
  std::ranges::fill(sum, 0.0f);
  if (input.samples == 0) return {};
  RECMILL_RETURN_IF_ERROR(check(input));
  return guarded("forward", [&]() -> Status {
    Graph& graph = static_cast<State&>(slice_state).graph;
    if (phase == 0) graph.begin(*this, tensors_of(input));
    const Segment& made = graph.forward(phase, phase == 0 ? at::Tensor() : copy_of(total));
    if (!sum.empty()) copy_out(made.sum, sum.data(), std::ssize(sum));
    if (phase + 1 < phases()) return {};
    copy_out(made.carry.at(0), logits.data(), input.samples);
    if (!input.training) graph.clear();
    return {};
  });
}

Status TorchModel::backward(int phase, const SliceInput& input, std::span<const float> total,
                            std::span<const float> logit_gradient, SliceState& slice_state,
                            std::span<float> sum, SliceGradient gradient) const {
  std::ranges::fill(sum, 0.0f);
  Graph& graph = static_cast<State&>(slice_state).graph;
  if (input.samples == 0) {
    if (phase == 0) write_gradient(input, graph, gradient);
    return {};
  }
  return guarded("backward", [&]() -> Status {
    const bool is_last = phase + 1 == phases();
    const at::Tensor by_total =
        graph.backward(phase, copy_of(is_last ? logit_gradient.first(input.samples) : total));
    if (!sum.empty()) copy_out(by_total, sum.data(), std::ssize(sum));
    if (phase == 0) write_gradient(input, graph, gradient);
    return {};
  });
}

void TorchModel::write_gradient(const SliceInput& input, Graph& graph,
                                SliceGradient gradient) const {
  std::vector<at::Tensor> gradients = graph.leaf_gradients();
  gradients.resize(1 + input.sequences.size() + parameters_.size());
  auto next = gradients.begin();
  copy_out(*next++, gradient.pooled, input.samples * layout_.stride);
  for (const FeatureLayout::Feature& feature : features_.sequences()) {
    const int64_t* offsets = input.sequences[feature.sequence].offsets;
    const int64_t lookups = offsets[input.samples] - offsets[0];
    copy_out(*next++, gradient.sequences[feature.sequence], lookups * feature.dim);
  }
  std::fill_n(gradient.parameters, parameter_count_, 0.0f);
  for (const auto& spec : parameters_) {
    if (spec.trained) copy_out(*next++, gradient.parameters + spec.offset, spec.size());
  }
  graph.clear();
}

}  // namespace recmill::model
