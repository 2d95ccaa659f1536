// SPDX-License-Identifier: Apache-2.0
// Loss and dense optimizers on a GPU: what the CPU computes.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "base/random.h"
#include "kernels/codegen/testing/test_code.h"
#include "step/gpu/gpu_step_kernels.h"
#include "step/gpu/gpu_step_source.h"
#include "step/gpu/testing/gpu_step_samples.h"
#include "step/loss.h"

namespace recmill::train {
namespace {

using kernels::codegen::GpuCode;
using kernels::codegen::GpuSource;
using recmill::testing::TestArrays;

const emulation::Turns kOrders[] = {
    {emulation::Order::forward}, {emulation::Order::reverse}, {emulation::Order::random, 5}};

std::vector<float> draw(int64_t count, uint64_t stream) {
  const Random random(7, Purpose::test, stream);
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(2 * random.uniform(i) - 1);
  return values;
}

const std::array<GpuStepEntry, 4>& entries_of(const std::string& name) {
  const std::map<std::string, const std::array<GpuStepEntry, 4>*> all{
      {"sgd", &gpu_step_sgd},
      {"momentum", &gpu_step_momentum},
      {"adagrad", &gpu_step_adagrad},
      {"adam", &gpu_step_adam}};
  return *all.at(name);
}

kernels::codegen::CompileForGpu compiled(const std::string& name) {
  return [name](std::span<const GpuSource> sources) -> Result<std::vector<GpuCode>> {
    std::vector<GpuCode> codes;
    for (size_t s = 0; s < sources.size(); ++s)
      codes.push_back(
          {kernels::codegen::test_code(sources[s], entries_of(name)[s]), nullptr, {}, 0});
    return codes;
  };
}

class GpuStepTest : public ::testing::TestWithParam<emulation::Turns> {
 protected:
  Gpu gpu_{recmill::testing::test_driver({.turns = GetParam()}), {}};
  GpuStream stream_ = *gpu_.open_stream();
  TestArrays arrays_{gpu_, stream_};
  ThreadPool pool_{1};
};
INSTANTIATE_TEST_SUITE_P(Orders, GpuStepTest, ::testing::ValuesIn(kOrders));

constexpr int64_t kParameters = 1500;

/// Trains by the CPU and by the GPU, with gradients of norm 20 or so; some are never trained.
void train_both(Gpu& gpu, GpuStream& stream, TestArrays& arrays, ThreadPool& pool,
                const GpuStepSample& sample, float tolerance) {
  const std::vector<ParameterRange> trained{{0, 700}, {712, 780}};
  DenseOptimizer cpu(sample.options, kParameters, trained),
      on_gpu(sample.options, kParameters, trained);
  auto kernels = GpuStepKernels::make(gpu, on_gpu, kParameters, compiled(sample.name));
  ASSERT_TRUE(kernels.ok()) << kernels.status().message();
  std::vector<float> expected = draw(kParameters, 1);
  float* const parameters = arrays.put(expected);
  ASSERT_TRUE(kernels->load_state(stream).ok());
  for (int64_t iteration = 0; iteration < 3; ++iteration) {
    const auto gradient = draw(kParameters, 100 + iteration);
    cpu.step(iteration, 0.5, gradient, expected, pool);
    ASSERT_TRUE(kernels->update(parameters, arrays.put(gradient), iteration, 0.5, stream).ok());
  }
  const auto found = arrays.get(parameters);
  ASSERT_TRUE(kernels->store_state(on_gpu, stream).ok());
  for (int64_t i = 0; i < kParameters; ++i) {
    ASSERT_NEAR(found[i], expected[i], tolerance) << sample.name << " parameter " << i;
    for (size_t s = 0; s < cpu.state().size(); ++s)
      ASSERT_NEAR(on_gpu.state()[s].values[i], cpu.state()[s].values[i], tolerance) << sample.name;
  }
}

TEST_P(GpuStepTest, UpdatesHaveTheBitsOfTheCpu) {
  for (const GpuStepSample& sample : gpu_step_samples())
    train_both(gpu_, stream_, arrays_, pool_, sample, 0.0f);
}

TEST_P(GpuStepTest, AtLearningRate0ParametersKeepTheirBits) {
  for (const GpuStepSample& sample : gpu_step_samples()) {
    const DenseOptimizer optimizer(sample.options, kParameters, {{0, kParameters}});
    auto kernels = *GpuStepKernels::make(gpu_, optimizer, kParameters, compiled(sample.name));
    std::vector<float> expected = draw(kParameters, 1);
    std::fill_n(expected.begin(), 100, -0.0f);
    float* const parameters = arrays_.put(expected);
    ASSERT_TRUE(kernels.load_state(stream_).ok());
    const auto gradient = draw(kParameters, 2);
    ASSERT_TRUE(kernels.update(parameters, arrays_.put(gradient), 0, 0.0, stream_).ok());
    const auto found = arrays_.get(parameters);
    for (int64_t i = 0; i < kParameters; ++i)
      ASSERT_TRUE(found[i] == expected[i] && std::signbit(found[i]) == std::signbit(expected[i]))
          << sample.name << " parameter " << i;
  }
}

TEST(GpuStep, NamesTheParameterThatBecameANaNWhereThatIsAskedFor) {
  const DenseOptimizer optimizer({}, kParameters, {{0, kParameters}});
  auto gradient = draw(kParameters, 2);
  gradient[1037] = std::nanf("");
  const auto said = [&](GpuOptions options) {
    Gpu gpu(recmill::testing::test_driver(), options);
    auto stream = *gpu.open_stream();
    TestArrays arrays(gpu, stream);
    auto kernels = *GpuStepKernels::make(gpu, optimizer, kParameters, compiled("sgd"));
    float* const parameters = arrays.put(draw(kParameters, 1));
    return kernels.update(parameters, arrays.put(gradient), 0, 0.5, stream).message();
  };
  EXPECT_EQ(said({}), "");
  const std::string error = said({.check_nan = true});
  EXPECT_EQ(error.find("kernel dense_update_"), 0u) << error;
  EXPECT_NE(error.find(": wrote a NaN as element 1037 of row 0 of the layers' parameters"),
            std::string::npos)
      << error;
}

TEST_P(GpuStepTest, GradientsAreClippedAsOnTheCpu) {
  for (GpuStepSample sample : gpu_step_samples()) {
    sample.options.clip_norm = 0.5;
    train_both(gpu_, stream_, arrays_, pool_, sample, 1e-6f);
    sample.options.clip_norm = 1e6;  // is longer than any
    train_both(gpu_, stream_, arrays_, pool_, sample, 0.0f);
  }
}

TEST_P(GpuStepTest, TheLossIsThatOfTheCpu) {
  const DenseOptimizer optimizer({}, 1, {});
  auto kernels = GpuStepKernels::make(gpu_, optimizer, 1, compiled("sgd"));
  ASSERT_TRUE(kernels.ok()) << kernels.status().message();
  for (const int64_t samples : {1, 255, 1000, 66000}) {
    std::vector<float> logits = draw(samples, 1), labels = draw(samples, 2);
    for (float& logit : logits) logit *= 30;
    for (float& label : labels) label = label < 0 ? 0.0f : 1.0f;
    const auto weights = samples == 255 ? draw(samples, 3) : std::vector<float>();
    std::vector<float> gradient(samples);
    const double loss = add_log_loss(0, logits, labels, weights, 2 * samples, gradient);
    float* const to_gradient = arrays_.put(std::vector<float>(samples));
    double* const sums = arrays_.put(std::vector<double>(GpuStepKernels::loss_blocks(samples)));
    const gpu::LogLossArguments of = {arrays_.put(logits),
                                      arrays_.put(labels),
                                      weights.empty() ? nullptr : arrays_.put(weights),
                                      samples,
                                      2 * samples,
                                      to_gradient,
                                      sums};
    ASSERT_TRUE(kernels->log_loss(of, stream_).ok());
    double found = 0;
    for (const double sum : arrays_.get(sums)) found += sum;
    EXPECT_NEAR(found, loss, 1e-12 * (1 + std::fabs(loss))) << samples;
    const auto found_gradient = arrays_.get(to_gradient);
    for (int64_t i = 0; i < samples; ++i)
      ASSERT_FLOAT_EQ(found_gradient[i], gradient[i]) << samples << " " << i;
  }
}

TEST_P(GpuStepTest, ValuesOfRanksAreAddedInTheirOrder) {
  const DenseOptimizer optimizer({}, 1, {});
  auto kernels = GpuStepKernels::make(gpu_, optimizer, 1, compiled("sgd"));
  ASSERT_TRUE(kernels.ok()) << kernels.status().message();
  constexpr int64_t kCount = 700, kStride = 704;
  for (const int ranks : {2, 3, 5}) {
    std::vector<float> all = draw(ranks * kStride, ranks);
    std::vector<float> sum(all.begin(), all.begin() + kCount);
    for (int rank = 1; rank < ranks; ++rank)
      for (int64_t i = 0; i < kCount; ++i) sum[i] += all[rank * kStride + i];
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<float> others = all;
      const auto begin = others.begin() + rank * kStride;
      float* const own = arrays_.put(std::vector<float>(begin, begin + kCount));
      std::fill_n(begin, kStride, std::nanf(""));
      const gpu::SumOfRanksArguments of{own, arrays_.put(others), kCount, kStride, rank, ranks};
      ASSERT_TRUE(kernels->sum_of_ranks(of, stream_).ok());
      EXPECT_EQ(arrays_.get(own), sum) << rank << " of " << ranks;
    }
  }
}

}  // namespace
}  // namespace recmill::train
