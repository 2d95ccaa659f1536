// SPDX-License-Identifier: Apache-2.0
#include "model/dlrm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "base/bfloat16.h"
#include "base/random.h"
#include "kernels/dense_layer/dense_layer.h"
#include "kernels/testing/instruction_sets.h"
#include "schema/testing/tables_of_dims.h"

namespace recmill::model {
namespace {

constexpr uint64_t kSeed = 23;

ModelSpec spec_of(size_t features, int64_t dim, int64_t num_dense) {
  return tables_of_dims(std::vector(features, dim), 10, num_dense);
}

std::unique_ptr<Model> made(const ModelOptions& options, const ModelSpec& spec) {
  auto model = make_dlrm(options, spec);
  RECMILL_CHECK(model.ok(), model.status().message());
  return *std::move(model);
}

template <typename T>
std::vector<T> random_values(int64_t size, uint64_t stream) {
  const Random random(kSeed, Purpose::test, stream);
  std::vector<T> values(static_cast<size_t>(size));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 2 * random.uniform(i) - 1;
  return values;
}

// The model of dlrm.h with sums in float64, one sample at a time; in bfloat16 it rounds what enters
// each product.
class PlainDlrm {
 public:
  PlainDlrm(const ModelOptions& options, const ModelSpec& spec, const std::vector<float>& flat)
      : narrow_(options.precision == LayerPrecision::bfloat16),
        dim_(spec.dim_of(0)),
        features_(static_cast<int64_t>(spec.features.size())) {
    size_t at = 0;
    int64_t inputs = spec.num_dense;
    for (int64_t size : options.bottom)
      add_layer(bottom_, flat, at, std::exchange(inputs, size), size);
    const int64_t vectors = features_ + (bottom_.empty() ? 0 : 1);
    inputs = (bottom_.empty() ? 0 : dim_) + vectors * (vectors - 1) / 2;
    for (int64_t size : options.top) add_layer(top_, flat, at, std::exchange(inputs, size), size);
    top_.back().relu = false;
  }

  double logit(const float* dense, const float* rows) {
    std::vector<double> x;
    if (!bottom_.empty()) x.assign(dense, dense + bottom_[0].inputs);
    for (Layer& layer : bottom_) x = layer.forward(x);
    vectors_ = x;
    vectors_.insert(vectors_.end(), rows, rows + features_ * dim_);
    for (int64_t i = 0; i < count(); ++i) {
      for (int64_t j = 0; j < i; ++j) {
        double dot = 0;
        for (int64_t d = 0; d < dim_; ++d) dot += element(i, d) * element(j, d);
        x.push_back(dot);
      }
    }
    for (Layer& layer : top_) x = layer.forward(x);
    return x[0];
  }

  // After logit() of the same sample; adds to the parameters' gradient.
  std::vector<double> backward(double logit_gradient) {
    std::vector<double> g = {logit_gradient};
    for (size_t l = top_.size(); l-- > 0;) g = top_[l].backward(g);
    for (double& value : g) value = rounded(value, narrow_);
    std::vector<double> gradient(vectors_.size());
    size_t at = bottom_.empty() ? 0 : static_cast<size_t>(dim_);
    std::copy_n(g.begin(), at, gradient.begin());
    for (int64_t i = 0; i < count(); ++i) {
      for (int64_t j = 0; j < i; ++j, ++at) {
        for (int64_t d = 0; d < dim_; ++d) {
          gradient[index(i, d)] += g[at] * element(j, d);
          gradient[index(j, d)] += g[at] * element(i, d);
        }
      }
    }
    const size_t own = bottom_.empty() ? 0 : static_cast<size_t>(dim_);
    g.assign(gradient.begin(), gradient.begin() + static_cast<int64_t>(own));
    for (size_t l = bottom_.size(); l-- > 0;) g = bottom_[l].backward(g);
    gradient.erase(gradient.begin(), gradient.begin() + static_cast<int64_t>(own));
    return gradient;
  }

  std::vector<double> parameter_gradient() const {
    std::vector<double> all;
    for (const auto* tower : {&bottom_, &top_}) {
      for (const Layer& layer : *tower) {
        all.insert(all.end(), layer.dw.begin(), layer.dw.end());
        all.insert(all.end(), layer.db.begin(), layer.db.end());
      }
    }
    return all;
  }

 private:
  static double rounded(double value, bool narrow) {
    return narrow ? to_float(to_bfloat16(static_cast<float>(value))) : value;
  }

  struct Layer {
    int64_t inputs = 0, outputs = 0;
    bool relu = true, narrow = false;
    std::vector<double> w, b, dw, db, x, y;

    size_t cell(int64_t o, int64_t k) const { return static_cast<size_t>(o * inputs + k); }
    std::vector<double> forward(const std::vector<double>& input) {
      x = input;
      for (double& value : x) value = rounded(value, narrow);
      y = b;
      for (int64_t o = 0; o < outputs; ++o) {
        double& sum = y[static_cast<size_t>(o)];
        for (int64_t k = 0; k < inputs; ++k) sum += w[cell(o, k)] * x[static_cast<size_t>(k)];
        if (relu) sum = std::max(sum, 0.0);
      }
      return y;
    }
    std::vector<double> backward(const std::vector<double>& dy) {
      std::vector<double> dx(x.size());
      for (int64_t o = 0; o < outputs; ++o) {
        const auto at = static_cast<size_t>(o);
        const double g = relu && y[at] <= 0 ? 0 : rounded(dy[at], narrow);
        db[at] += g;
        for (int64_t k = 0; k < inputs; ++k) {
          dw[cell(o, k)] += g * x[static_cast<size_t>(k)];
          dx[static_cast<size_t>(k)] += g * w[cell(o, k)];
        }
      }
      return dx;
    }
  };

  void add_layer(std::vector<Layer>& tower, const std::vector<float>& flat, size_t& at,
                 int64_t inputs, int64_t outputs) {
    const auto take = [&](int64_t size) {
      const auto begin = flat.begin() + static_cast<int64_t>(at);
      at += static_cast<size_t>(size);
      return std::vector<double>(begin, begin + size);
    };
    Layer layer;
    layer.inputs = inputs;
    layer.outputs = outputs;
    layer.narrow = narrow_;
    layer.w = take(inputs * outputs);
    for (double& weight : layer.w) weight = rounded(weight, narrow_);
    layer.b = take(outputs);
    layer.dw.resize(layer.w.size());
    layer.db.resize(layer.b.size());
    tower.push_back(layer);
  }
  int64_t count() const { return static_cast<int64_t>(vectors_.size()) / dim_; }
  size_t index(int64_t v, int64_t d) const { return static_cast<size_t>(v * dim_ + d); }
  double element(int64_t v, int64_t d) const { return vectors_[index(v, d)]; }

  bool narrow_;
  int64_t dim_, features_;
  std::vector<Layer> bottom_, top_;
  std::vector<double> vectors_;  // of the last sample: bottom output, rows
};

// One slice of random samples, forward and backward.
struct Slice {
  int64_t samples, num_dense;
  std::vector<float> dense, rows, logit_gradient, logits, row_gradient, gradient;

  Slice(const Model& model, const ModelSpec& spec, int64_t n)
      : samples(n),
        num_dense(spec.num_dense),
        dense(random_values<float>(n * spec.num_dense, 1)),
        rows(random_values<float>(n * model.embedding_layout().stride, 2)),
        logit_gradient(random_values<float>(n, 3)),
        logits(static_cast<size_t>(n)),
        row_gradient(rows.size(), 7.0f),
        gradient(static_cast<size_t>(model.parameter_count()), 7.0f) {}

  SliceInput block(const Model& model, int64_t first) {
    SliceInput input;
    input.samples = std::min(samples - first, model.block_samples());
    input.training = true;
    input.dense = dense.data() + first * num_dense;
    input.pooled = rows.data() + first * model.embedding_layout().stride;
    return input;
  }

  /// In blocks of so many samples.
  void score(const Model& model, SliceState& state, int64_t step) {
    for (int64_t first = 0; first < samples; first += step) {
      SliceInput input = block(model, first);
      input.samples = std::min(samples - first, step);
      const auto part = std::span(logits).subspan(first, input.samples);
      RECMILL_CHECK(model.forward(0, input, {}, state, {}, part).ok());
    }
  }

  void run(const Model& model, SliceState& state) {
    for (int64_t first = 0; first == 0 || first < samples; first += model.block_samples()) {
      const SliceInput input = block(model, first);
      const auto part = [&](auto& whole) { return std::span(whole).subspan(first, input.samples); };
      RECMILL_CHECK(model.forward(0, input, {}, state, {}, part(logits)).ok());
      float* to = row_gradient.data() + first * model.embedding_layout().stride;
      RECMILL_CHECK(model
                        .backward(0, input, {}, part(logit_gradient), state, {},
                                  {to, {}, gradient.data(), first > 0})
                        .ok());
    }
  }
};

template <typename Expected>
double relative_error(const std::vector<float>& actual, const std::vector<Expected>& expected) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += double(expected[i]) * expected[i];
  }
  return norm == 0 ? difference : std::sqrt(difference / norm);
}

struct Variant {
  ModelOptions options;
  ModelSpec spec;
};

std::vector<Variant> variants(LayerPrecision precision) {
  return {{{.bottom = {40, 16}, .top = {33, 1}, .precision = precision}, spec_of(5, 16, 13)},
          {{.bottom = {7}, .top = {1}, .precision = precision}, spec_of(3, 7, 2)},
          {{.bottom = {}, .top = {20, 8, 1}, .precision = precision}, spec_of(6, 4, 0)}};
}

// Sums in float32; in bfloat16 one of them may fall on the other side of a rounding or of a ReLU.
double tolerance(LayerPrecision precision) {
  return precision == LayerPrecision::float32 ? 2e-6 : 5e-3;
}

class DlrmPrecision : public testing::TestWithParam<LayerPrecision> {
 protected:
  void SetUp() override {
    if (GetParam() == LayerPrecision::bfloat16 && !kernels::dense_layer::multiplies_bfloat16()) {
      GTEST_SKIP() << "this machine multiplies no bfloat16";
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Precisions, DlrmPrecision,
                         testing::Values(LayerPrecision::float32, LayerPrecision::bfloat16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(DlrmPrecision, equals_the_plain_model_in_float64) {
  ThreadPool pool(1);
  for (const auto& [options, spec] : variants(GetParam())) {
    const auto model = made(options, spec);
    std::vector<float> parameters(static_cast<size_t>(model->parameter_count()));
    model->initialize(kSeed, parameters);
    ASSERT_TRUE(model->load(parameters, pool).ok());
    const auto state = model->make_state();
    for (int64_t samples : {129, 1, 0, 300, 16}) {
      Slice slice(*model, spec, samples);
      slice.run(*model, *state);
      PlainDlrm plain(options, spec, parameters);
      std::vector<double> logits, rows;
      const int64_t stride = model->embedding_layout().stride;
      for (int64_t i = 0; i < samples; ++i) {
        logits.push_back(
            plain.logit(slice.dense.data() + i * spec.num_dense, slice.rows.data() + i * stride));
        const auto gradient = plain.backward(slice.logit_gradient[static_cast<size_t>(i)]);
        rows.insert(rows.end(), gradient.begin(), gradient.end());
      }
      const double limit = tolerance(GetParam());
      EXPECT_LT(relative_error(slice.logits, logits), limit) << samples << ", seed " << kSeed;
      EXPECT_LT(relative_error(slice.row_gradient, rows), limit) << samples << ", seed " << kSeed;
      EXPECT_LT(relative_error(slice.gradient, plain.parameter_gradient()), limit)
          << samples << ", seed " << kSeed;
    }
  }
}

TEST(Dlrm, scores_a_sample_the_same_in_any_block_in_float32) {
  ThreadPool pool(1);
  for (const auto& [options, spec] : variants(LayerPrecision::float32)) {
    const auto model = made(options, spec);
    ASSERT_TRUE(model->scores_in_any_block());
    std::vector<float> parameters(static_cast<size_t>(model->parameter_count()));
    model->initialize(kSeed, parameters);
    ASSERT_TRUE(model->load(parameters, pool).ok());
    const auto state = model->make_state();
    kernels::on_every_instruction_set([&] {
      Slice alone(*model, spec, 200), together = alone;
      alone.score(*model, *state, 1);
      for (const int64_t block : {2, 15, 16, 17, 33, 100, 128}) {
        together.score(*model, *state, block);
        EXPECT_EQ(together.logits, alone.logits) << block << ", seed " << kSeed;
      }
    });
  }
}

TEST_P(DlrmPrecision, gives_the_same_bits_with_any_pool_and_any_state) {
  const auto [options, spec] = variants(GetParam())[0];
  std::vector<std::vector<Slice>> outcomes;
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    const auto model = made(options, spec);
    std::vector<float> parameters(static_cast<size_t>(model->parameter_count()));
    model->initialize(kSeed, parameters);
    ASSERT_TRUE(model->load(parameters, pool).ok());
    std::vector<Slice> slices;
    for (int64_t samples : {200, 64, 129, 17}) slices.emplace_back(*model, spec, samples);
    std::vector<std::unique_ptr<SliceState>> states;
    for (size_t s = 0; s < slices.size(); ++s) states.push_back(model->make_state());
    for (int round = 0; round < 2; ++round) {
      pool.run(static_cast<int64_t>(slices.size()), [&](int64_t s) {
        const auto at = static_cast<size_t>(s);
        slices[at].run(*model, *states[(at + static_cast<size_t>(round)) % states.size()]);
      });
      outcomes.push_back(slices);
    }
  }
  for (const auto& outcome : outcomes) {
    for (size_t s = 0; s < outcome.size(); ++s) {
      EXPECT_EQ(outcome[s].logits, outcomes[0][s].logits);
      EXPECT_EQ(outcome[s].row_gradient, outcomes[0][s].row_gradient);
      EXPECT_EQ(outcome[s].gradient, outcomes[0][s].gradient);
    }
  }
}

TEST_P(DlrmPrecision, renews_each_parameter_once_and_before_it_is_packed) {
  const auto [options, spec] = variants(GetParam())[0];
  const auto renewed = made(options, spec), loaded = made(options, spec);
  std::vector<float> values(static_cast<size_t>(renewed->parameter_count()));
  renewed->initialize(kSeed, values);
  ThreadPool pool(3);
  ASSERT_TRUE(loaded->load(values, pool).ok());
  std::vector<float> parameters(values.size());
  std::vector<int> times(values.size());
  ASSERT_TRUE(renewed
                  ->load(parameters, pool,
                         [&](int64_t begin, int64_t end) {
                           std::copy(values.begin() + begin, values.begin() + end,
                                     parameters.begin() + begin);
                           for (int64_t p = begin; p < end; ++p) ++times[static_cast<size_t>(p)];
                         })
                  .ok());
  EXPECT_EQ(times, std::vector<int>(values.size(), 1));
  Slice actual(*renewed, spec, 70), expected(*loaded, spec, 70);
  actual.run(*renewed, *renewed->make_state());
  expected.run(*loaded, *loaded->make_state());
  EXPECT_EQ(actual.logits, expected.logits);
  EXPECT_EQ(actual.row_gradient, expected.row_gradient);
}

// The slope of sum(logit_gradient * logit) along each of some parameters and rows, by differences.
TEST(Dlrm, gradients_are_the_slopes_of_the_logits) {
  ThreadPool pool(1);
  const auto [options, spec] = variants(LayerPrecision::float32)[0];
  const auto model = made(options, spec);
  std::vector<float> parameters(static_cast<size_t>(model->parameter_count()));
  model->initialize(kSeed, parameters);
  const auto state = model->make_state();
  Slice slice(*model, spec, 20);
  const auto value = [&] {
    const SliceInput input = slice.block(*model, 0);
    RECMILL_CHECK(model->load(parameters, pool).ok());
    RECMILL_CHECK(model->forward(0, input, {}, *state, {}, slice.logits).ok());
    double sum = 0;
    for (size_t i = 0; i < slice.logits.size(); ++i)
      sum += double{slice.logits[i]} * slice.logit_gradient[i];
    return sum;
  };
  ASSERT_TRUE(model->load(parameters, pool).ok());
  slice.run(*model, *state);
  const auto expect_slopes = [&](std::vector<float>& point, const std::vector<float>& gradient) {
    for (size_t e = 0; e < point.size(); e += 37) {
      const float before = point[e];
      constexpr float kStep = 1.0f / 256;
      point[e] = before + kStep;
      const double up = value();
      point[e] = before - kStep;
      const double down = value();
      point[e] = before;
      // A kink of ReLU inside the step, and float32 sums, allow a few percent.
      EXPECT_NEAR((up - down) / (2 * kStep), gradient[e], 0.02 + 0.03 * std::abs(gradient[e]))
          << "element " << e << ", seed " << kSeed;
    }
  };
  expect_slopes(parameters, slice.gradient);
  expect_slopes(slice.rows, slice.row_gradient);
}

TEST(Dlrm, has_the_parameters_of_bagpipe_table_2_by_their_pytorch_names) {
  const auto model = made({.bottom = {512, 256, 64, 48}, .top = {1024, 1024, 1024, 256, 128, 1}},
                          spec_of(26, 48, 13));
  EXPECT_EQ(model->parameter_count(), 2962289);
  const auto& p = model->parameters();
  ASSERT_EQ(p.size(), 20u);
  EXPECT_EQ(p[0].name, "bottom.0.weight");
  EXPECT_EQ(p[0].shape, (std::vector<int64_t>{512, 13}));
  EXPECT_EQ(p[3].name, "bottom.2.bias");
  EXPECT_EQ(p[8].name, "top.0.weight");
  EXPECT_EQ(p[8].shape, (std::vector<int64_t>{1024, 399}));
  EXPECT_EQ(p[19].name, "top.10.bias");
  EXPECT_EQ(p[19].offset, 2962288);
}

TEST(Dlrm, refuses_nothing_that_check_options_accepts_and_lays_rows_side_by_side) {
  for (const auto& [options, spec] : variants(LayerPrecision::float32)) {
    ASSERT_TRUE(check_options(options, spec).ok());
    const auto layout = made(options, spec)->embedding_layout();
    EXPECT_EQ(layout.stride, static_cast<int64_t>(spec.features.size()) * spec.dim_of(0));
    for (size_t f = 0; f < layout.offset.size(); ++f) {
      EXPECT_EQ(layout.offset[f], static_cast<int64_t>(f) * spec.dim_of(0));
    }
  }
}

}  // namespace
}  // namespace recmill::model
