// SPDX-License-Identifier: Apache-2.0
// What replaces LibTorch on the CPU, held to LibTorch: fully connected layers (which
// kernels/dense_layer may not compare itself with) and the optimizers of dense parameters.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/optim.h>

#include <cmath>
#include <functional>

#include "base/bfloat16.h"
#include "base/random.h"
#include "kernels/dense_layer/dense_layer.h"
#include "step/optimizer/dense_optimizer.h"
#include "table/table_update.h"

namespace recmill::train {
namespace {

using kernels::Precision;
using kernels::dense_layer::Activation;
using kernels::dense_layer::kBlock;
using kernels::dense_layer::Layer;
using kernels::dense_layer::Workspace;

constexpr uint64_t kSeed = 20232;

std::vector<float> normals(uint64_t stream, int64_t count, double scale = 1.0) {
  const Random random(kSeed, Purpose::test, stream);
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t e = 0; e < values.size(); ++e) values[e] = float(scale * random.normal(e));
  return values;
}

at::Tensor tensor_of(const std::vector<float>& values, at::IntArrayRef shape, at::ScalarType type) {
  return at::from_blob(const_cast<float*>(values.data()), shape, at::kFloat).to(type, false, true);
}

/// |ours - theirs| / |theirs|, Euclidean, in float64.
double distance(const at::Tensor& ours, const at::Tensor& theirs) {
  const at::Tensor a = ours.to(at::kDouble), b = theirs.detach().to(at::kDouble);
  const double norm = b.norm().item<double>();
  return (a - b).norm().item<double>() / std::max(norm, 1e-30);
}

struct LayerRun {
  at::Tensor y, dx, weight_gradient, bias_gradient;
};

struct LayerProblem {
  int64_t samples, inputs, outputs;
  Activation activation;
  std::vector<float> x, weight, bias, dy;
};

LayerProblem layer_problem(int64_t samples, int64_t inputs, int64_t outputs, Activation act) {
  return {samples,
          inputs,
          outputs,
          act,
          normals(1, samples * inputs),
          normals(2, outputs * inputs, 1 / std::sqrt(double(inputs))),
          normals(3, outputs),
          normals(4, samples * outputs)};
}

LayerRun our_layer(const LayerProblem& p, Precision precision) {
  auto layer = Layer::make({.inputs = p.inputs,
                            .outputs = p.outputs,
                            .activation = p.activation,
                            .precision = precision});
  EXPECT_TRUE(layer.ok()) << layer.status().message();
  for (int64_t t = 0; t < layer->pack_tasks(); ++t) layer->pack(t, p.weight.data(), p.bias.data());
  const auto type = precision == Precision::float32 ? at::kFloat : at::kBFloat16;
  // By feature in float32; the same back again.
  const auto turned = [&](const at::Tensor& t) {
    return precision == Precision::float32 ? t.t().contiguous() : t;
  };
  const at::Tensor x = turned(tensor_of(p.x, {p.samples, p.inputs}, type));
  const at::Tensor dy = turned(tensor_of(p.dy, {p.samples, p.outputs}, at::kFloat).clone());
  LayerRun run{turned(at::empty({p.samples, p.outputs})),
               turned(at::empty({p.samples, p.inputs}, type)), at::empty({p.outputs, p.inputs}),
               at::empty({p.outputs})};
  Workspace workspace;
  layer->forward(p.samples, x.const_data_ptr(), run.y.data_ptr(), workspace);
  layer->backward(p.samples,
                  {.x = x.const_data_ptr(),
                   .y = run.y.const_data_ptr(),
                   .dy = dy.data_ptr(),
                   .dx = run.dx.data_ptr(),
                   .weight_gradient = run.weight_gradient.mutable_data_ptr<float>(),
                   .bias_gradient = run.bias_gradient.mutable_data_ptr<float>()},
                  workspace);
  run.y = turned(run.y);
  run.dx = turned(run.dx);
  return run;
}

LayerRun torch_layer(const LayerProblem& p, at::ScalarType type) {
  const at::Tensor x = tensor_of(p.x, {p.samples, p.inputs}, type).set_requires_grad(true);
  const at::Tensor weight =
      tensor_of(p.weight, {p.outputs, p.inputs}, type).set_requires_grad(true);
  const at::Tensor bias = tensor_of(p.bias, {p.outputs}, type).set_requires_grad(true);
  at::Tensor y = at::linear(x, weight, bias);
  if (p.activation == Activation::relu) y = y.relu();
  const auto gradients = torch::autograd::grad({y}, {x, weight, bias},
                                               {tensor_of(p.dy, {p.samples, p.outputs}, type)});
  return {y, gradients[0], gradients[1], gradients[2]};
}

void expect_layer_near(const LayerRun& ours, const LayerRun& theirs, double tolerance) {
  EXPECT_LE(distance(ours.y, theirs.y), tolerance);
  EXPECT_LE(distance(ours.dx, theirs.dx), tolerance);
  EXPECT_LE(distance(ours.weight_gradient, theirs.weight_gradient), tolerance);
  EXPECT_LE(distance(ours.bias_gradient, theirs.bias_gradient), tolerance);
}

/// Layers of the Kaggle DLRM, and odd sizes.
void for_each_layer(const std::function<void(const LayerProblem&)>& body) {
  at::set_num_threads(1);  // OpenMP's, which oneDNN asks too
  const std::vector<std::pair<int64_t, int64_t>> sizes{{13, 512},  {512, 256}, {64, 16},
                                                       {367, 512}, {256, 1},   {5, 3}};
  for (const auto& [inputs, outputs] : sizes) {
    for (int64_t samples : {int64_t{1}, int64_t{31}, kBlock}) {
      for (Activation activation : {Activation::none, Activation::relu}) {
        SCOPED_TRACE(testing::Message()
                     << inputs << " to " << outputs << ", " << samples << " samples");
        body(layer_problem(samples, inputs, outputs, activation));
      }
    }
  }
}

TEST(DenseLayer, equals_libtorch_in_float32_to_one_in_a_million) {
  for_each_layer([](const LayerProblem& p) {
    const LayerRun ours = our_layer(p, Precision::float32);
    expect_layer_near(ours, torch_layer(p, at::kDouble), 1e-6);
    expect_layer_near(ours, torch_layer(p, at::kFloat), 1e-6);
  });
}

/// Each product of rounded operands is exact in float32; a rounded operand is off by 2^-9 at most,
/// and what enters backward is rounded again.
TEST(DenseLayer, equals_libtorch_in_bfloat16_to_the_rounding_of_operands) {
  if (!kernels::dense_layer::multiplies_bfloat16())
    GTEST_SKIP() << "this machine multiplies no bfloat16";
  for_each_layer([](const LayerProblem& p) {
    if (p.activation == Activation::relu) return;  // a sign may differ near zero: see DLRM's test
    const LayerRun ours = our_layer(p, Precision::bfloat16);
    expect_layer_near(ours, torch_layer(p, at::kDouble), 0.01);
    expect_layer_near(ours, torch_layer(p, at::kBFloat16), 0.01);
  });
}

constexpr int64_t kParameters = 5000;
constexpr int kSteps = 20;

std::vector<float> our_steps(const DenseOptimizerOptions& options) {
  std::vector<float> parameters = normals(5, kParameters);
  DenseOptimizer optimizer(options, kParameters, {{0, kParameters}});
  ThreadPool pool(2);
  for (int i = 0; i < kSteps; ++i) {
    optimizer.step(i, 1.0, normals(100 + i, kParameters), parameters, pool);
  }
  return parameters;
}

template <typename Optimizer, typename Options>
at::Tensor torch_steps(const Options& options, at::ScalarType type, double clip_norm) {
  at::Tensor parameters = tensor_of(normals(5, kParameters), {kParameters}, type);
  parameters.set_requires_grad(true);
  Optimizer optimizer(std::vector<at::Tensor>{parameters}, options);
  for (int i = 0; i < kSteps; ++i) {
    at::Tensor gradient = tensor_of(normals(100 + i, kParameters), {kParameters}, type);
    const double norm = gradient.norm().item<double>();
    if (clip_norm > 0 && norm > clip_norm) gradient = gradient * (clip_norm / norm);
    parameters.mutable_grad() = gradient;
    optimizer.step();
  }
  return parameters.detach();
}

template <typename Optimizer, typename Options>
void expect_same_steps(const DenseOptimizerOptions& ours, const Options& theirs) {
  const std::vector<float> values = our_steps(ours);
  const at::Tensor end = tensor_of(values, {kParameters}, at::kFloat);
  for (at::ScalarType type : {at::kDouble, at::kFloat}) {
    const at::Tensor expected = torch_steps<Optimizer>(theirs, type, ours.clip_norm);
    EXPECT_LE(distance(end, expected), 2e-6);
    EXPECT_GT(distance(tensor_of(normals(5, kParameters), {kParameters}, at::kFloat), expected),
              1e-3);
  }
}

TEST(DenseOptimizer, takes_the_steps_of_torch_optim) {
  using enum DenseOptimizerKind;
  namespace optim = torch::optim;
  DenseOptimizerOptions ours{.kind = sgd, .learning_rate = 0.05};
  expect_same_steps<optim::SGD>(ours, optim::SGDOptions(0.05));
  ours.clip_norm = 20.0;  // |g| is near 70
  expect_same_steps<optim::SGD>(ours, optim::SGDOptions(0.05));
  ours.clip_norm = 0.0;
  ours.weight_decay = 0.1;
  expect_same_steps<optim::SGD>(ours, optim::SGDOptions(0.05).weight_decay(0.1));
  ours.momentum = 0.9;
  expect_same_steps<optim::SGD>(ours, optim::SGDOptions(0.05).weight_decay(0.1).momentum(0.9));
  ours = {.kind = adagrad,
          .learning_rate = 0.05,
          .epsilon = 1e-6,
          .initial_accumulator = 0.1,
          .weight_decay = 0.01};
  expect_same_steps<optim::Adagrad>(
      ours,
      optim::AdagradOptions(0.05).eps(1e-6).initial_accumulator_value(0.1).weight_decay(0.01));
  ours = {.kind = adam,
          .learning_rate = 0.01,
          .epsilon = 1e-8,
          .beta1 = 0.8,
          .beta2 = 0.99,
          .weight_decay = 0.01};
  expect_same_steps<optim::Adam>(
      ours, optim::AdamOptions(0.01).eps(1e-8).betas({0.8, 0.99}).weight_decay(0.01));
}

constexpr int64_t kRows = 100;

/// kSteps updates of a table whose rows are all looked up, by the gradients of our_steps().
std::vector<float> our_row_steps(const RowOptimizerOptions& options) {
  TableSpec spec{.name = "t", .rows = kRows, .dim = kParameters / kRows, .optimizer = options};
  ThreadPool pool(1);
  auto table = *table::EmbeddingTable::create(spec, 1, table::RowShare(kRows, 0, 1), pool);
  std::vector<float> weights = normals(5, kParameters);
  table.write(0, kRows, weights, {});
  DistinctRows distinct;
  distinct.begins = {0};
  for (int64_t row = 0; row < kRows; ++row) {
    distinct.rows.push_back(row);
    distinct.sources.push_back({static_cast<uint32_t>(row), 0, 0});
    distinct.begins.push_back(row + 1);
  }
  for (int i = 0; i < kSteps; ++i) {
    const auto gradient = normals(100 + i, kParameters);
    const kernels::GradientRows rows{gradient.data(), spec.dim};
    const table::TableUpdate update{&table, &distinct, {&rows, 1}, 1};
    table::update_tables({&update, 1}, {i, 1.0}, pool);
  }
  table.read(0, kRows, weights, {});
  return weights;
}

template <typename Optimizer, typename Options>
void expect_same_row_steps(const RowOptimizerOptions& ours, const Options& theirs) {
  const std::vector<float> values = our_row_steps(ours);
  const at::Tensor end = tensor_of(values, {kParameters}, at::kFloat);
  for (at::ScalarType type : {at::kDouble, at::kFloat})
    EXPECT_LE(distance(end, torch_steps<Optimizer>(theirs, type, 0.0)), 2e-6);
}

TEST(RowOptimizer, takes_the_steps_of_torch_optim_with_l2_as_its_weight_decay) {
  using enum OptimizerKind;
  namespace optim = torch::optim;
  RowOptimizerOptions ours{.kind = sgd, .learning_rate = 0.05, .l2 = 0.1};
  expect_same_row_steps<optim::SGD>(ours, optim::SGDOptions(0.05).weight_decay(0.1));
  ours = {.kind = adagrad,
          .learning_rate = 0.05,
          .epsilon = 1e-6,
          .initial_accumulator = 0.1,
          .l2 = 0.1};
  expect_same_row_steps<optim::Adagrad>(
      ours, optim::AdagradOptions(0.05).eps(1e-6).initial_accumulator_value(0.1).weight_decay(0.1));
  for (const BiasCorrection correction : {BiasCorrection::global, BiasCorrection::row}) {
    ours = {.kind = adam,
            .learning_rate = 0.01,
            .epsilon = 1e-8,
            .beta1 = 0.8,
            .beta2 = 0.99,
            .l2 = 0.1,
            .correction = correction};
    expect_same_row_steps<optim::Adam>(
        ours, optim::AdamOptions(0.01).eps(1e-8).betas({0.8, 0.99}).weight_decay(0.1));
  }
}

TEST(RowOptimizer, row_wise_adagrad_takes_the_mean_of_squares_of_gradients_with_l2) {
  const RowOptimizerOptions ours{.kind = OptimizerKind::rowwise_adagrad,
                                 .learning_rate = 0.05,
                                 .epsilon = 1e-6,
                                 .initial_accumulator = 0.1,
                                 .l2 = 0.1};
  const std::vector<int64_t> shape{kRows, kParameters / kRows};
  at::Tensor weights = tensor_of(normals(5, kParameters), shape, at::kDouble);
  at::Tensor sums = at::full({kRows, 1}, 0.1, at::kDouble);
  for (int i = 0; i < kSteps; ++i) {
    const at::Tensor gradient =
        tensor_of(normals(100 + i, kParameters), shape, at::kDouble) + 0.1 * weights;
    sums = sums + (gradient * gradient).mean(1, /*keepdim=*/true);
    weights = weights - 0.05 * gradient / (sums.sqrt() + 1e-6);
  }
  const std::vector<float> values = our_row_steps(ours);
  EXPECT_LE(distance(tensor_of(values, {kParameters}, at::kFloat), weights.flatten()), 2e-6);
}

}  // namespace
}  // namespace recmill::train
