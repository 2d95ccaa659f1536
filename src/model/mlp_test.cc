// SPDX-License-Identifier: Apache-2.0
// The model in blocks against the same formulas in float64, one sample at a time.
#include "model/mlp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/bfloat16.h"
#include "base/random.h"
#include "kernels/dense_layer/dense_layer.h"
#include "kernels/testing/instruction_sets.h"
#include "model/initialize.h"
#include "schema/testing/tables_of_dims.h"

namespace recmill::model {
namespace {

constexpr uint64_t kSeed = 41;

ModelSpec spec_of(const std::vector<int64_t>& dims, int64_t num_dense) {
  return tables_of_dims(dims, 10, num_dense);
}

std::vector<float> random_values(int64_t size, uint64_t stream) {
  const Random random(kSeed, Purpose::test, stream);
  std::vector<float> values(static_cast<size_t>(size));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 2 * random.uniform(i) - 1;
  return values;
}

/// What a slice goes in with and comes out with.
struct Outcome {
  std::vector<float> logits, by_rows, by_parameters;
  bool operator==(const Outcome&) const = default;
};

class Trial {
 public:
  Trial(const ModelOptions& options, const ModelSpec& spec, int64_t samples)
      : options_(options), spec_(spec), samples_(samples) {
    auto made = make_mlp(options, spec);
    if (!made.ok()) return;  // no bfloat16 here
    model_ = *std::move(made);
    stride_ = model_->embedding_layout().stride;
    parameters_ = random_values(model_->parameter_count(), 1);
    for (float& value : parameters_) value *= 0.3f;
    dense_ = random_values(samples * spec.num_dense, 2);
    rows_ = random_values(samples * stride_, 3);
    logit_gradient_ = random_values(samples, 4);
  }

  const Model* model() const { return model_.get(); }

  /// As training does: block by block.
  Outcome run(int threads) {
    ThreadPool pool(threads);
    RECMILL_CHECK(model_->load(parameters_, pool).ok());
    Outcome out{std::vector<float>(logit_gradient_.size()), std::vector<float>(rows_.size()),
                std::vector<float>(parameters_.size())};
    const auto state = model_->make_state();
    for (int64_t first = 0; first == 0 || first < samples_; first += model_->block_samples()) {
      SliceInput input;
      input.training = true;
      input.samples = std::min(samples_ - first, model_->block_samples());
      input.dense = dense_.data() + first * spec_.num_dense;
      input.pooled = rows_.data() + first * stride_;
      const auto part = [&](auto& all) { return std::span(all).subspan(first, input.samples); };
      RECMILL_CHECK(model_->forward(0, input, {}, *state, {}, part(out.logits)).ok());
      const SliceGradient gradient{
          out.by_rows.data() + first * stride_, {}, out.by_parameters.data(), first > 0};
      RECMILL_CHECK(
          model_->backward(0, input, {}, part(logit_gradient_), *state, {}, gradient).ok());
    }
    return out;
  }

  /// In blocks of so many samples.
  std::vector<float> logits(int64_t block) {
    ThreadPool pool(1);
    RECMILL_CHECK(model_->load(parameters_, pool).ok());
    std::vector<float> logits(static_cast<size_t>(samples_));
    const auto state = model_->make_state();
    for (int64_t first = 0; first < samples_; first += block) {
      SliceInput input;
      input.samples = std::min(samples_ - first, block);
      input.dense = dense_.data() + first * spec_.num_dense;
      input.pooled = rows_.data() + first * stride_;
      const auto part = std::span(logits).subspan(first, input.samples);
      RECMILL_CHECK(model_->forward(0, input, {}, *state, {}, part).ok());
    }
    return logits;
  }

  Outcome plain() const {
    Outcome out;
    std::vector<double> by_parameters(parameters_.size());
    for (int64_t i = 0; i < samples_; ++i) {
      std::vector<std::vector<double>> x(1);
      x[0].assign(dense_.begin() + i * spec_.num_dense, dense_.begin() + (i + 1) * spec_.num_dense);
      x[0].insert(x[0].end(), rows_.begin() + i * stride_, rows_.begin() + (i + 1) * stride_);
      for (size_t l = 0; l < options_.top.size(); ++l) x.push_back(forward(l, x[l]));
      out.logits.push_back(static_cast<float>(x.back()[0]));
      std::vector<double> g{logit_gradient_[static_cast<size_t>(i)]};
      for (size_t l = options_.top.size(); l-- > 0;) {
        g = backward(l, x[l], x[l + 1], g, by_parameters);
      }
      for (int64_t k = spec_.num_dense; k < static_cast<int64_t>(g.size()); ++k) {
        out.by_rows.push_back(static_cast<float>(g[static_cast<size_t>(k)]));
      }
    }
    out.by_parameters.assign(by_parameters.begin(), by_parameters.end());
    return out;
  }

 private:
  double operand(double value) const {
    return options_.precision == LayerPrecision::bfloat16
               ? to_float(to_bfloat16(static_cast<float>(value)))
               : value;
  }
  bool last(size_t l) const { return l + 1 == options_.top.size(); }

  std::vector<double> forward(size_t l, const std::vector<double>& x) const {
    const ParameterSpec& weight = model_->parameters()[2 * l];
    const ParameterSpec& bias = model_->parameters()[2 * l + 1];
    std::vector<double> y;
    for (int64_t o = 0; o < options_.top[l]; ++o) {
      double sum = parameters_[bias.offset + o];
      for (size_t k = 0; k < x.size(); ++k) {
        const double w = parameters_[weight.offset + o * weight.shape[1] + int64_t(k)];
        sum += operand(w) * operand(x[k]);
      }
      y.push_back(last(l) ? sum : std::max(sum, 0.0));
    }
    return y;
  }

  std::vector<double> backward(size_t l, const std::vector<double>& x, const std::vector<double>& y,
                               const std::vector<double>& dy, std::vector<double>& to) const {
    const ParameterSpec& weight = model_->parameters()[2 * l];
    const ParameterSpec& bias = model_->parameters()[2 * l + 1];
    std::vector<double> dx(x.size());
    for (size_t o = 0; o < y.size(); ++o) {
      if (!last(l) && !(y[o] > 0)) continue;
      to[bias.offset + o] += dy[o];
      for (size_t k = 0; k < x.size(); ++k) {
        const size_t at = weight.offset + o * weight.shape[1] + k;
        to[at] += operand(dy[o]) * operand(x[k]);
        dx[k] += operand(dy[o]) * operand(parameters_[at]);
      }
    }
    return dx;
  }

  const ModelOptions options_;
  const ModelSpec spec_;
  const int64_t samples_;
  std::unique_ptr<Model> model_;
  int64_t stride_ = 0;
  std::vector<float> parameters_, dense_, rows_, logit_gradient_;
};

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  RECMILL_CHECK(a.size() == b.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    norm += double{b[i]} * b[i];
  }
  return norm == 0 ? difference : std::sqrt(difference / norm);
}

class MlpPrecision : public testing::TestWithParam<LayerPrecision> {};
INSTANTIATE_TEST_SUITE_P(Precisions, MlpPrecision,
                         testing::Values(LayerPrecision::float32, LayerPrecision::bfloat16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(MlpPrecision, equals_the_plain_model_in_float64_at_any_number_of_threads) {
  if (GetParam() == LayerPrecision::bfloat16 && !kernels::dense_layer::multiplies_bfloat16())
    GTEST_SKIP() << "this machine multiplies no bfloat16";
  // In bfloat16 a sum may fall on the other side of a rounding or of a ReLU.
  const double limit = GetParam() == LayerPrecision::float32 ? 2e-6 : 1e-2;
  const struct {
    ModelSpec spec;
    std::vector<int64_t> top;
  } shapes[] = {{spec_of({4, 128, 8, 3}, 5), {33, 8, 1}}, {spec_of({16, 40, 7}, 0), {1}}};
  for (const auto& [spec, top] : shapes) {
    const ModelOptions options{.kind = ModelKind::mlp, .top = top, .precision = GetParam()};
    for (const int64_t samples : {0, 1, 127, 128, 129, 300}) {
      Trial trial(options, spec, samples);
      ASSERT_NE(trial.model(), nullptr);
      const Outcome ours = trial.run(1), plain = trial.plain();
      EXPECT_LT(distance(ours.logits, plain.logits), limit) << samples << ", seed " << kSeed;
      EXPECT_LT(distance(ours.by_rows, plain.by_rows), limit) << samples << ", seed " << kSeed;
      EXPECT_LT(distance(ours.by_parameters, plain.by_parameters), limit)
          << samples << ", seed " << kSeed;
      EXPECT_EQ(trial.run(3), ours);
    }
  }
}

TEST(Mlp, scores_a_sample_the_same_in_any_block_in_float32) {
  const ModelSpec spec = spec_of({4, 1024, 8, 1500}, 5);
  Trial trial({.kind = ModelKind::mlp, .top = {33, 8, 1}}, spec, 200);
  ASSERT_TRUE(trial.model()->scores_in_any_block());
  kernels::on_every_instruction_set([&] {
    const std::vector<float> alone = trial.logits(1);
    for (const int64_t block : {2, 15, 16, 17, 33, 100, 128}) EXPECT_EQ(trial.logits(block), alone);
  });
}

TEST(Mlp, has_the_parameters_and_the_layout_of_its_rows_side_by_side) {
  const Trial trial({.kind = ModelKind::mlp, .top = {20, 1}}, spec_of({4, 128, 3}, 5), 0);
  EXPECT_EQ(trial.model()->embedding_layout().stride, 135);
  EXPECT_EQ(trial.model()->embedding_layout().offset, (std::vector<int64_t>{0, 4, 132}));
  const auto& parameters = trial.model()->parameters();
  ASSERT_EQ(parameters.size(), 4u);
  EXPECT_EQ(parameters[0].name, "top.0.weight");
  EXPECT_EQ(parameters[0].shape, (std::vector<int64_t>{20, 140}));
  EXPECT_EQ(parameters[3].name, "top.2.bias");
  EXPECT_EQ(trial.model()->parameter_count(), 20 * 140 + 20 + 20 + 1);
}

}  // namespace
}  // namespace recmill::model
