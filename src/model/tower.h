// SPDX-License-Identifier: Apache-2.0
// Fully connected layers one behind the other, made of kernels/dense_layer, as the models without
// LibTorch use them: their parameters in the flat vector, and what a block of samples keeps between
// forward and backward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/buffer.h"
#include "device/thread_pool.h"
#include "kernels/dense_layer/dense_layer.h"
#include "model/model.h"
#include "model/model_options.h"

namespace recmill::model {

/// What the layers' products are computed in.
kernels::Precision precision_of(const ModelOptions& options);

/// The named parts of a flat vector, one behind the other.
struct ParameterList {
  std::vector<ParameterSpec> specs;
  int64_t count = 0;  // floats

  void add(const std::string& name, std::vector<int64_t> shape);
};

/// A matrix that a block of samples keeps from forward to backward: by feature or by sample as the
/// layers' precision wants it (dense_layer.h).
struct KeptMatrix {
  int64_t width = 0;
  kernels::Precision precision = kernels::Precision::float32;
};

/// The kept matrices of one block, and memory for gradients on their way back.
class BlockState : public SliceState {
 public:
  /// `widest`: floats of the widest gradient of one sample. `scratch`: floats for the model's own
  /// use.
  BlockState(const std::vector<KeptMatrix>& kept, int64_t widest, int64_t scratch);

  /// Kept matrix `a`.
  std::byte* at(size_t a) { return activations_.data() + begin_[a]; }
  float* floats(size_t a) { return reinterpret_cast<float*>(at(a)); }
  /// One of two places for the gradient of a block, [kBlock * widest]; the other one of `which`.
  float* gradient(size_t which) {
    return reinterpret_cast<float*>(gradients_.data() + which * gradients_.size() / 2);
  }
  float* other_gradient(const void* which) { return gradient(which == gradient(0) ? 1 : 0); }
  float* scratch() { return scratch_.as<float>().data(); }

  kernels::dense_layer::Workspace workspace;

 private:
  std::vector<int64_t> begin_;  // bytes into activations_
  Buffer activations_, gradients_, scratch_;
};

struct TowerSpec {
  std::string name;  // parameters are name.0.weight, name.0.bias, name.2.weight, ...
  int64_t inputs = 0;
  std::vector<int64_t> sizes;
  kernels::Precision precision = kernels::Precision::float32;
  /// To the logit: no ReLU after the last layer, whose output is not kept, and backward goes on to
  /// the inputs. Else ReLU after each, and the inputs are data.
  bool to_logit = false;
};

class Tower {
 public:
  Tower() = default;  // no layers
  /// Appends its parameters to `parameters` and its outputs to `kept`. Fails where the machine
  /// cannot multiply in the precision. Takes no memory before its parameters are loaded.
  static Result<Tower> make(const TowerSpec& spec, ParameterList& parameters,
                            std::vector<KeptMatrix>& kept);

  bool empty() const { return specs_.empty(); }
  /// Kept matrix of the last layer, where it is kept.
  size_t last_kept() const { return first_kept_ + specs_.size() - 1; }
  /// Widest input or output of a sample.
  int64_t widest() const;

  /// `x` as the first layer reads it (Layer::forward); `logits` [samples] with to_logit, else null.
  void forward(int64_t samples, const void* x, float* logits, BlockState& state,
               bool x_in_panels = false) const;
  /// `dy`: by the last output, in either place of state.gradient(), where it is written over. Adds
  /// to or overwrites (`accumulate`) the flat `gradient`. Returns the gradient by `x`, in the place
  /// that is then free; meaningless where the inputs are data.
  float* backward(int64_t samples, const void* x, float* dy, bool accumulate, float* gradient,
                  BlockState& state) const;

 private:
  friend Status load_towers(std::span<Tower* const> towers, std::span<const float> parameters,
                            ThreadPool& pool, const Model::Renew& renew);
  Status make_layers();

  TowerSpec spec_;
  std::vector<kernels::dense_layer::LayerSpec> specs_;
  std::vector<kernels::dense_layer::Layer> layers_;  // of specs_, once parameters are loaded
  size_t first_kept_ = 0;
  std::vector<int64_t> offsets_;  // of each layer's weight and bias, floats into the flat vector
};

/// Model::load() of layers: all of them in pieces for the pool.
Status load_towers(std::span<Tower* const> towers, std::span<const float> parameters,
                   ThreadPool& pool, const Model::Renew& renew);

}  // namespace recmill::model
