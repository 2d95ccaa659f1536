// SPDX-License-Identifier: Apache-2.0
#include "model/torch/deep_fm.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <numeric>

#include "base/random.h"
#include "model/initialize.h"

namespace recmill::model {
namespace {

constexpr double kNormEpsilon = 1e-5;
constexpr float kNormMomentum = 0.1f;

/// Phases, with batch normalisation of H hidden layers: phase 2 l makes layer l's sums, 2 l + 1 its
/// squares about the mean, 2 l + 2 normalises and goes on to the next layer; 2 H + 1 in all.
/// Carried: {the layer's values, the rest of the logit}.
class DeepFm : public TorchModel {
 public:
  DeepFm(const ModelOptions& options, const ModelSpec& spec, uint64_t seed)
      : TorchModel(options, spec), seed_(seed) {
    own_features_ = std::ranges::count(spec.features, -1, &FeatureSpec::same_ids_as);
    dim_ = spec.dim_of(0);
    rows_width_ = own_features_ * dim_;
    if (options.first_order == FirstOrder::dense) {
      int64_t rows = 0;
      for (const auto& table : spec.tables) {
        first_row_.push_back(rows);
        rows += table.rows;
      }
      first_order_ = add_parameter("first_order.weight", {rows, 1}, Initial::row);
    }
    first_order_bias_ = add_parameter("first_order.bias", {1}, Initial::zero);
    deep_ = add_layers("deep", deep_inputs(rows_width_), options.deep);
    for (size_t l = 0; options.batch_norm && l < hidden(); ++l) norms_.push_back(add_norm(l));
  }

  bool reads_rows() const override { return model::reads_rows(options_); }
  bool draws_random() const override { return options_.dropout > 0.0; }
  int phases() const override { return 1 + 2 * static_cast<int>(norms_.size()); }
  int64_t forward_sum_size(int phase) const override {
    return phase + 1 == phases() ? 0 : options_.deep[phase / 2] + 1;
  }
  void finish_iteration(std::span<const std::vector<float>> totals, int64_t samples,
                        std::span<float> parameters) const override;

 protected:
  Segment run(int phase, const SliceTensors& slice, const std::vector<at::Tensor>& carry,
              const at::Tensor& total) const override;

 private:
  struct Norm {
    int weight = 0, bias = 0, mean = 0, variance = 0;
  };
  size_t hidden() const { return options_.deep.size() - 1; }
  Norm add_norm(size_t layer);
  at::Tensor below_deep(const SliceTensors& slice) const;
  at::Tensor dense_first_order(const SliceTensors& slice) const;
  at::Tensor dropped(const SliceTensors& slice, size_t layer, const at::Tensor& x) const;
  /// From layer `layer`'s normalised values on: to the next synchronisation, or the logits.
  Segment onward(const SliceTensors& slice, size_t layer, at::Tensor x, at::Tensor rest) const;

  const uint64_t seed_;
  int64_t own_features_ = 0, dim_ = 0, rows_width_ = 0;
  int first_order_ = -1, first_order_bias_ = -1;
  std::vector<int64_t> first_row_;  // [tables], first_order = dense
  Layers deep_;
  std::vector<Norm> norms_;
};

DeepFm::Norm DeepFm::add_norm(size_t layer) {
  const std::string prefix = fmt::format("norm.{}", layer);
  const std::vector<int64_t> shape{options_.deep[layer]};
  Norm norm;
  norm.weight = add_parameter(prefix + ".weight", shape, Initial::one);
  norm.bias = add_parameter(prefix + ".bias", shape, Initial::zero);
  norm.mean = add_parameter(prefix + ".running_mean", shape, Initial::zero, false);
  norm.variance = add_parameter(prefix + ".running_var", shape, Initial::one, false);
  return norm;
}

/// [samples]: each sample's sum over features of its pooled weights.
at::Tensor DeepFm::dense_first_order(const SliceTensors& slice) const {
  std::vector<int64_t> sample_of, row_of;
  std::vector<float> scale_of;
  for (size_t f = 0; f < spec_.features.size(); ++f) {
    const JaggedView& bags = slice.rows[f];
    const int64_t first_row = first_row_[spec_.features[f].table];
    for (int64_t i = 0; i < slice.samples; ++i) {
      const int64_t count = bags.offsets[i + 1] - bags.offsets[i];
      const float share = spec_.features[f].pooling == Pooling::mean ? 1.0f / float(count) : 1.0f;
      for (int64_t j = bags.offsets[i]; j < bags.offsets[i + 1]; ++j) {
        sample_of.push_back(i);
        row_of.push_back(first_row + bags.rows[j]);
        scale_of.push_back(share * (bags.weights == nullptr ? 1.0f : bags.weights[j]));
      }
    }
  }
  const at::Tensor weights = slice.parameters[first_order_].squeeze(1);
  const at::Tensor looked_up = weights.index_select(0, on_device_of(weights, row_of));
  return at::zeros({slice.samples}, weights.options())
      .index_add(0, on_device_of(weights, sample_of),
                 looked_up * at::tensor(scale_of).to(weights.options()));
}

/// [samples]: all of the logit but the deep part.
at::Tensor DeepFm::below_deep(const SliceTensors& slice) const {
  const at::Tensor rows =
      slice.pooled.narrow(1, 0, rows_width_).reshape({slice.samples, own_features_, dim_});
  const at::Tensor square_of_sum = rows.sum(1).square();
  const at::Tensor second = 0.5 * (square_of_sum - rows.square().sum(1)).sum(1);
  const at::Tensor first = first_order_ >= 0
                               ? dense_first_order(slice)
                               : slice.pooled.narrow(1, rows_width_, own_features_).sum(1);
  return first + second + slice.parameters[first_order_bias_];
}

at::Tensor DeepFm::dropped(const SliceTensors& slice, size_t layer, const at::Tensor& x) const {
  if (!slice.training || options_.dropout == 0.0) return x;
  const float p = static_cast<float>(options_.dropout);
  const float kept = 1.0f / (1.0f - p);
  const Random random(seed_, Purpose::dropout, static_cast<uint64_t>(slice.iteration));
  const int64_t first = std::accumulate(options_.deep.begin(), options_.deep.begin() + layer, 0ll);
  at::Tensor mask = at::empty(x.sizes(), at::kFloat);
  float* values = mask.mutable_data_ptr<float>();
  for (int64_t i = 0; i < x.size(0); ++i) {
    for (int64_t j = 0; j < x.size(1); ++j) {
      const float u = random.uniform(static_cast<uint64_t>(slice.first_sample + i),
                                     static_cast<uint64_t>(first + j));
      *values++ = u >= p ? kept : 0.0f;
    }
  }
  return x * mask.to(x.device());
}

/// [width + 1]: a sum over the slice's samples, and how many they are.
at::Tensor with_count(const SliceTensors& slice, const at::Tensor& sum) {
  return at::cat({sum, at::full({1}, double(slice.samples), sum.options())});
}

TorchModel::Segment DeepFm::onward(const SliceTensors& slice, size_t layer, at::Tensor x,
                                   at::Tensor rest) const {
  while (layer < hidden()) {
    x = dropped(slice, layer, at::relu(x));
    x = linear(slice, deep_[++layer], x);
    if (layer < norms_.size()) {
      return {{x, rest}, with_count(slice, x.sum(0))};
    }
  }
  return {{x.squeeze(1) + rest}, {}};
}

TorchModel::Segment DeepFm::run(int phase, const SliceTensors& slice,
                                const std::vector<at::Tensor>& carry,
                                const at::Tensor& total) const {
  if (phase == 0) {
    const at::Tensor rows = slice.pooled.narrow(1, 0, rows_width_);
    at::Tensor x = linear(slice, deep_[0], deep_input(slice, rows));
    if (norms_.empty()) return onward(slice, 0, x, below_deep(slice));
    return {{x, below_deep(slice)}, with_count(slice, x.sum(0))};
  }
  const size_t layer = static_cast<size_t>(phase - 1) / 2;
  const Norm& norm = norms_[layer];
  const int64_t width = options_.deep[layer];
  const at::Tensor count = total.narrow(0, width, 1);
  const at::Tensor average = total.narrow(0, 0, width) / count;
  if (phase % 2 == 1) {
    const at::Tensor mean = slice.training ? average : slice.parameters[norm.mean];
    const at::Tensor centred = carry[0] - mean;
    return {{centred, carry[1]}, with_count(slice, centred.square().sum(0))};
  }
  const at::Tensor variance = slice.training ? average : slice.parameters[norm.variance];
  const at::Tensor x = carry[0] / (variance + kNormEpsilon).sqrt() * slice.parameters[norm.weight] +
                       slice.parameters[norm.bias];
  return onward(slice, layer, x, carry[1]);
}

void DeepFm::finish_iteration(std::span<const std::vector<float>> totals, int64_t samples,
                              std::span<float> parameters) const {
  if (samples == 0) return;
  const auto move = [&](int parameter, std::span<const float> total, float divisor) {
    const std::span<float> running = part_of(parameters, this->parameters()[parameter]);
    for (size_t j = 0; j < running.size(); ++j) {
      running[j] = (1.0f - kNormMomentum) * running[j] + kNormMomentum * (total[j] / divisor);
    }
  };
  for (size_t l = 0; l < norms_.size(); ++l) {
    move(norms_[l].mean, totals[2 * l], float(samples));
    if (samples > 1) move(norms_[l].variance, totals[2 * l + 1], float(samples - 1));
  }
}

}  // namespace

std::unique_ptr<TorchModel> make_deep_fm(const ModelOptions& options, const ModelSpec& spec,
                                         uint64_t seed) {
  return std::make_unique<DeepFm>(options, spec, seed);
}

}  // namespace recmill::model
