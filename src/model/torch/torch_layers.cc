// SPDX-License-Identifier: Apache-2.0
#include "model/torch/torch_layers.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "batch/feature_layout.h"
#include "model/torch/guarded.h"
#include "model/torch/torch_device.h"
#include "model/torch/torch_model.h"

namespace recmill::model {
namespace {

constexpr int64_t kGpuAlignFloats = 4;  // 16 bytes

int64_t aligned(int64_t floats) {
  return (floats + kGpuAlignFloats - 1) / kGpuAlignFloats * kGpuAlignFloats;
}

class TorchLayers final : public GpuLayers {
 public:
  TorchLayers(TorchDevice device, const TorchModel& model, const ModelSpec& spec)
      : device_(std::move(device)), model_(model), spec_(spec), features_(spec) {
    for (const FeatureLayout::Feature& feature : features_.features()) {
      layout_.offset.push_back(feature.is_pooled() ? layout_.stride : -1);
      if (!feature.is_pooled()) continue;
      for (int64_t e = 0; e < feature.dim; ++e) columns_.push_back(layout_.stride + e);
      layout_.stride += aligned(feature.dim);
    }
    for (int phase = 0; phase < model_.phases(); ++phase)
      totals_size_ += model_.forward_sum_size(phase);
  }

  const Model& model() const override { return model_; }
  const EmbeddingLayout& layout() const override { return layout_; }
  int64_t totals_size() const override { return totals_size_; }
  // Offsets and rows are read by the host.
  bool is_repeatable(bool training) const override {
    return features_.sequences().empty() && !model_.reads_rows() &&
           !(training && model_.draws_random());
  }
  int64_t memory_version() const override { return device_.freed(); }

  Status forward(const GpuLayersInput& input, float* logits, float* totals,
                 GpuStream& stream) override {
    add_over_ranks_ = input.add_over_ranks;
    const float* total = nullptr;  // of the phase before
    for (int phase = 0; phase < model_.phases(); ++phase) {
      RECMILL_RETURN_IF_ERROR(device_.enqueue(stream, [this, phase, input, total, totals, logits] {
        return guarded("forward", [&] { return run_phase(phase, input, total, totals, logits); });
      }));
      RECMILL_RETURN_IF_ERROR(add(totals, model_.forward_sum_size(phase), stream));
      total = totals;
      totals += model_.forward_sum_size(phase);
    }
    return {};
  }
  Status backward(const float* logit_gradient, const GpuLayersGradient& gradient,
                  GpuStream& stream) override {
    float* const by_totals = make_by_totals();
    for (int phase = model_.phases() - 1; phase >= 0; --phase) {
      RECMILL_RETURN_IF_ERROR(device_.enqueue(stream, [this, phase, logit_gradient, gradient] {
        return guarded("backward", [&] { return run_back(phase, logit_gradient, gradient); });
      }));
      RECMILL_RETURN_IF_ERROR(add(by_totals, model_.backward_sum_size(phase), stream));
    }
    return {};
  }

 private:
  at::Tensor view(const float* values, at::IntArrayRef shape) const {
    return at::for_blob(const_cast<float*>(values), shape)
        .options(at::TensorOptions(at::kFloat).device(device_.device))
        .target_device(device_.device)
        .make_tensor();
  }

  SliceTensors tensors_of(const GpuLayersInput& input) {
    SliceTensors batch;
    batch.samples = input.samples;
    batch.first_sample = input.first_sample;
    batch.iteration = input.iteration;
    batch.training = input.training;
    batch.rows = rows_ = input.rows;
    batch.dense = view(input.dense, {input.samples, spec_.num_dense});
    batch.pooled = view(input.pooled, {input.samples, layout_.stride});
    if (is_padded()) batch.pooled = batch.pooled.index_select(1, columns());
    for (const FeatureLayout::Feature& feature : features_.sequences()) {
      const auto& [rows, offsets] = input.sequences[feature.sequence];
      batch.sequences.push_back(view(rows, {offsets[input.samples] - offsets[0], feature.dim}));
      batch.offsets.emplace_back(offsets, static_cast<size_t>(input.samples) + 1);
    }
    for (const ParameterSpec& of : model_.parameters())
      batch.parameters.push_back(view(input.parameters + of.offset, of.shape));
    return batch;
  }

  bool is_padded() const { return std::ssize(columns_) != layout_.stride; }
  const at::Tensor& columns() {
    if (!columns_there_.defined())
      columns_there_ = at::tensor(columns_, at::kLong).to(device_.device);
    return columns_there_;
  }

  Status add(float* values, int64_t count, GpuStream& stream) const {
    return count == 0 || !add_over_ranks_ ? Status() : add_over_ranks_(values, count, stream);
  }
  /// For the gradients by totals that a phase takes or makes.
  float* make_by_totals() {
    int64_t most = 0;
    for (int phase = 0; phase < model_.phases(); ++phase)
      most = std::max(most, model_.backward_sum_size(phase));
    if (most > 0 && !by_totals_.defined())
      by_totals_ = at::empty({most}, at::TensorOptions(at::kFloat).device(device_.device));
    return most > 0 ? by_totals_.mutable_data_ptr<float>() : nullptr;
  }

  Status run_phase(int phase, const GpuLayersInput& input, const float* total, float* sum,
                   float* logits) {
    samples_ = input.samples;
    const int64_t sum_size = model_.forward_sum_size(phase);
    const at::Tensor to_sum = view(sum, {sum_size});
    if (samples_ == 0) {
      to_sum.zero_();
      return {};
    }
    if (phase == 0) graph_.begin(model_, tensors_of(input));
    at::Tensor of_total;
    if (phase > 0) of_total = view(total, {model_.forward_sum_size(phase - 1)}).clone();
    const TorchModel::Segment& made = graph_.forward(phase, std::move(of_total));
    const c10::NoGradGuard no_grad;
    if (sum_size > 0) to_sum.copy_(made.sum);
    if (phase + 1 < model_.phases()) return {};
    view(logits, {samples_}).copy_(made.carry.at(0));
    if (!input.training) graph_.clear();
    return {};
  }

  Status run_back(int phase, const float* logit_gradient, const GpuLayersGradient& gradient) {
    const int64_t sum_size = model_.backward_sum_size(phase);
    if (samples_ == 0) {
      if (sum_size > 0) by_totals_.zero_();
      if (phase == 0) view(gradient.parameters, {model_.parameter_count()}).zero_();
      return {};
    }
    const at::Tensor by_output =
        phase + 1 == model_.phases()
            ? view(logit_gradient, {samples_})
            : by_totals_.narrow(0, 0, model_.backward_sum_size(phase + 1)).clone();
    const at::Tensor by_total = graph_.backward(phase, by_output);
    const c10::NoGradGuard no_grad;
    if (sum_size > 0) copy(by_total, by_totals_.narrow(0, 0, sum_size));
    if (phase == 0) write_gradient(gradient);
    return {};
  }

  /// Undefined: zeros.
  static void copy(const at::Tensor& from, const at::Tensor& to) {
    from.defined() ? to.copy_(from) : to.zero_();
  }
  void write_gradient(const GpuLayersGradient& gradient) {
    const auto &leaves = graph_.leaves(), &gradients = graph_.leaf_gradients();
    const at::Tensor pooled = view(gradient.pooled, {samples_, layout_.stride});
    if (is_padded() && gradients[0].defined()) {
      pooled.zero_();
      pooled.index_copy_(1, columns(), gradients[0]);
    } else {
      copy(gradients[0], pooled);
    }
    size_t next = 1;
    for (float* const to : gradient.sequences) {
      copy(gradients[next], view(to, leaves[next].sizes()));
      ++next;
    }
    view(gradient.parameters, {model_.parameter_count()}).zero_();
    for (const ParameterSpec& of : model_.parameters())
      if (of.trained) copy(gradients[next++], view(gradient.parameters + of.offset, of.shape));
    graph_.clear();
  }

  const TorchDevice device_;
  const TorchModel& model_;
  const ModelSpec spec_;
  const FeatureLayout features_;
  EmbeddingLayout layout_;
  std::vector<int64_t> columns_;  // of the layout that features have
  int64_t totals_size_ = 0;
  at::Tensor columns_there_;

  at::Tensor by_totals_;

  // Of the last forward(), in the order of the stream but for the first.
  AddOverRanks add_over_ranks_;
  int64_t samples_ = 0;
  std::vector<JaggedView> rows_;
  TorchModel::Graph graph_;
};

}  // namespace

Result<std::unique_ptr<GpuLayers>> make_torch_layers(LayersOn on, const Gpu& gpu,
                                                     const Model& model, const ModelSpec& spec) {
  const auto* const of = dynamic_cast<const TorchModel*>(&model);
  RECMILL_CHECK(of != nullptr);
  auto device =
      on == LayersOn::cuda ? torch_on_cuda(gpu.properties().number) : torch_on_emulated_gpu();
  RECMILL_RETURN_IF_ERROR(device.status());
  return std::unique_ptr<GpuLayers>(new TorchLayers(*std::move(device), *of, spec));
}

}  // namespace recmill::model
