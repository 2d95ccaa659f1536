// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "device/buffer.h"
#include "kernels/embedding_pool/fused_pool.h"
#include "kernels/row_values.h"
#include "kernels/testing/instruction_sets.h"
#include "kernels/testing/random_bags.h"

namespace recmill::kernels {
namespace {

constexpr int64_t kRows = 61;
const DeviceSpec kDevice{.name = "cpu0", .l2_bytes = 1 << 20, .shared_cache_bytes = 32 << 20};

FeatureShape shape_of(int64_t dim, const BagShape& bags) {
  FeatureShape shape;
  shape.rows = kRows;
  shape.dim = dim;
  shape.weighted = bags.weighted;
  shape.bags.longest = std::max<int64_t>(bags.longest, 1);
  shape.bags.empty_share = bags.longest < 0 ? 0.0 : 0.2;
  return shape;
}

/// Features of one shape whose outputs are beside each other on whole cache lines, so that they
/// can be streamed; what nobody may write is NaN.
class Features {
 public:
  Features(const FeatureShape& shape, const BagShape& bags, int64_t samples) : shape_(shape) {
    table_.resize(shape.rows * shape.dim * bytes_of(shape.precision));
    RowStorage rows;
    rows.data = table_.data();
    rows.count = shape.rows;
    rows.dim = shape.dim;
    rows.precision = shape.precision;
    rows.stride = shape.dim * bytes_of(shape.precision);
    const auto values = random_floats(shape.rows * shape.dim, 5);
    for (int64_t i = 0; i < shape.rows * shape.dim; ++i)
      set_weight(rows, i / shape.dim, i % shape.dim, values[i]);
    const int count = shape.pooling == Pooling::none ? 1 : 3;  // lookups of bags differ in number
    const int64_t stride = (shape.dim * count + 15) / 16 * 16;
    int64_t outputs = samples;
    for (int f = 0; f < count; ++f) bags_.push_back(random_bags(bags, f));
    for (int f = 0; f < count; ++f) {
      tasks_.push_back({bags_[f].view(samples), rows, shape.pooling, nullptr, stride});
      outputs = std::max(outputs, tasks_.back().bags.lookups());
    }
    expected_ = *Buffer::allocate((outputs * stride + 1) * sizeof(float));
    found_ = *Buffer::allocate((outputs * stride + 1) * sizeof(float));
    point_to(expected_);
    for (const PoolTask& task : tasks_) embedding_pool_reference(task);
  }

  void expect_equal(const Schedule& schedule, int64_t tile, ThreadPool& pool,
                    const PoolMapping& mapping = {}) {
    const auto kernel = find_pool_kernel(schedule);
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    const FusedPool fused(std::vector<PoolKernel>(tasks_.size(), *kernel), tile, mapping);
    point_to(found_);
    TaskMap map;
    fused.map(tasks_, pool.threads(), map);
    fused.run(tasks_, map, pool);
    const bool same = kernel->of->order == Order::contract
                          ? std::memcmp(found_.data(), expected_.data(), expected_.size()) == 0
                          : near(found_.as<float>(), expected_.as<float>(), shape_.bags.longest);
    ASSERT_TRUE(same) << schedule.name() << " dim " << shape_.dim << " "
                      << name_of(shape_.precision) << " " << name_of(shape_.pooling) << " weighted "
                      << shape_.weighted << " longest " << shape_.bags.longest << " tile " << tile;
  }

 private:
  /// Where sums are reordered they may differ by rounding; what nobody may write stays NaN.
  static bool near(std::span<const float> found, std::span<const float> expected, int64_t bag) {
    float largest = 1.0f;
    for (float value : expected) largest = std::max(largest, std::fabs(value));  // passes NaN by
    // Each addition rounds, equal values one way: the bound of a plain sum.
    const float most = 1e-7f * static_cast<float>(bag + 10) * largest;
    for (size_t i = 0; i < found.size(); ++i) {
      if (std::isnan(expected[i]) != std::isnan(found[i])) return false;
      if (std::fabs(found[i] - expected[i]) > most) return false;
    }
    return true;
  }
  void point_to(Buffer& to) {
    std::ranges::fill(to.as<float>(), std::numeric_limits<float>::quiet_NaN());
    for (size_t f = 0; f < tasks_.size(); ++f)
      tasks_[f].out = to.as<float>().data() + static_cast<int64_t>(f) * tasks_[f].rows.dim;
  }

  FeatureShape shape_;
  std::vector<std::byte> table_;
  std::vector<SparseFeature> bags_;
  std::vector<PoolTask> tasks_;
  Buffer expected_, found_;
};

/// Every schedule of every template that is valid for the shape.
void expect_all_equal(const FeatureShape& shape, const BagShape& bags, int64_t tile,
                      ThreadPool& pool) {
  Features features(shape, bags, bags.samples);
  for (const PoolTemplate& candidate : pool_templates()) {
    for (const Schedule& schedule : candidates(candidate, shape, kDevice)) {
      features.expect_equal(schedule, tile, pool);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(PoolTemplates, equal_the_reference_at_every_dimension_precision_and_pooling) {
  ThreadPool pool(2);
  on_every_instruction_set([&] {
    for (int64_t dim : {1, 3, 4, 5, 8, 12, 16, 17, 31, 32, 64, 100, 128, 129, 1024}) {
      for (auto precision :
           {RowPrecision::float32, RowPrecision::bfloat16, RowPrecision::float16}) {
        for (auto pooling : {Pooling::sum, Pooling::mean, Pooling::none}) {
          for (int64_t longest : {-1, 5}) {
            const BagShape bags{23, longest, kRows, dim % 2 == 0, 3};
            FeatureShape shape = shape_of(dim, bags);
            shape.precision = precision;
            shape.pooling = pooling;
            expect_all_equal(shape, bags, 7, pool);
          }
        }
      }
    }
  });
}

TEST(PoolTemplates, fold_long_bags_in_the_one_order) {
  ThreadPool pool(2);
  on_every_instruction_set([&] {
    for (int64_t dim : {4, 8, 16, 32, 48}) {
      for (int64_t longest : {63, 64, 65, 200, 700}) {
        for (bool weighted : {false, true}) {
          const BagShape bags{19, longest, kRows, weighted, 3};
          FeatureShape shape = shape_of(dim, bags);
          expect_all_equal(shape, bags, 5, pool);
          shape.pooling = Pooling::mean;
          expect_all_equal(shape, bags, int64_t{1} << 40, pool);
        }
      }
    }
  });
}

TEST(PoolTemplates, are_right_for_batches_that_they_were_not_tuned_for) {
  ThreadPool pool(2);
  const BagShape tuned{64, -1, kRows, false, 3};
  const FeatureShape shape = shape_of(16, tuned);
  for (int64_t samples : {0, 1, 640}) {
    for (int64_t longest : {int64_t{-1}, int64_t{0}, int64_t{300}}) {
      const BagShape batch{samples, longest, kRows, false, 3};
      expect_all_equal(shape, batch, 16, pool);
    }
  }
}

int64_t value_of(const Schedule& schedule, const std::string& name) {
  for (const ParameterValue& parameter : schedule.parameters) {
    if (parameter.name == name) return parameter.value;
  }
  return 0;
}

TEST(PoolTemplates, stage_into_the_shared_cache_what_fits_no_nearer_one) {
  ThreadPool pool(2);
  const int64_t row_bytes = 16 * 4;
  for (const auto& [bytes, valid] : {std::pair<int64_t, bool>{768 << 10, false},
                                     {(768 << 10) + row_bytes, true},
                                     {4 << 20, true},
                                     {(4 << 20) + row_bytes, false}}) {
    // As many lookups as cache lines, and half as many.
    const int64_t rows = bytes / row_bytes;
    for (int64_t samples : {rows, rows / 2}) {
      const BagShape bags{samples, -1, rows, false, 3};
      FeatureShape shape = shape_of(16, bags);
      shape.rows = rows;
      Features features(shape, bags, samples);
      int staged = 0;
      for (const PoolTemplate& candidate : pool_templates()) {
        for (const Schedule& schedule : candidates(candidate, shape, kDevice)) {
          if (value_of(schedule, "stage") != 2) continue;
          ++staged;
          features.expect_equal(schedule, kWholeFeature, pool);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
      EXPECT_EQ(staged > 0, valid) << bytes;
    }
  }
}

TEST(PoolTemplates, one_bag_of_a_hundred_thousand_ids_is_right) {
  ThreadPool pool(2);
  BagShape bags{2, 100000, kRows, false, 0};
  expect_all_equal(shape_of(8, bags), bags, 1, pool);
}

TEST(FusedPool, gives_the_same_bits_by_every_mapping) {
  ThreadPool pool(2);
  const BagShape bags{50, 9, kRows, false, 3};
  Features features(shape_of(16, bags), bags, bags.samples);
  const auto schedule = *parse_schedule("bags fetch=16 held=8 store=0 stage=1 ids=512");
  using Kind = PoolMapping::Kind;
  features.expect_equal(schedule, 7, pool, {Kind::fixed, fixed_cuts(std::vector{1., 2., 3.}, 2)});
  features.expect_equal(schedule, 7, pool, {Kind::fixed, fixed_cuts(std::vector{9., 0., 0.}, 5)});
  features.expect_equal(schedule, 7, pool, {Kind::sample_blocks, {}, 3});
}

TEST(FusedPool, stages_a_table_for_as_many_lookups_as_it_has_cache_lines) {
  const std::vector<float> table(64 * 32);
  const std::vector<int64_t> lookups(200);
  const auto suits = [&](const char* schedule, int64_t dim, int64_t count) {
    const std::vector<int64_t> offsets{0, count};
    const PoolTask task{{offsets.data(), lookups.data(), nullptr, 1, false},
                        RowStorage::of(table.data(), 64, dim)};
    return find_pool_kernel(*parse_schedule(schedule))->suits(task);
  };
  const char* const staged = "bags fetch=0 held=8 store=0 stage=1 ids=512";
  EXPECT_FALSE(suits(staged, 32, 63));  // rows of two lines
  EXPECT_TRUE(suits(staged, 32, 64));
  EXPECT_FALSE(suits(staged, 8, 31));  // two rows a line
  EXPECT_TRUE(suits(staged, 8, 32));
  EXPECT_TRUE(suits("bags fetch=8 held=8 store=0 stage=0 ids=512", 32, 0));
  EXPECT_FALSE(suits("one_each fetch=8 store=0 stage=0 ids=512", 32, 64));
}

TEST(FusedPool, knows_which_schedules_read_a_table_first) {
  EXPECT_TRUE(stages(*parse_schedule("bags fetch=0 held=8 store=0 stage=2 ids=0")));
  EXPECT_FALSE(stages(*parse_schedule("bags fetch=0 held=8 store=0 stage=0 ids=0")));
  EXPECT_FALSE(stages(*parse_schedule("rows_copied fetch=16")));
}

TEST(PoolTemplates, a_schedule_of_no_template_is_refused_by_name) {
  const auto kernel = find_pool_kernel(*parse_schedule("bagz fetch=1"));
  EXPECT_EQ(kernel.status().message(), "schedule 'bagz fetch=1': there is no template 'bagz'");
  EXPECT_FALSE(find_pool_kernel(*parse_schedule("bags fetch=1")).ok());
}

TEST(PoolTemplates, ten_thousand_features_without_a_lookup_take_few_tasks) {
  const std::vector<int64_t> offsets(129, 0);
  const std::vector<float> table(1024 * 8, 1.0f);
  std::vector<float> out(128 * 8, -1.0f);
  std::vector<PoolTask> tasks(10000, PoolTask{{offsets.data(), nullptr, nullptr, 128, false},
                                              RowStorage::of(table.data(), 1024, 8),
                                              Pooling::sum,
                                              out.data(),
                                              8});
  const FusedPool fused(std::vector<PoolKernel>(tasks.size()));
  TaskMap map;
  fused.map(tasks, 2, map);
  EXPECT_LE(map.tasks(), 33);
  EXPECT_EQ(map.pieces.size(), tasks.size());
  ThreadPool pool(1);  // all features share one output
  fused.run(tasks, map, pool);
  EXPECT_EQ(out, std::vector<float>(128 * 8, 0.0f));
}

}  // namespace
}  // namespace recmill::kernels
