// SPDX-License-Identifier: Apache-2.0
#include "model/graphed_layers.h"

#include <algorithm>
#include <utility>

namespace recmill::model {
namespace {

// By then libraries have chosen their kernels, and have the memory that they need.
constexpr int64_t kBatchesBefore = 2;
constexpr size_t kMostCaptured = 16;

}  // namespace

GraphedLayers::Captured& GraphedLayers::captured(const Place& of) {
  const auto found = std::ranges::find_if(captured_, [&](const auto& c) { return c->of == of; });
  if (found != captured_.end()) {
    std::rotate(found, found + 1, captured_.end());
    return *captured_.back();
  }
  if (captured_.size() == kMostCaptured) captured_.erase(captured_.begin());
  captured_.push_back(std::make_unique<Captured>());
  captured_.back()->of = of;
  return *captured_.back();
}

Status GraphedLayers::forward(const GpuLayersInput& input, float* logits, float* totals,
                              GpuStream& stream) {
  current_ = nullptr;
  const bool waits_for_ranks = input.add_over_ranks && totals_size() > 0;
  if (waits_for_ranks || input.samples == 0 || !layers_->is_repeatable(input.training))
    return layers_->forward(input, logits, totals, stream);
  const int64_t version = layers_->memory_version();
  if (std::exchange(memory_version_, version) != version) captured_.clear();
  Captured& of = captured(
      {input.samples, input.training, input.parameters, input.dense, input.pooled, logits, totals});
  if (of.batches < kBatchesBefore) {
    ++of.batches;
    return layers_->forward(input, logits, totals, stream);
  }
  current_ = &of;
  input_ = input;
  if (!of.has_forward) {
    RECMILL_ASSIGN_OR_RETURN(of.forward, stream.capture("layers, forward", [&] {
      return layers_->forward(input, logits, totals, stream);
    }));
    of.has_forward = true;
  }
  ++launched_;
  return stream.launch(of.forward);
}

Status GraphedLayers::backward(const float* logit_gradient, const GpuLayersGradient& gradient,
                               GpuStream& stream) {
  if (current_ == nullptr) return layers_->backward(logit_gradient, gradient, stream);
  Captured& of = *current_;
  const BackwardPlace back{logit_gradient, gradient.pooled, gradient.parameters};
  if (!of.has_backward) {
    RECMILL_ASSIGN_OR_RETURN(of.backward, stream.capture("layers, backward", [&] {
      return layers_->backward(logit_gradient, gradient, stream);
    }));
    of.back = back;
    of.has_backward = true;
  }
  return of.back == back ? stream.launch(of.backward) : again(logit_gradient, gradient, stream);
}

// Gradients have moved since the batch was captured: what backward() needs of the forward pass is
// in the graph alone, so that both are enqueued, which writes the same logits.
Status GraphedLayers::again(const float* logit_gradient, const GpuLayersGradient& gradient,
                            GpuStream& stream) {
  const Place of = current_->of;
  std::erase_if(captured_, [&](const auto& c) { return c.get() == current_; });
  current_ = nullptr;
  RECMILL_RETURN_IF_ERROR(layers_->forward(input_, of.logits, of.totals, stream));
  return layers_->backward(logit_gradient, gradient, stream);
}

}  // namespace recmill::model
