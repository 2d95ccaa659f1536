// SPDX-License-Identifier: Apache-2.0
// The formulas of the row optimizers compiled for a GPU: the bits that they have on the CPU.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <bit>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "schema/table_spec.h"
#include "table/optimizers/row_formulas.h"

namespace recmill::table {
namespace {

constexpr int kElements = 1 << 16, kMostState = 3, kSteps = 7;

struct Elements {
  float* weights;          // [kElements]
  float* states;           // [kElements][kMostState]
  const float* gradients;  // [kSteps][kElements]
};

// Element `i` as a row of its own, through all steps.
template <class Formula>
RECMILL_HOST_DEVICE void train(const Formula& formula, const Elements& elements, int i) {
  for (int step = 0; step < kSteps; ++step) {
    const float gradient = elements.gradients[step * kElements + i];
    float* state = elements.states + i * kMostState;
    float factors[Formula::kFactors + 1] = {};
    if constexpr (Formula::kRowState)
      formula.row(state[Formula::kElementColumns], gradient * gradient, factors);
    formula.element(elements.weights[i], state, gradient, factors);
  }
}

template <class Formula>
__global__ void train_all(Formula formula, Elements elements) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < kElements) train(formula, elements, i);
}

// Normal numbers, small ones down to where squares are denormal, and zeros.
std::vector<float> numbers(uint64_t stream, int count) {
  const Random random(11, Purpose::test, stream);
  std::vector<float> values(static_cast<size_t>(count));
  for (uint64_t i = 0; i < values.size(); ++i) {
    const float size = i % 5 == 0 ? 1e-21f : i % 97 == 0 ? 0.0f : 1.0f;
    values[i] = size * static_cast<float>(random.normal(i));
  }
  return values;
}

class OnDevice {
 public:
  explicit OnDevice(const std::vector<float>& values) : bytes_(values.size() * sizeof(float)) {
    RECMILL_CHECK(cudaMalloc(&data_, bytes_) == cudaSuccess);
    RECMILL_CHECK(cudaMemcpy(data_, values.data(), bytes_, cudaMemcpyHostToDevice) == cudaSuccess);
  }
  ~OnDevice() { cudaFree(data_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  float* data() const { return data_; }
  std::vector<float> values() const {
    std::vector<float> values(bytes_ / sizeof(float));
    RECMILL_CHECK(cudaMemcpy(values.data(), data_, bytes_, cudaMemcpyDeviceToHost) == cudaSuccess);
    return values;
  }

 private:
  float* data_ = nullptr;
  const size_t bytes_;
};

void expect_equal_bits(const std::vector<float>& cpu, const std::vector<float>& gpu) {
  for (size_t i = 0; i < cpu.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(cpu[i]), std::bit_cast<uint32_t>(gpu[i]))
        << i << ": " << cpu[i] << " and " << gpu[i];
  }
}

TEST(RowFormulas, have_the_bits_of_the_cpu_on_a_gpu) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
  constexpr std::pair kByRow{OptimizerKind::adam, std::string_view{"adam, corrected by row"}};
  const auto& names = EnumNames<OptimizerKind>::names;
  std::vector<std::pair<OptimizerKind, std::string_view>> kinds(names.begin(), names.end());
  kinds.push_back(kByRow);
  for (const auto& [kind, name] : kinds) {
    SCOPED_TRACE(name);
    RowOptimizerOptions options;
    options.kind = kind;
    if (name == kByRow.second) options.correction = BiasCorrection::row;
    options.l1 = 0.01;
    options.l2 = 0.1;
    std::vector<float> weights = numbers(1, kElements), gradients = numbers(2, kSteps * kElements);
    std::vector<float> states(kElements * kMostState, 0.0f);
    const OnDevice gpu_weights(weights), gpu_states(states), gpu_gradients(gradients);
    with_formula(options, {.iteration = 4, .learning_rate_scale = 0.5}, [&](const auto& formula) {
      constexpr int kThreads = 256;
      train_all<<<kElements / kThreads, kThreads>>>(
          formula, Elements{gpu_weights.data(), gpu_states.data(), gpu_gradients.data()});
      for (int i = 0; i < kElements; ++i) {
        train(formula, Elements{weights.data(), states.data(), gradients.data()}, i);
      }
    });
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    expect_equal_bits(weights, gpu_weights.values());
    expect_equal_bits(states, gpu_states.values());
  }
}

}  // namespace
}  // namespace recmill::table
