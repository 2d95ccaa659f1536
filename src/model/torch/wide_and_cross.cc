// SPDX-License-Identifier: Apache-2.0
#include "model/torch/wide_and_cross.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace recmill::model {
namespace {

class WideAndDeep : public TorchModel {
 public:
  WideAndDeep(const ModelOptions& options, const ModelSpec& spec) : TorchModel(options, spec) {
    deep_ = add_layers("deep", deep_inputs(embedding_layout().stride), options.deep);
    wide_ = add_linear("wide", embedding_layout().stride + options.deep.back(), 1);
  }

 protected:
  Segment run(int, const SliceTensors& slice, const std::vector<at::Tensor>&,
              const at::Tensor&) const override {
    const at::Tensor deep = layers(slice, deep_, deep_input(slice, slice.pooled), Last::plain);
    return {{linear(slice, wide_, at::cat({slice.pooled, deep}, 1)).squeeze(1)}, {}};
  }

 private:
  Layers deep_;
  Linear wide_;
};

class DeepCross : public TorchModel {
 public:
  DeepCross(const ModelOptions& options, const ModelSpec& spec) : TorchModel(options, spec) {
    bottom_ = add_layers("bottom", spec.num_dense, options.bottom);
    const int64_t n = embedding_layout().stride + (bottom_.empty() ? 0 : options.bottom.back());
    for (int64_t l = 0; l < options.cross_layers; ++l) {
      const std::string prefix = fmt::format("cross.{}", l);
      Cross layer;
      layer.v = add_parameter(prefix + ".v", {options.cross_rank, n}, Initial::linear);
      layer.w = add_parameter(prefix + ".w", {n, options.cross_rank}, Initial::linear);
      layer.bias = add_parameter(prefix + ".bias", {n}, Initial::zero);
      cross_.push_back(layer);
    }
    over_ = add_layers("over", n, options.over);
  }

 protected:
  Segment run(int, const SliceTensors& slice, const std::vector<at::Tensor>&,
              const at::Tensor&) const override {
    at::Tensor first = slice.pooled;
    if (!bottom_.empty()) {
      first = at::cat({layers(slice, bottom_, slice.dense, Last::relu), slice.pooled}, 1);
    }
    at::Tensor x = first;
    for (const Cross& layer : cross_) {
      const at::Tensor low = product(slice, layer.v, x);
      x = first * (product(slice, layer.w, low) + slice.parameters[layer.bias]) + x;
    }
    return {{layers(slice, over_, x, Last::plain).squeeze(1)}, {}};
  }

 private:
  struct Cross {
    int v = 0, w = 0, bias = 0;
  };
  Layers bottom_, over_;
  std::vector<Cross> cross_;
};

}  // namespace

std::unique_ptr<TorchModel> make_wide_and_deep(const ModelOptions& options, const ModelSpec& spec) {
  return std::make_unique<WideAndDeep>(options, spec);
}

std::unique_ptr<TorchModel> make_deep_cross(const ModelOptions& options, const ModelSpec& spec) {
  return std::make_unique<DeepCross>(options, spec);
}

}  // namespace recmill::model
