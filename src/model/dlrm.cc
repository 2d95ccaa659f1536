// SPDX-License-Identifier: Apache-2.0
#include "model/dlrm.h"

#include <algorithm>
#include <utility>

#include "base/bfloat16.h"
#include "kernels/interaction/interaction.h"
#include "model/initialize.h"
#include "model/tower.h"

namespace recmill::model {
namespace {

using kernels::Precision;
using kernels::dense_layer::kBlock;

class Dlrm final : public Model {
 public:
  Status make(const ModelOptions& options, const ModelSpec& spec);

  const std::vector<ParameterSpec>& parameters() const override { return parameters_.specs; }
  int64_t parameter_count() const override { return parameters_.count; }
  EmbeddingLayout embedding_layout() const override;
  void initialize(uint64_t seed, std::span<float> parameters) const override;
  std::unique_ptr<SliceState> make_state() const override;
  int64_t block_samples() const override { return kBlock; }
  bool scores_in_any_block() const override { return precision_ == Precision::float32; }
  Status load(std::span<const float> parameters, ThreadPool& pool, const Renew& renew) override;
  Status forward(int phase, const SliceInput& input, std::span<const float> total,
                 SliceState& state, std::span<float> sum, std::span<float> logits) const override;
  Status backward(int phase, const SliceInput& input, std::span<const float> total,
                  std::span<const float> logit_gradient, SliceState& state, std::span<float> sum,
                  SliceGradient gradient) const override;

 private:
  void take_dense(const SliceInput& input, BlockState& state) const;
  kernels::interaction::Vectors vectors(const SliceInput& input, BlockState& state) const;

  Precision precision_ = Precision::float32;
  int64_t num_dense_ = 0;
  kernels::interaction::InteractionSpec interaction_;
  Tower bottom_, top_;
  ParameterList parameters_;
  std::vector<KeptMatrix> kept_;  // dense values, outputs of bottom_, z, outputs of top_
  size_t kept_interaction_ = 0;   // z
};

Status Dlrm::make(const ModelOptions& options, const ModelSpec& spec) {
  precision_ = precision_of(options);
  num_dense_ = spec.num_dense;
  const int64_t dim = spec.features.empty() ? options.bottom.back() : spec.dim_of(0);
  interaction_ = {static_cast<int64_t>(spec.features.size()), dim, !options.bottom.empty(),
                  precision_};
  kept_.push_back({num_dense_, precision_});
  RECMILL_ASSIGN_OR_RETURN(bottom_, Tower::make({.name = "bottom",
                                                 .inputs = num_dense_,
                                                 .sizes = options.bottom,
                                                 .precision = precision_},
                                                parameters_, kept_));
  kept_interaction_ = kept_.size();
  kept_.push_back({interaction_.outputs(), precision_});
  RECMILL_ASSIGN_OR_RETURN(top_, Tower::make({.name = "top",
                                              .inputs = interaction_.outputs(),
                                              .sizes = options.top,
                                              .precision = precision_,
                                              .to_logit = true},
                                             parameters_, kept_));
  return {};
}

EmbeddingLayout Dlrm::embedding_layout() const {
  EmbeddingLayout layout{interaction_.features * interaction_.dim, {}};
  for (int64_t f = 0; f < interaction_.features; ++f) layout.offset.push_back(f * interaction_.dim);
  return layout;
}

void Dlrm::initialize(uint64_t seed, std::span<float> parameters) const {
  for (const ParameterSpec& p : parameters_.specs) {
    initialize_linear(seed, p, part_of(parameters, p));
  }
}

std::unique_ptr<SliceState> Dlrm::make_state() const {
  const int64_t widest = std::max({interaction_.dim, bottom_.widest(), top_.widest()});
  return std::make_unique<BlockState>(kept_, widest,
                                      kernels::interaction::scratch_size(interaction_));
}

Status Dlrm::load(std::span<const float> parameters, ThreadPool& pool, const Renew& renew) {
  Tower* const towers[] = {&bottom_, &top_};
  return load_towers(towers, parameters, pool, renew);
}

/// The dense values as the first bottom layer reads them.
void Dlrm::take_dense(const SliceInput& input, BlockState& state) const {
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

kernels::interaction::Vectors Dlrm::vectors(const SliceInput& input, BlockState& state) const {
  const int64_t stride = interaction_.features * interaction_.dim;
  if (!interaction_.bottom) return {nullptr, input.pooled, stride};
  return {state.floats(bottom_.last_kept()), input.pooled, stride};
}

Status Dlrm::forward(int /*phase*/, const SliceInput& input, std::span<const float> /*total*/,
                     SliceState& slice_state, std::span<float> /*sum*/,
                     std::span<float> logits) const {
  auto& state = static_cast<BlockState&>(slice_state);
  take_dense(input, state);
  bottom_.forward(input.samples, state.at(0), nullptr, state);
  void* z = state.at(kept_interaction_);
  kernels::interaction::forward(interaction_, input.samples, vectors(input, state), z,
                                state.scratch());
  top_.forward(input.samples, z, logits.data(), state);
  return {};
}

Status Dlrm::backward(int /*phase*/, const SliceInput& input, std::span<const float> /*total*/,
                      std::span<const float> logit_gradient, SliceState& slice_state,
                      std::span<float> /*sum*/, SliceGradient gradient) const {
  auto& state = static_cast<BlockState&>(slice_state);
  std::copy(logit_gradient.begin(), logit_gradient.end(), state.gradient(0));
  float* by_z = top_.backward(input.samples, state.at(kept_interaction_), state.gradient(0),
                              gradient.accumulate, gradient.parameters, state);
  float* by_bottom = state.other_gradient(by_z);
  kernels::interaction::backward(
      interaction_, input.samples, vectors(input, state), by_z,
      {by_bottom, gradient.pooled, interaction_.features * interaction_.dim}, state.scratch());
  bottom_.backward(input.samples, state.at(0), by_bottom, gradient.accumulate, gradient.parameters,
                   state);
  return {};
}

}  // namespace

Result<std::unique_ptr<Model>> make_dlrm(const ModelOptions& options, const ModelSpec& spec) {
  auto model = std::make_unique<Dlrm>();
  RECMILL_RETURN_IF_ERROR(model->make(options, spec));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace recmill::model
