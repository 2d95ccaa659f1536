// SPDX-License-Identifier: Apache-2.0
#include "model/mlp.h"

#include <algorithm>
#include <utility>

#include "base/bfloat16.h"
#include "kernels/dense_layer/panels.h"
#include "kernels/dense_layer/products.h"
#include "model/initialize.h"
#include "model/tower.h"

namespace recmill::model {
namespace {

using kernels::Precision;
using kernels::dense_layer::kBlock;
using kernels::dense_layer::PanelLayout;

/// Whether the first layer reads x in panels: where no backward follows, which reads it by feature.
bool in_panels(const SliceInput& input, Precision precision) {
  return precision == Precision::float32 && !input.training;
}

/// to[k][i] = from[i][k]; neither has gaps.
void transpose(const float* from, int64_t rows, int64_t columns, float* to) {
  const PanelLayout whole{.width = rows, .panel_stride = rows * columns};
  pack_transposed({from, rows, columns, 0, rows}, whole, Precision::float32, to);
}

class Mlp final : public Model {
 public:
  Status make(const ModelOptions& options, const ModelSpec& spec);

  const std::vector<ParameterSpec>& parameters() const override { return parameters_.specs; }
  int64_t parameter_count() const override { return parameters_.count; }
  EmbeddingLayout embedding_layout() const override { return layout_; }
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
  int64_t inputs() const { return num_dense_ + layout_.stride; }
  void take_inputs(const SliceInput& input, BlockState& state) const;
  void give_gradient(int64_t samples, const float* by_x, float* pooled) const;

  Precision precision_ = Precision::float32;
  int64_t num_dense_ = 0;
  EmbeddingLayout layout_;
  Tower top_;
  ParameterList parameters_;
  std::vector<KeptMatrix> kept_;  // x, outputs of top_
};

Status Mlp::make(const ModelOptions& options, const ModelSpec& spec) {
  precision_ = precision_of(options);
  num_dense_ = spec.num_dense;
  for (size_t f = 0; f < spec.features.size(); ++f) {
    layout_.offset.push_back(layout_.stride);
    layout_.stride += spec.dim_of(f);
  }
  kept_.push_back({inputs(), precision_});
  RECMILL_ASSIGN_OR_RETURN(top_, Tower::make({.name = "top",
                                              .inputs = inputs(),
                                              .sizes = options.top,
                                              .precision = precision_,
                                              .to_logit = true},
                                             parameters_, kept_));
  return {};
}

void Mlp::initialize(uint64_t seed, std::span<float> parameters) const {
  for (const ParameterSpec& p : parameters_.specs) {
    initialize_linear(seed, p, part_of(parameters, p));
  }
}

std::unique_ptr<SliceState> Mlp::make_state() const {
  return std::make_unique<BlockState>(kept_, top_.widest(), /*scratch=*/0);
}

Status Mlp::load(std::span<const float> parameters, ThreadPool& pool, const Renew& renew) {
  Tower* const towers[] = {&top_};
  return load_towers(towers, parameters, pool, renew);
}

/// x as the first layer reads it: by feature or in panels in float32, by sample in bfloat16.
void Mlp::take_inputs(const SliceInput& input, BlockState& state) const {
  if (in_panels(input, precision_)) {
    const PanelLayout layout = kernels::dense_layer::product_panels(inputs());
    float* x = state.floats(0);
    pack_transposed({input.dense, input.samples, num_dense_, 0, input.samples}, layout, precision_,
                    x);
    pack_transposed({input.pooled, input.samples, layout_.stride, 0, input.samples}, layout,
                    precision_, x + num_dense_ * layout.width);
    return;
  }
  if (precision_ == Precision::float32) {
    float* x = state.floats(0);
    transpose(input.dense, input.samples, num_dense_, x);
    transpose(input.pooled, input.samples, layout_.stride, x + num_dense_ * input.samples);
    return;
  }
  auto* x = reinterpret_cast<BFloat16*>(state.at(0));
  for (int64_t i = 0; i < input.samples; ++i) {
    const float* dense = input.dense + i * num_dense_;
    const float* pooled = input.pooled + i * layout_.stride;
    for (int64_t k = 0; k < num_dense_; ++k) *x++ = to_bfloat16(dense[k]);
    for (int64_t k = 0; k < layout_.stride; ++k) *x++ = to_bfloat16(pooled[k]);
  }
}

/// The part of the gradient by x that is the rows', as rows are stored.
void Mlp::give_gradient(int64_t samples, const float* by_x, float* pooled) const {
  if (precision_ == Precision::float32) {
    transpose(by_x + num_dense_ * samples, layout_.stride, samples, pooled);
    return;
  }
  const auto* from = reinterpret_cast<const BFloat16*>(by_x);
  for (int64_t i = 0; i < samples; ++i) {
    const BFloat16* by_rows = from + i * inputs() + num_dense_;
    for (int64_t k = 0; k < layout_.stride; ++k) *pooled++ = to_float(by_rows[k]);
  }
}

Status Mlp::forward(int /*phase*/, const SliceInput& input, std::span<const float> /*total*/,
                    SliceState& slice_state, std::span<float> /*sum*/,
                    std::span<float> logits) const {
  auto& state = static_cast<BlockState&>(slice_state);
  take_inputs(input, state);
  top_.forward(input.samples, state.at(0), logits.data(), state, in_panels(input, precision_));
  return {};
}

Status Mlp::backward(int /*phase*/, const SliceInput& input, std::span<const float> /*total*/,
                     std::span<const float> logit_gradient, SliceState& slice_state,
                     std::span<float> /*sum*/, SliceGradient gradient) const {
  auto& state = static_cast<BlockState&>(slice_state);
  std::copy(logit_gradient.begin(), logit_gradient.end(), state.gradient(0));
  const float* by_x = top_.backward(input.samples, state.at(0), state.gradient(0),
                                    gradient.accumulate, gradient.parameters, state);
  give_gradient(input.samples, by_x, gradient.pooled);
  return {};
}

}  // namespace

Result<std::unique_ptr<Model>> make_mlp(const ModelOptions& options, const ModelSpec& spec) {
  auto model = std::make_unique<Mlp>();
  RECMILL_RETURN_IF_ERROR(model->make(options, spec));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace recmill::model
