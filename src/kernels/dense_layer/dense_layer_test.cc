// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense_layer/dense_layer.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include "base/bfloat16.h"
#include "base/random.h"
#include "kernels/dense_layer/panels.h"
#include "kernels/dense_layer/reference.h"

namespace recmill::kernels::dense_layer {
namespace {

constexpr uint64_t kSeed = 31;

// Elements of either precision, uniform in [-1, 1).
struct Elements {
  Precision precision;
  std::vector<float> wide;
  std::vector<BFloat16> narrow;

  Elements(Precision p, int64_t size, uint64_t stream) : precision(p) {
    const Random random(kSeed, Purpose::test, stream);
    for (int64_t i = 0; i < size; ++i) {
      const float value = 2 * random.uniform(static_cast<uint64_t>(i)) - 1;
      p == Precision::float32 ? wide.push_back(value) : narrow.push_back(to_bfloat16(value));
    }
  }
  void* data() {
    return precision == Precision::float32 ? static_cast<void*>(wide.data()) : narrow.data();
  }
  float at(int64_t i) const {
    return precision == Precision::float32 ? wide[static_cast<size_t>(i)]
                                           : to_float(narrow[static_cast<size_t>(i)]);
  }
  int64_t size() const { return static_cast<int64_t>(std::max(wide.size(), narrow.size())); }
};

// Sums of n products of numbers below 1: n float32 roundings of sums below n, and a unit in the
// last place of the result where it is stored as bfloat16.
float tolerance(int64_t terms, Precision result, float value) {
  const float sum =
      1e-7f * static_cast<float>(terms) * std::sqrt(static_cast<float>(terms)) + 1e-6f;
  return sum + (result == Precision::bfloat16 ? std::abs(value) / 128 : 0);
}

void expect_near(const Elements& actual, const Elements& expected, int64_t terms,
                 const char* what) {
  for (int64_t i = 0; i < expected.size(); ++i) {
    const float want = expected.at(i);
    ASSERT_NEAR(actual.at(i), want, tolerance(terms, expected.precision, want))
        << what << "[" << i << "], seed " << kSeed;
  }
}

// Everything that one layer reads and writes over any number of samples.
struct Case {
  LayerSpec spec;
  int64_t samples;
  Elements x, y, dy, dx, weight, bias, dw, db;

  Case(const LayerSpec& s, int64_t n)
      : spec(s),
        samples(n),
        x(s.precision, n * s.inputs, 1),
        y(s.output_precision, n * s.outputs, 2),
        dy(s.output_precision, n * s.outputs, 3),
        dx(s.precision, n * s.inputs, 4),
        weight(Precision::float32, s.outputs * s.inputs, 5),
        bias(Precision::float32, s.outputs, 6),
        dw(Precision::float32, s.outputs * s.inputs, 7),
        db(Precision::float32, s.outputs, 8) {}

  // Everything by sample, as the reference wants it.
  BackwardArguments arguments(int64_t first) {
    const int64_t in = first * spec.inputs * bytes_of(spec.precision);
    const int64_t out = first * spec.outputs * bytes_of(spec.output_precision);
    return {static_cast<char*>(x.data()) + in,
            static_cast<char*>(y.data()) + out,
            static_cast<char*>(dy.data()) + out,
            static_cast<char*>(dx.data()) + in,
            dw.wide.data(),
            db.wide.data(),
            first > 0};
  }

  // The layer's layout of a block is that of its precision.
  void turn(bool to_feature, int64_t first, int64_t count) {
    if (spec.precision == Precision::bfloat16) return;
    for (auto [matrix, width] : {std::pair{&x, spec.inputs}, std::pair{&dx, spec.inputs},
                                 std::pair{&y, spec.outputs}, std::pair{&dy, spec.outputs}}) {
      float* block = matrix->wide.data() + first * width;
      const std::vector<float> before(block, block + count * width);
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t k = 0; k < width; ++k) {
          const int64_t by_sample = i * width + k, by_feature = k * count + i;
          block[to_feature ? by_feature : by_sample] =
              before[static_cast<size_t>(to_feature ? by_sample : by_feature)];
        }
      }
    }
  }

  // body(samples, arguments) for each block.
  template <typename Body>
  void for_blocks(const Body& body) {
    for (int64_t first = 0; first == 0 || first < samples; first += kBlock) {
      const int64_t count = std::min(kBlock, samples - first);
      turn(true, first, count);
      body(count, arguments(first));
      turn(false, first, count);
    }
  }

  void run(const Layer& layer) {
    Workspace workspace;
    for_blocks([&](int64_t count, const BackwardArguments& a) {
      layer.forward(count, a.x, const_cast<void*>(a.y), workspace);
      layer.backward(count, a, workspace);
    });
  }

  void run_reference() {
    reference::forward(spec, samples, x.data(), weight.wide.data(), bias.wide.data(), y.data());
    reference::backward(spec, samples, weight.wide.data(), arguments(0));
  }
};

Layer layer_of(Case& c) {
  auto layer = Layer::make(c.spec);
  RECMILL_CHECK(layer.ok(), layer.status().message());
  for (int64_t task = 0; task < layer->pack_tasks(); ++task) {
    layer->pack(task, c.weight.wide.data(), c.bias.wide.data());
  }
  return *std::move(layer);
}

bool has(Precision precision) {
  return precision == Precision::float32 || multiplies_bfloat16();
}

std::vector<LayerSpec> specs(Precision precision) {
  const auto relu = Activation::relu;
  std::vector<LayerSpec> all;
  for (auto [in, out] : {std::pair{1, 1},
                         {5, 1},
                         {300, 1},
                         {1, 2},
                         {13, 70},
                         {16, 64},
                         {64, 16},
                         {17, 129},
                         {129, 17},
                         {367, 65},
                         {31, 1025}}) {
    all.push_back({in, out, relu, precision, precision, true});
  }
  all.push_back({33, 48, relu, precision, Precision::float32, true});
  all.push_back({367, 32, Activation::none, precision, precision, true});
  all.push_back({13, 32, relu, precision, precision, false});
  all.push_back({65, 1, Activation::none, precision, Precision::float32, true});
  return all;
}

// In float32 the bias's gradient has the bits of the fold that dense_layer.h names. (The products
// have theirs in products_test.)
void expect_folded_bias(const Case& c, const Elements& db) {
  for (int64_t o = 0; o < c.spec.outputs; ++o) {
    float sum = 0;
    for (int64_t i = 0; i < c.samples; ++i) {
      const int64_t at = i * c.spec.outputs + o;
      const bool passes = c.spec.activation == Activation::none || c.y.at(at) > 0;
      sum += passes ? c.dy.at(at) : 0;
    }
    ASSERT_EQ(db.at(o), sum) << "db[" << o << "], seed " << kSeed;
  }
}

void check_against_reference(const LayerSpec& spec, int64_t samples) {
  SCOPED_TRACE(testing::Message() << spec.inputs << " -> " << spec.outputs << ", " << samples
                                  << " samples, " << bytes_of(spec.precision) << " bytes");
  Case actual(spec, samples), expected(spec, samples);
  actual.run(layer_of(actual));
  expected.run_reference();
  expect_near(actual.y, expected.y, spec.inputs, "y");
  // A sum near zero may fall on either side of the activation: the backward pass is judged from
  // equal outputs.
  actual.y = expected.y;
  actual.dy = expected.dy;
  Workspace workspace;
  const Layer layer = layer_of(actual);
  actual.for_blocks(
      [&](int64_t count, const BackwardArguments& a) { layer.backward(count, a, workspace); });
  expect_near(actual.dx, expected.dx, spec.outputs, "dx");
  expect_near(actual.dw, expected.dw, samples, "dW");
  expect_near(actual.db, expected.db, samples, "db");
  if (spec.precision == Precision::float32) expect_folded_bias(expected, actual.db);
}

class DenseLayer : public testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    if (!has(GetParam())) GTEST_SKIP() << "this machine multiplies no bfloat16";
  }
};

INSTANTIATE_TEST_SUITE_P(Precisions, DenseLayer,
                         testing::Values(Precision::float32, Precision::bfloat16),
                         [](const auto& info) {
                           return info.param == Precision::float32 ? "float32" : "bfloat16";
                         });

TEST_P(DenseLayer, equals_the_reference_at_the_edges_of_its_blocks_on_every_target) {
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    for (const LayerSpec& spec : specs(GetParam())) {
      for (int64_t samples : {0, 1, 15, 16, 17, 127, 128, 129, 300}) {
        if (!HasFatalFailure()) check_against_reference(spec, samples);
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST_P(DenseLayer, equals_the_reference_where_rows_of_weights_share_cache_sets) {
  check_against_reference({1024, 512, Activation::relu, GetParam(), GetParam(), true}, 17);
}

TEST_P(DenseLayer, gives_the_same_bits_on_any_thread_and_again) {
  for (const LayerSpec& spec : specs(GetParam())) {
    Case first(spec, 129);
    const Layer layer = layer_of(first);
    first.run(layer);
    std::vector<Case> others(3, Case(spec, 129));
    std::vector<std::thread> threads;
    threads.reserve(others.size());
    for (Case& other : others) threads.emplace_back([&] { other.run(layer); });
    for (auto& thread : threads) thread.join();
    Case again(spec, 129);
    use_one_thread();
    again.run(layer_of(again));
    others.push_back(again);
    for (const Case& other : others) {
      const auto same = [](const Elements& a, const Elements& b) {
        const auto bytes = [](const auto& values) { return std::as_bytes(std::span(values)); };
        return std::ranges::equal(bytes(a.wide), bytes(b.wide)) &&
               std::ranges::equal(bytes(a.narrow), bytes(b.narrow));
      };
      EXPECT_TRUE(same(first.y, other.y) && same(first.dx, other.dx) && same(first.dw, other.dw) &&
                  same(first.db, other.db))
          << spec.inputs << " -> " << spec.outputs;
    }
  }
}

TEST_P(DenseLayer, takes_new_weights_into_use) {
  Case c({40, 70, Activation::none, GetParam(), GetParam(), true}, 20);
  Layer layer = layer_of(c);
  for (float& w : c.weight.wide) w = -0.5f * w;
  for (int64_t task = 0; task < layer.pack_tasks(); ++task) {
    layer.pack(task, c.weight.wide.data(), c.bias.wide.data());
  }
  Case expected = c;
  c.run(layer);
  expected.run_reference();
  expect_near(c.y, expected.y, 40, "y");
  expect_near(c.dx, expected.dx, 70, "dx");
}

// Every instruction set that this build and machine have gives the packed weights that the formula
// of panels.h gives.
TEST(Panels, hold_each_weight_where_the_layout_says_on_every_target) {
  for (int64_t bit : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(bit);
    for (auto [outputs, inputs] : {std::pair{1, 1}, {70, 13}, {64, 64}, {5, 129}, {129, 37}}) {
      for (Precision precision : {Precision::float32, Precision::bfloat16}) {
        for (bool transposed : {true, false}) {
          if (!transposed && precision == Precision::float32) continue;  // nobody asks for it
          const int64_t pair = precision == Precision::float32 ? 1 : 2;
          const int64_t depth = transposed ? inputs : outputs;
          const int64_t columns = transposed ? outputs : inputs;
          const PanelLayout layout{32, pair, 32 * (depth + depth % 2)};
          Elements weight(Precision::float32, outputs * inputs, 1);
          Elements packed(precision, (columns + 31) / 32 * layout.panel_stride, 2);
          Elements expected = packed;
          for (int64_t begin = 0; begin < outputs; begin += 48) {
            const MatrixRows rows{weight.wide.data(), outputs, inputs, begin,
                                  std::min<int64_t>(outputs, begin + 48)};
            transposed ? pack_transposed(rows, layout, precision, packed.data())
                       : pack_straight(rows, layout, packed.data());
          }
          for (int64_t k = 0; k < depth; ++k) {
            for (int64_t n = 0; n < columns; ++n) {
              const float w = weight.at(transposed ? n * inputs + k : k * inputs + n);
              const auto at = static_cast<size_t>(n / 32 * layout.panel_stride +
                                                  (k / pair * 32 + n % 32) * pair + k % pair);
              if (precision == Precision::float32) expected.wide[at] = w;
              if (precision == Precision::bfloat16) expected.narrow[at] = to_bfloat16(w);
            }
          }
          for (int64_t i = 0; i < packed.size(); ++i) {
            ASSERT_EQ(packed.at(i), expected.at(i))
                << hwy::TargetName(bit) << " " << outputs << " x " << inputs << " element " << i;
          }
        }
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace
}  // namespace recmill::kernels::dense_layer
