// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding_pool/embedding_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "kernels/row_values.h"
#include "kernels/testing/instruction_sets.h"
#include "kernels/testing/random_bags.h"

namespace recmill::kernels {
namespace {

constexpr int64_t kRows = 97;
constexpr int64_t kDims[] = {1, 2, 3, 4, 8, 15, 16, 17, 31, 32, 48, 64, 100, 128, 256, 1024};

/// A table's bytes, exactly as many as rows need, so that a read past them is seen by a sanitizer.
struct TestRows {
  std::vector<std::byte> bytes;
  RowStorage rows;

  TestRows(int64_t dim, RowPrecision precision, int64_t gap) {
    rows.count = kRows;
    rows.dim = dim;
    rows.precision = precision;
    rows.stride = dim * bytes_of(precision) + gap;
    bytes.resize(kRows * rows.stride - gap);
    rows.data = bytes.data();
    const auto values = random_floats(kRows * dim, 11);
    for (int64_t slot = 0; slot < kRows; ++slot) {
      for (int64_t e = 0; e < dim; ++e) set_weight(rows, slot, e, values[slot * dim + e]);
    }
  }
};

/// Pools with `task`'s output exchanged: once by the reference, once by the kernel.
void expect_equal_to_reference(PoolTask task, ThreadPool& pool) {
  const int64_t outputs = task.pooling == Pooling::none ? task.bags.lookups() : task.bags.samples;
  task.stride = task.rows.dim + 3;
  const float untouched = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> expected(outputs * task.stride + 1, untouched);
  std::vector<float> found = expected;
  task.out = expected.data();
  embedding_pool_reference(task);
  task.out = found.data();
  embedding_pool({&task, 1}, pool);
  ASSERT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0);
}

TEST(EmbeddingPool, equals_the_reference_at_every_dimension_pooling_and_precision) {
  ThreadPool pool(2);
  on_every_instruction_set([&] {
    for (int64_t dim : kDims) {
      for (auto precision :
           {RowPrecision::float32, RowPrecision::bfloat16, RowPrecision::float16}) {
        const TestRows table(dim, precision, 8);
        for (auto pooling : {Pooling::sum, Pooling::mean, Pooling::none}) {
          for (bool weighted : {false, true}) {
            for (int64_t longest : {-1, 3}) {
              SCOPED_TRACE(testing::Message()
                           << "dim " << dim << " precision " << name_of(precision) << " pooling "
                           << name_of(pooling) << " weighted " << weighted);
              const auto bags = random_bags({37, longest, kRows, weighted, 2}, dim);
              expect_equal_to_reference({bags.view(37), table.rows, pooling}, pool);
            }
          }
        }
      }
    }
  });
}

TEST(EmbeddingPool, folds_long_bags_in_runs) {
  ThreadPool pool(1);
  on_every_instruction_set([&] {
    for (int64_t dim : {1, 16, 17, 64, 100}) {
      const TestRows table(dim, RowPrecision::float32, 0);
      for (int64_t length : {0, 1, 63, 64, 65, 127, 128, 129, 1000}) {
        auto bags = random_bags({length, -1, kRows, dim % 2 == 0, 3}, length);
        bags.offsets = {0, length, length};
        bags.one_each = false;
        for (auto pooling : {Pooling::sum, Pooling::mean})
          expect_equal_to_reference({bags.view(2), table.rows, pooling}, pool);
      }
    }
  });
}

TEST(EmbeddingPool, an_empty_bag_gives_plus_zero_and_a_minus_zero_row_too) {
  std::vector<float> weights(16, -0.0f), out(32, 7.0f);
  const std::vector<int64_t> offsets{0, 0, 1}, rows{0};
  ThreadPool pool(1);
  on_every_instruction_set([&] {
    PoolTask task{{offsets.data(), rows.data(), nullptr, 2, false},
                  RowStorage::of(weights.data(), 1, 16),
                  Pooling::mean,
                  out.data(),
                  16};
    embedding_pool({&task, 1}, pool);
    for (float value : out) EXPECT_EQ(std::bit_cast<uint32_t>(value), 0u);
  });
}

TEST(EmbeddingPool, does_all_features_in_one_call_with_the_same_bits_at_any_number_of_threads) {
  const TestRows narrow(16, RowPrecision::float32, 0), wide(100, RowPrecision::bfloat16, 4);
  std::vector<SparseFeature> features;
  features.reserve(6);
  for (int f = 0; f < 6; ++f)
    features.push_back(random_bags({3000, f % 2 == 0 ? -1 : 5, kRows, false, 2}, f));
  std::vector<std::vector<float>> outputs;
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    std::vector<float> out(6 * 3000 * 100, -1.0f);
    std::vector<PoolTask> tasks;
    tasks.reserve(6);
    for (int f = 0; f < 6; ++f)
      tasks.push_back({features[f].view(3000), f % 3 == 0 ? wide.rows : narrow.rows, Pooling::sum,
                       out.data() + f * 100, 600});
    embedding_pool(tasks, pool);
    outputs.push_back(out);
  }
  EXPECT_EQ(outputs[0], outputs[1]);
  EXPECT_EQ(outputs[0], outputs[2]);
}

TEST(EmbeddingPool, zeroes_a_wide_stretch_of_empty_features_and_nothing_beside_it) {
  constexpr int64_t kFeatures = 17, kDim = 129, kSamples = 300, kGap = 3;
  constexpr int64_t kStride = kFeatures * kDim + kGap;
  const TestRows table(kDim, RowPrecision::float32, 0);
  const auto some = random_bags({kSamples, 3, kRows, false, 2}, 1);
  const auto none = random_bags({kSamples, 0, kRows, false, 2}, 2);
  for (int64_t full : {int64_t{0}, int64_t{1}, kFeatures - 1, kFeatures}) {
    std::vector<float> expected(kSamples * kStride + 1, -1.0f), found = expected;
    for (auto* out : {&expected, &found}) {
      std::vector<PoolTask> tasks;
      for (int64_t f = 0; f < kFeatures; ++f)
        tasks.push_back({(f == full ? some : none).view(kSamples), table.rows, Pooling::sum,
                         out->data() + 1 + f * kDim, kStride});
      ThreadPool pool(2);
      if (out == &found) {
        embedding_pool(tasks, pool);
      } else {
        for (const auto& task : tasks) embedding_pool_reference(task);
      }
    }
    EXPECT_EQ(found, expected) << full;
  }
}

TEST(EmbeddingPool, sums_its_features_into_interleaved_outputs_like_the_reference) {
  const TestRows table(16, RowPrecision::float32, 0);
  const auto first = random_bags({2000, 4, kRows, false, 2}, 1);
  const auto second = random_bags({2000, -1, kRows, false, 2}, 2);
  std::vector<float> expected(2000 * 32), found(2000 * 32);
  for (auto* out : {&expected, &found}) {
    const PoolTask tasks[] = {{first.view(2000), table.rows, Pooling::sum, out->data(), 32},
                              {second.view(2000), table.rows, Pooling::sum, out->data() + 16, 32}};
    ThreadPool pool(2);
    if (out == &found) {
      embedding_pool(tasks, pool);
    } else {
      for (const auto& task : tasks) embedding_pool_reference(task);
    }
  }
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace recmill::kernels
