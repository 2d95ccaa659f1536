// SPDX-License-Identifier: Apache-2.0
#include "model/torch/tbsm.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "batch/feature_layout.h"

namespace recmill::model {
namespace {

class Tbsm : public TorchModel {
 public:
  Tbsm(const ModelOptions& options, const ModelSpec& spec) : TorchModel(options, spec) {
    const FeatureLayout layout(spec);
    std::vector<int> history_of_table(spec.tables.size(), -1);
    for (const auto& history : layout.sequences())
      history_of_table[history.table] = static_cast<int>(history.sequence);
    for (const auto& feature : layout.features())
      if (feature.is_pooled())
        vectors_.push_back({feature.column, history_of_table[feature.table]});
    dim_ = spec.dim_of(0);
    const int64_t length = options.sequence_length;
    bottom_ = add_layers("bottom", spec.num_dense, options.bottom);
    const auto n = static_cast<int64_t>(vectors_.size()) + (bottom_.empty() ? 0 : 1);
    const int64_t products = n * (n - 1) / 2;
    top_ = add_layers("top", products + (bottom_.empty() ? 0 : dim_), options.top);
    if (!options.attention.empty()) {
      std::vector<int64_t> sizes = options.attention;
      sizes.push_back(length);
      attention_ = add_layers("attention", length, sizes);
    }
    over_ = add_layers("over", 2 * options.top.back(), options.over);
  }

 protected:
  Status check(const SliceInput& input) const override;
  Segment run(int, const SliceTensors& slice, const std::vector<at::Tensor>&,
              const at::Tensor&) const override;

 private:
  /// Where a step's vectors come from: a pooled feature, and the history that replaces it in the
  /// steps before the target (-1: none).
  struct Vector {
    int64_t pooled_offset = 0;
    int history = -1;
  };
  /// vectors: [samples or steps, dim] each.
  at::Tensor step(const SliceTensors& slice, const std::vector<at::Tensor>& vectors) const;

  int64_t dim_ = 0;
  std::vector<Vector> vectors_;
  Layers bottom_, top_, attention_, over_;
};

Status Tbsm::check(const SliceInput& input) const {
  const int64_t* first = input.sequences[0].offsets;
  for (const auto& sequence : input.sequences) {
    for (int64_t i = 0; i < input.samples; ++i) {
      const int64_t expected = first[i + 1] - first[i];
      const int64_t steps = sequence.offsets[i + 1] - sequence.offsets[i];
      if (steps == expected) continue;
      return Status::Failed(fmt::format(
          "model: sample {}: its histories have {} and {} steps, and must be equally long",
          input.first_sample + i, expected, steps));
    }
  }
  return {};
}

at::Tensor Tbsm::step(const SliceTensors& slice, const std::vector<at::Tensor>& vectors) const {
  const at::Tensor v = at::stack(vectors, 1);  // [steps, n, dim]
  at::Tensor inputs = pair_products(v);
  if (!bottom_.empty()) inputs = at::cat({vectors[0], inputs}, 1);
  return layers(slice, top_, inputs, Last::relu);
}

TorchModel::Segment Tbsm::run(int, const SliceTensors& slice, const std::vector<at::Tensor>&,
                              const at::Tensor&) const {
  const int64_t length = options_.sequence_length;
  std::vector<int64_t> lookup_of, sample_of, place_of;  // [steps that count]
  const std::span<const int64_t> offsets = slice.offsets[0];
  for (int64_t i = 0; i < slice.samples; ++i) {
    const int64_t end = offsets[i + 1];
    for (int64_t j = std::max(offsets[i], end - length); j < end; ++j) {
      lookup_of.push_back(j - offsets[0]);
      sample_of.push_back(i);
      place_of.push_back((i + 1) * length - (end - j));
    }
  }
  const at::Tensor lookups = on_device_of(slice.pooled, lookup_of);
  const at::Tensor samples = on_device_of(slice.pooled, sample_of);
  std::vector<at::Tensor> target, steps;
  if (!bottom_.empty()) {
    target.push_back(layers(slice, bottom_, slice.dense, Last::relu));
    steps.push_back(target[0].index_select(0, samples));
  }
  for (const Vector& vector : vectors_) {
    target.push_back(slice.pooled.narrow(1, vector.pooled_offset, dim_));
    steps.push_back(vector.history < 0 ? target.back().index_select(0, samples)
                                       : slice.sequences[vector.history].index_select(0, lookups));
  }
  const at::Tensor q = step(slice, target);
  const int64_t width = q.size(1);
  const at::Tensor h = at::zeros({slice.samples * length, width}, q.options())
                           .index_add(0, on_device_of(q, place_of), step(slice, steps))
                           .reshape({slice.samples, length, width});
  at::Tensor weights = at::bmm(h, q.unsqueeze(2)).squeeze(2);
  weights = layers(slice, attention_, weights, Last::plain);
  const at::Tensor context = at::bmm(weights.unsqueeze(1), h).squeeze(1);
  return {{layers(slice, over_, at::cat({context, q}, 1), Last::plain).squeeze(1)}, {}};
}

}  // namespace

std::unique_ptr<TorchModel> make_tbsm(const ModelOptions& options, const ModelSpec& spec) {
  return std::make_unique<Tbsm>(options, spec);
}

}  // namespace recmill::model
