// SPDX-License-Identifier: Apache-2.0
#include "model/gpu_layers.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/tensor_models.h"
#include "model/torch_device.h"
#include "model/torch_errors.h"

namespace recmill::model {
namespace {

constexpr int64_t kAlignFloats = 4;  // 16 bytes

int64_t aligned(int64_t floats) {
  return (floats + kAlignFloats - 1) / kAlignFloats * kAlignFloats;
}

class TorchLayers final : public GpuLayers {
 public:
  TorchLayers(TorchDevice device, const TorchModel& model, const ModelSpec& spec)
      : device_(std::move(device)), model_(model), spec_(spec) {
    for (size_t f = 0; f < spec.features.size(); ++f) {
      if (spec.features[f].pooling == Pooling::none) {
        layout_.offset.push_back(-1);
        continue;
      }
      layout_.offset.push_back(layout_.stride);
      for (int64_t e = 0; e < spec.dim_of(f); ++e) columns_.push_back(layout_.stride + e);
      layout_.stride += aligned(spec.dim_of(f));
    }
    for (int phase = 0; phase < model_.phases(); ++phase)
      totals_size_ += model_.forward_sum_size(phase);
  }

  const Model& model() const override { return model_; }
  const EmbeddingLayout& layout() const override { return layout_; }
  int64_t totals_size() const override { return totals_size_; }
  // Offsets and rows are read by the host.
  bool is_repeatable(bool training) const override {
    const bool has_sequences = std::ranges::any_of(
        spec_.features, [](const FeatureSpec& f) { return f.pooling == Pooling::none; });
    return !has_sequences && !model_.reads_rows() && !(training && model_.draws_random());
  }
  int64_t memory_version() const override { return device_.freed(); }

  Status forward(const GpuLayersInput& input, float* logits, float* totals,
                 GpuStream& stream) override {
    return device_.enqueue(stream, [this, input, logits, totals] {
      return guarded("forward", [&] { return forward_now(input, logits, totals); });
    });
  }
  Status backward(const float* logit_gradient, const GpuLayersGradient& gradient,
                  GpuStream& stream) override {
    return device_.enqueue(stream, [this, logit_gradient, gradient] {
      return guarded("backward", [&] { return backward_now(logit_gradient, gradient); });
    });
  }

 private:
  at::Tensor view(const float* values, at::IntArrayRef shape) const {
    return at::for_blob(const_cast<float*>(values), shape)
        .options(at::TensorOptions(at::kFloat).device(device_.device))
        .target_device(device_.device)
        .make_tensor();
  }

  // The graph's leaves, in the order of `leaves_`: pooled rows, sequences, trained parameters.
  ShardTensors tensors_of(const GpuLayersInput& input) {
    ShardTensors batch;
    batch.samples = input.samples;
    batch.first_sample = input.first_sample;
    batch.iteration = input.iteration;
    batch.training = input.training;
    batch.rows = rows_ = input.rows;
    batch.dense = view(input.dense, {input.samples, spec_.num_dense});
    at::Tensor pooled = view(input.pooled, {input.samples, layout_.stride});
    leaves_ = {pooled};
    size_t sequence = 0;
    for (size_t f = 0; f < spec_.features.size(); ++f) {
      if (spec_.features[f].pooling != Pooling::none) continue;
      const auto& [rows, offsets] = input.sequences[sequence++];
      batch.sequences.push_back(view(rows, {offsets[input.samples] - offsets[0], spec_.dim_of(f)}));
      batch.offsets.emplace_back(offsets, static_cast<size_t>(input.samples) + 1);
      leaves_.push_back(batch.sequences.back());
    }
    for (const ParameterSpec& of : model_.parameters()) {
      batch.parameters.push_back(view(input.parameters + of.offset, of.shape));
      if (of.trained) leaves_.push_back(batch.parameters.back());
    }
    if (input.training)
      for (at::Tensor& leaf : leaves_) leaf.set_requires_grad(true);
    batch.pooled = is_padded() ? pooled.index_select(1, columns()) : pooled;
    return batch;
  }

  bool is_padded() const { return std::ssize(columns_) != layout_.stride; }
  const at::Tensor& columns() {
    if (!columns_there_.defined())
      columns_there_ = at::tensor(columns_, at::kLong).to(device_.device);
    return columns_there_;
  }

  Status forward_now(const GpuLayersInput& input, float* logits, float* totals) {
    const c10::AutoGradMode grad(input.training);
    const ShardTensors batch = tensors_of(input);
    TorchModel::Sums sums;
    logits_ = model_.logits_of(batch, &sums);
    const c10::NoGradGuard no_grad;
    view(logits, {input.samples}).copy_(logits_);
    for (const at::Tensor& sum : sums) {
      view(totals, {sum.numel()}).copy_(sum);
      totals += sum.numel();
    }
    if (!input.training) logits_.reset();
    return {};
  }

  Status backward_now(const float* logit_gradient, const GpuLayersGradient& gradient) {
    const auto gradients = torch::autograd::grad(
        {logits_}, leaves_, {view(logit_gradient, logits_.sizes())}, false, false, true);
    const c10::NoGradGuard no_grad;
    size_t next = 0;
    const auto write = [&](float* to, at::IntArrayRef shape) {
      const at::Tensor& from = gradients[next++];
      from.defined() ? view(to, shape).copy_(from) : view(to, shape).zero_();
    };
    write(gradient.pooled, leaves_[0].sizes());
    for (float* const to : gradient.sequences) write(to, leaves_[next].sizes());
    view(gradient.parameters, {model_.parameter_count()}).zero_();
    for (const ParameterSpec& of : model_.parameters())
      if (of.trained) write(gradient.parameters + of.offset, of.shape);
    logits_.reset();
    leaves_.clear();
    return {};
  }

  const TorchDevice device_;
  const TorchModel& model_;
  const ModelSpec spec_;
  EmbeddingLayout layout_;
  std::vector<int64_t> columns_;  // of the layout that features have
  int64_t totals_size_ = 0;
  at::Tensor columns_there_;

  // Of the last forward(), in the order of the stream.
  std::vector<JaggedView> rows_;
  std::vector<at::Tensor> leaves_;
  at::Tensor logits_;
};

}  // namespace

Result<std::unique_ptr<Model>> make_model_of_gpu(const ModelOptions& options, const ModelSpec& spec,
                                                 uint64_t seed) {
  RECMILL_ASSIGN_OR_RETURN(auto model, make_tensor_model(options, spec, seed));
  return std::unique_ptr<Model>(std::move(model));
}

Status open_layers_on_cuda() {
  return torch_on_cuda().status();
}

Result<std::unique_ptr<GpuLayers>> make_gpu_layers(LayersOn on, const Model& model,
                                                   const ModelSpec& spec) {
  const auto* const of = dynamic_cast<const TorchModel*>(&model);
  RECMILL_CHECK(of != nullptr);
  auto device = on == LayersOn::cuda ? torch_on_cuda() : torch_on_emulated_gpu();
  RECMILL_RETURN_IF_ERROR(device.status());
  return std::unique_ptr<GpuLayers>(new TorchLayers(*std::move(device), *of, spec));
}

}  // namespace recmill::model
