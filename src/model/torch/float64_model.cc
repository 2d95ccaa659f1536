// SPDX-License-Identifier: Apache-2.0
#include "model/torch/float64_model.h"

#include <torch/csrc/autograd/autograd.h>

#include "batch/feature_layout.h"
#include "model/torch/guarded.h"
#include "model/torch/tensor_models.h"

namespace recmill::model {
namespace {

at::Tensor tensor_of(std::span<const double> values, at::IntArrayRef shape) {
  at::Tensor tensor = at::empty(shape, at::kDouble);
  RECMILL_CHECK(tensor.numel() == static_cast<int64_t>(values.size()));
  std::ranges::copy(values, tensor.mutable_data_ptr<double>());
  return tensor;
}

std::vector<double> values_of(const at::Tensor& tensor, const at::Tensor& like) {
  std::vector<double> values(like.numel(), 0.0);
  if (!tensor.defined()) return values;
  const at::Tensor straight = tensor.contiguous();
  std::copy_n(straight.const_data_ptr<double>(), values.size(), values.data());
  return values;
}

class Float64TorchModel final : public Float64Model {
 public:
  Float64TorchModel(std::unique_ptr<TorchModel> model, ModelSpec spec)
      : model_(std::move(model)), spec_(std::move(spec)), features_(spec_) {}

  const std::vector<ParameterSpec>& parameters() const override { return model_->parameters(); }
  int64_t parameter_count() const override { return model_->parameter_count(); }

  Result<std::vector<double>> forward(const Float64Batch& batch,
                                      std::span<const double> parameters) override {
    return guarded("forward in float64", [&]() -> Result<std::vector<double>> {
      take(batch, parameters);
      logits_ = model_->logits_of(tensors_);
      return values_of(logits_.detach(), logits_);
    });
  }

  Result<Float64Gradient> backward(std::span<const double> logit_gradient) override {
    return guarded("backward in float64", [&]() -> Result<Float64Gradient> {
      const auto gradients = torch::autograd::grad(
          {logits_}, leaves_, {tensor_of(logit_gradient, logits_.sizes())}, false, false, true);
      Float64Gradient result;
      auto next = gradients.begin();
      result.pooled = values_of(*next++, tensors_.pooled);
      for (const at::Tensor& sequence : tensors_.sequences) {
        result.sequences.push_back(values_of(*next++, sequence));
      }
      result.parameters.assign(parameter_count(), 0.0);
      for (size_t p = 0; p < parameters().size(); ++p) {
        if (!parameters()[p].trained) continue;
        std::ranges::copy(values_of(*next++, tensors_.parameters[p]),
                          result.parameters.begin() + parameters()[p].offset);
      }
      return result;
    });
  }

 private:
  void take(const Float64Batch& batch, std::span<const double> parameters) {
    tensors_ = {};
    tensors_.samples = batch.samples;
    tensors_.first_sample = batch.first_sample;
    tensors_.iteration = batch.iteration;
    tensors_.training = true;
    tensors_.rows = batch.rows;
    tensors_.dense = tensor_of(batch.dense, {batch.samples, spec_.num_dense});
    tensors_.pooled = tensor_of(batch.pooled, {batch.samples, model_->embedding_layout().stride});
    for (const FeatureLayout::Feature& feature : features_.sequences()) {
      const auto& sequence = batch.sequences[feature.sequence];
      const JaggedView& bags = batch.rows[feature.index];
      tensors_.sequences.push_back(tensor_of(sequence, {bags.lookups(), feature.dim}));
      tensors_.offsets.emplace_back(bags.offsets, static_cast<size_t>(batch.samples) + 1);
    }
    leaves_ = {tensors_.pooled};
    leaves_.insert(leaves_.end(), tensors_.sequences.begin(), tensors_.sequences.end());
    for (const ParameterSpec& p : this->parameters()) {
      tensors_.parameters.push_back(tensor_of(parameters.subspan(p.offset, p.size()), p.shape));
      if (p.trained) leaves_.push_back(tensors_.parameters.back());
    }
    for (at::Tensor& leaf : leaves_) leaf.set_requires_grad(true);
  }

  const std::unique_ptr<TorchModel> model_;
  const ModelSpec spec_;
  const FeatureLayout features_;
  SliceTensors tensors_;
  std::vector<at::Tensor> leaves_;  // pooled, sequences, trained parameters
  at::Tensor logits_;
};

}  // namespace

std::unique_ptr<Float64Model> make_float64_tensors(const ModelOptions& options,
                                                   const ModelSpec& spec, uint64_t seed) {
  ModelOptions exact = options;
  exact.precision = LayerPrecision::float32;  // no rounding of operands
  return std::make_unique<Float64TorchModel>(make_tensor_model(exact, spec, seed), spec);
}

}  // namespace recmill::model
