// SPDX-License-Identifier: Apache-2.0
#include "model/torch/tensor_models.h"

#include <ATen/ATen.h>

#include "model/torch/deep_fm.h"
#include "model/torch/tbsm.h"
#include "model/torch/wide_and_cross.h"

namespace recmill::model {
namespace {

/// DLRM with tensors (kernels/interaction/interaction.h has the order of the products).
class TensorDlrm : public TorchModel {
 public:
  TensorDlrm(const ModelOptions& options, const ModelSpec& spec) : TorchModel(options, spec) {
    bottom_ = add_layers("bottom", spec.num_dense, options.bottom);
    dim_ = spec.features.empty() ? options.bottom.back() : spec.dim_of(0);
    vectors_ = static_cast<int64_t>(spec.features.size()) + (bottom_.empty() ? 0 : 1);
    const int64_t products = vectors_ * (vectors_ - 1) / 2;
    top_ = add_layers("top", products + (bottom_.empty() ? 0 : dim_), options.top);
  }

 protected:
  Segment run(int, const SliceTensors& slice, const std::vector<at::Tensor>&,
              const at::Tensor&) const override {
    at::Tensor v = slice.pooled, z;
    at::Tensor bottom;
    if (!bottom_.empty()) {
      bottom = layers(slice, bottom_, slice.dense, Last::relu);
      v = at::cat({bottom, v}, 1);
    }
    v = v.reshape({slice.samples, vectors_, dim_});
    z = pair_products(v);
    if (!bottom_.empty()) z = at::cat({bottom, z}, 1);
    return {{layers(slice, top_, z, Last::plain).squeeze(1)}, {}};
  }

 private:
  Layers bottom_, top_;
  int64_t dim_ = 0, vectors_ = 0;
};

/// The model of mlp.h with tensors.
class TensorMlp : public TorchModel {
 public:
  TensorMlp(const ModelOptions& options, const ModelSpec& spec) : TorchModel(options, spec) {
    top_ = add_layers("top", spec.num_dense + embedding_layout().stride, options.top);
  }

 protected:
  Segment run(int, const SliceTensors& slice, const std::vector<at::Tensor>&,
              const at::Tensor&) const override {
    const at::Tensor x = at::cat({slice.dense, slice.pooled}, 1);
    return {{layers(slice, top_, x, Last::plain).squeeze(1)}, {}};
  }

 private:
  Layers top_;
};

}  // namespace

std::unique_ptr<TorchModel> make_tensor_model(const ModelOptions& options, const ModelSpec& spec,
                                              uint64_t seed) {
  switch (options.kind) {
    case ModelKind::dlrm:
      return std::make_unique<TensorDlrm>(options, spec);
    case ModelKind::mlp:
      return std::make_unique<TensorMlp>(options, spec);
    case ModelKind::wide_and_deep:
      return make_wide_and_deep(options, spec);
    case ModelKind::deep_fm:
      return make_deep_fm(options, spec, seed);
    case ModelKind::deep_cross:
      return make_deep_cross(options, spec);
    case ModelKind::tbsm:
      return make_tbsm(options, spec);
  }
  RECMILL_CHECK(false);
  return nullptr;
}

}  // namespace recmill::model
