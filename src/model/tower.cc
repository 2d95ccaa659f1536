// SPDX-License-Identifier: Apache-2.0
#include "model/tower.h"

#include <algorithm>
#include <utility>

#include "device/required_buffer.h"

namespace recmill::model {
namespace {

using kernels::bytes_of;
using kernels::Precision;
using kernels::dense_layer::Activation;
using kernels::dense_layer::BackwardArguments;
using kernels::dense_layer::kBlock;
using kernels::dense_layer::Layer;

Buffer allocate(int64_t bytes) {
  return required_buffer(static_cast<size_t>(bytes));
}

}  // namespace

Precision precision_of(const ModelOptions& options) {
  return options.precision == LayerPrecision::float32 ? Precision::float32 : Precision::bfloat16;
}

void ParameterList::add(const std::string& name, std::vector<int64_t> shape) {
  specs.push_back({name, std::move(shape), count});
  count += specs.back().size();
}

BlockState::BlockState(const std::vector<KeptMatrix>& kept, int64_t widest, int64_t scratch)
    : gradients_(allocate(2 * kBlock * widest * 4)), scratch_(allocate(scratch * 4)) {
  int64_t end = 0;
  for (const KeptMatrix& matrix : kept) {
    begin_.push_back(end);
    end += (kBlock * matrix.width * bytes_of(matrix.precision) + 63) / 64 * 64;
  }
  activations_ = allocate(end);
}

Result<Tower> Tower::make(const TowerSpec& spec, ParameterList& parameters,
                          std::vector<KeptMatrix>& kept) {
  RECMILL_RETURN_IF_ERROR(kernels::dense_layer::check_precision(spec.precision));
  Tower tower;
  tower.spec_ = spec;
  tower.first_kept_ = kept.size();
  int64_t inputs = spec.inputs;
  for (size_t l = 0; l < spec.sizes.size(); ++l) {
    const bool last = l + 1 == spec.sizes.size();
    const Precision output = last ? Precision::float32 : spec.precision;
    tower.specs_.push_back(
        {.inputs = inputs,
         .outputs = spec.sizes[l],
         .activation = spec.to_logit && last ? Activation::none : Activation::relu,
         .precision = spec.precision,
         .output_precision = output,
         .needs_input_gradient = spec.to_logit || l > 0});
    const std::string prefix = spec.name + "." + std::to_string(2 * l);
    tower.offsets_.push_back(parameters.count);
    parameters.add(prefix + ".weight", {spec.sizes[l], inputs});
    tower.offsets_.push_back(parameters.count);
    parameters.add(prefix + ".bias", {spec.sizes[l]});
    if (!last || !spec.to_logit) kept.push_back({spec.sizes[l], output});
    inputs = spec.sizes[l];
  }
  return tower;
}

Status Tower::make_layers() {
  for (size_t l = layers_.size(); l < specs_.size(); ++l) {
    RECMILL_ASSIGN_OR_RETURN(auto layer, Layer::make(specs_[l]));
    layers_.push_back(std::move(layer));
  }
  return {};
}

int64_t Tower::widest() const {
  int64_t widest = empty() ? 0 : spec_.inputs;
  for (const int64_t size : spec_.sizes) widest = std::max(widest, size);
  return widest;
}

void Tower::forward(int64_t samples, const void* x, float* logits, BlockState& state,
                    bool x_in_panels) const {
  for (size_t l = 0; l < layers_.size(); ++l) {
    const bool to_logits = spec_.to_logit && l + 1 == layers_.size();
    void* y = to_logits ? static_cast<void*>(logits) : state.at(first_kept_ + l);
    layers_[l].forward(samples, x, y, state.workspace, x_in_panels && l == 0);
    x = y;
  }
}

float* Tower::backward(int64_t samples, const void* x, float* dy, bool accumulate, float* gradient,
                       BlockState& state) const {
  BackwardArguments a;
  a.accumulate = accumulate;
  a.dy = dy;
  for (size_t l = layers_.size(); l-- > 0; a.dy = a.dx) {
    a.x = l > 0 ? state.at(first_kept_ + l - 1) : x;
    // The last layer to the logit has no activation: its output is not read.
    a.y = spec_.to_logit && l + 1 == layers_.size() ? nullptr : state.at(first_kept_ + l);
    a.dx = state.other_gradient(a.dy);
    a.weight_gradient = gradient + offsets_[2 * l];
    a.bias_gradient = gradient + offsets_[2 * l + 1];
    layers_[l].backward(samples, a, state.workspace);
  }
  return static_cast<float*>(a.dy);
}

Status load_towers(std::span<Tower* const> towers, std::span<const float> parameters,
                   ThreadPool& pool, const Model::Renew& renew) {
  for (Tower* tower : towers) RECMILL_RETURN_IF_ERROR(tower->make_layers());
  struct Task {
    Layer* layer;
    int64_t piece, weight, bias;  // the latter two: floats into the flat vector
  };
  std::vector<Task> tasks;
  for (Tower* tower : towers) {
    for (size_t l = 0; l < tower->layers_.size(); ++l) {
      Layer& layer = tower->layers_[l];
      for (int64_t piece = 0; piece < layer.pack_tasks(); ++piece) {
        tasks.push_back({&layer, piece, tower->offsets_[2 * l], tower->offsets_[2 * l + 1]});
      }
    }
  }
  pool.run(static_cast<int64_t>(tasks.size()), [&](int64_t t) {
    const auto& [layer, piece, weight, bias] = tasks[static_cast<size_t>(t)];
    if (renew) {
      const int64_t inputs = layer->spec().inputs;
      renew(weight + layer->pack_begin(piece) * inputs,
            weight + layer->pack_begin(piece + 1) * inputs);
      if (piece == 0) renew(bias, bias + layer->spec().outputs);
    }
    layer->pack(piece, parameters.data() + weight, parameters.data() + bias);
  });
  return {};
}

}  // namespace recmill::model
