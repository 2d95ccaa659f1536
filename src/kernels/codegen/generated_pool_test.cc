// SPDX-License-Identifier: Apache-2.0
#include "kernels/codegen/generated_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/temporary_folder.h"
#include "device/buffer.h"
#include "kernels/row_values.h"
#include "kernels/testing/random_bags.h"

namespace recmill::kernels::codegen {
namespace {

constexpr int64_t kRows = 61, kMostSamples = 40;

struct Case {
  std::string schedule;
  int64_t dim = 8;
  RowPrecision precision = RowPrecision::float32;
  Pooling pooling = Pooling::sum;
  bool weighted = false;
  int64_t state_bytes = 0;  // of the optimizer, behind a row
};

/// Features, a case each, with tables, bags and outputs of their own.
class Features {
 public:
  explicit Features(std::vector<Case> cases) : cases_(std::move(cases)) {
    kernels_.resize(cases_.size());
    for (size_t f = 0; f < cases_.size(); ++f) {
      const Case& of = cases_[f];
      if (!of.schedule.empty()) kernels_[f] = *find_pool_kernel(*parse_schedule(of.schedule));
      const int64_t bytes = of.dim * bytes_of(of.precision) + of.state_bytes;
      tables_.push_back(*Buffer::allocate(kRows * bytes));
      RowStorage rows{tables_[f].data(), kRows, bytes, of.dim, 0, nullptr, of.precision};
      const auto values = random_floats(kRows * of.dim, f);
      for (int64_t i = 0; i < kRows * of.dim; ++i)
        set_weight(rows, i / of.dim, i % of.dim, values[i]);
      rows_.push_back(rows);
    }
  }

  std::vector<GeneratedFeature> generated() const {
    std::vector<GeneratedFeature> made;
    for (size_t f = 0; f < cases_.size(); ++f)
      made.push_back({rows_[f], cases_[f].pooling, cases_[f].weighted, &kernels_[f]});
    return made;
  }
  /// The feature by a template that has no schedule's name; it outlives the features.
  void set_template(size_t feature, const PoolTemplate& of) { kernels_[feature].of = &of; }

  /// The features in one call, by `code`; null: by the templates themselves.
  FusedPool fused(std::shared_ptr<const PoolCode> code, int64_t tile) const {
    FusedPool made(kernels_, tile);
    made.use(std::move(code));
    return made;
  }

  /// Outputs are beside each other, but for a gap of `gap` floats behind the middle feature, and
  /// features whose bit of `empty` is set have no lookup.
  void expect_equal_beside(std::shared_ptr<const PoolCode> code, uint64_t empty, int64_t gap,
                           int64_t tile) const {
    constexpr int64_t kSamples = 9;
    std::vector<SparseFeature> bags;
    std::vector<int64_t> columns;
    int64_t stride = 0;
    for (size_t f = 0; f < cases_.size(); ++f) {
      const int64_t longest = (empty >> f & 1) != 0 ? 0 : 4;
      bags.push_back(random_bags({kSamples, longest, kRows, cases_[f].weighted}, f));
      columns.push_back(stride);
      stride += cases_[f].dim + (f == cases_.size() / 2 ? gap : 0);
    }
    std::vector<float> expected(kSamples * stride + 1, std::numeric_limits<float>::quiet_NaN()),
        found = expected;
    std::vector<PoolTask> tasks;
    for (size_t f = 0; f < cases_.size(); ++f) {
      tasks.push_back({bags[f].view(kSamples), rows_[f], cases_[f].pooling,
                       expected.data() + columns[f], stride});
      embedding_pool_reference(tasks[f]);
      tasks[f].out = found.data() + columns[f];
    }
    run(fused(std::move(code), tile), tasks);
    ASSERT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0)
        << "empty " << empty << " gap " << gap << " tile " << tile;
  }

  /// Every feature of a batch by `code`, against the reference.
  void expect_equal(std::shared_ptr<const PoolCode> code, const BagShape& shape, int64_t tile,
                    uint64_t seed) const {
    std::vector<SparseFeature> bags;
    std::vector<PoolTask> tasks;
    std::vector<Buffer> expected, found;
    for (size_t f = 0; f < cases_.size(); ++f) {
      BagShape own = shape;
      own.rows = kRows;
      own.weighted = cases_[f].weighted;
      // A schedule for bags of one lookup meets others too: then it is not taken.
      if (cases_[f].schedule.starts_with("one_each") && (seed + f) % 4 != 0) own.longest = -1;
      bags.push_back(random_bags(own, seed + f));
    }
    for (size_t f = 0; f < cases_.size(); ++f) {
      const int64_t stride = (cases_[f].dim + 15) / 16 * 16 + (f % 3 == 0 ? 16 : 0);
      PoolTask task{bags[f].view(shape.samples), rows_[f], cases_[f].pooling, nullptr, stride};
      const int64_t outputs = std::max(shape.samples, task.bags.lookups());
      expected.push_back(*Buffer::allocate((outputs * stride + 1) * sizeof(float)));
      found.push_back(*Buffer::allocate((outputs * stride + 1) * sizeof(float)));
      for (Buffer* to : {&expected[f], &found[f]})
        std::ranges::fill(to->as<float>(), std::numeric_limits<float>::quiet_NaN());
      task.out = expected[f].as<float>().data();
      embedding_pool_reference(task);
      task.out = found[f].as<float>().data();
      tasks.push_back(task);
    }
    run(fused(std::move(code), tile), tasks);
    for (size_t f = 0; f < cases_.size(); ++f) {
      ASSERT_EQ(std::memcmp(found[f].data(), expected[f].data(), found[f].size()), 0)
          << cases_[f].schedule << " dim " << cases_[f].dim << " " << name_of(cases_[f].precision)
          << " " << name_of(cases_[f].pooling) << " weighted " << cases_[f].weighted << " samples "
          << shape.samples << " longest " << shape.longest << " seed " << seed;
    }
  }

 private:
  static void run(const FusedPool& fused, std::span<const PoolTask> tasks) {
    ThreadPool pool(2);
    TaskMap map;
    fused.map(tasks, pool.threads(), map);
    fused.run(tasks, map, pool);
  }

  std::vector<Case> cases_;
  std::vector<PoolKernel> kernels_;
  std::vector<Buffer> tables_;
  std::vector<RowStorage> rows_;
};

class Generated : public testing::Test {
 protected:
  std::shared_ptr<const GeneratedPool> make(const Features& features,
                                            const PoolSourceOptions& options) {
    return make(features.generated(), options);
  }
  std::shared_ptr<const GeneratedPool> make(std::span<const GeneratedFeature> features,
                                            const PoolSourceOptions& options) {
    LibraryCacheOptions here;
    here.folder = folder_.path();
    here.compiler.program = RECMILL_COMPILER;
    here.compiler.seconds = 600.0;
    LibraryCache cache(here, posix_files());
    const auto made = GeneratedPool::make(features, options, cache);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? *made : nullptr;
  }
  TemporaryFolder folder_;
};

/// Every template at every dimension; what else there is goes round.
std::vector<Case> all_cases() {
  const char* const schedules[] = {"bags fetch=8 held=8 store=0 stage=0 ids=0",
                                   "bags fetch=0 held=2 store=2 stage=1 ids=512",
                                   "bags fetch=16 held=8 store=1 stage=0 ids=0",
                                   "one_each fetch=8 store=2 stage=0 ids=0",
                                   "one_each fetch=0 store=1 stage=1 ids=512",
                                   "bags_interleaved ways=2 fetch=16 stage=0 ids=0",
                                   "bags_interleaved ways=4 fetch=0 stage=1 ids=512",
                                   "runs_interleaved ways=2 fetch=16 stage=0 ids=0",
                                   "runs_interleaved ways=4 fetch=0 stage=1 ids=512",
                                   "rows_copied fetch=16"};
  const RowPrecision precisions[] = {RowPrecision::float32, RowPrecision::bfloat16,
                                     RowPrecision::float16};
  std::vector<Case> cases = {{""}};  // the default schedule
  int d = 0;
  for (int64_t dim : {1, 3, 4, 5, 8, 12, 16, 31, 32, 64, 100, 128, 129, 1024}) {
    int s = 0;
    for (const std::string schedule : schedules) {
      Case of{schedule, dim, precisions[(d + s) % 3]};
      of.pooling = schedule.starts_with("rows_copied") ? Pooling::none
                   : (d / 3 + s) % 2 == 0              ? Pooling::sum
                                                       : Pooling::mean;
      of.weighted = d / 2 % 2 == 0;
      of.state_bytes = (d + s) % 5 == 0 ? 4 * dim : 0;
      cases.push_back(of);
      ++s;
    }
    ++d;
  }
  return cases;
}

TEST_F(Generated, equals_the_reference_at_every_dimension_precision_and_pooling) {
  const Features features(all_cases());
  for (const Dispatch dispatch : {Dispatch::branches, Dispatch::pointers}) {
    const int64_t lanes = dispatch == Dispatch::branches ? vector_lanes() : 4;
    const auto code = make(features, {"a test", dispatch, lanes, 75});
    ASSERT_NE(code, nullptr);
    EXPECT_EQ(code->kernels(), 2);
    for (int64_t samples : {int64_t{0}, int64_t{1}, kMostSamples}) {
      for (int64_t longest : {5, 0, 400}) {
        features.expect_equal(code, {samples, longest}, 7, 1);
        features.expect_equal(code, {samples, longest}, kWholeFeature, 2);
        if (HasFatalFailure()) return;
      }
    }
  }
}

/// What scratch_bytes() is told of bags.
constexpr BagStats kAnyBags{0.0, 0.0, 0.0, 0};

TEST_F(Generated, what_is_called_by_pointer_has_its_scratch) {
  constexpr int64_t kBytes = 1000;
  PoolTemplate of;
  of.name = "with_scratch";
  of.scratch_bytes = [](const FeatureShape& shape, ParameterValues) {
    return shape.bags == kAnyBags ? kBytes : 0;
  };
  of.body = [](const PoolPiece& piece, ParameterValues, std::byte* scratch) {
    RECMILL_CHECK(scratch != nullptr && reinterpret_cast<uintptr_t>(scratch) % 64 == 0);
    std::memset(scratch, 0xFF, kBytes);
    default_pool_body(piece);
  };
  Features features({{"bags fetch=8 held=8 store=0 stage=0 ids=0", 8}, {"", 8}, {"", 16}});
  features.set_template(1, of);
  features.set_template(2, of);
  features.expect_equal(make(features, {"a test"}), {kMostSamples, 9}, 7, 5);
}

TEST_F(Generated, what_is_called_by_pointer_has_the_scratch_of_the_table_that_it_meets) {
  int64_t most_rows = 0;
  PoolTemplate of;
  of.name = "by_rows";
  of.scratch_bytes = [&](const FeatureShape& shape, ParameterValues) {
    most_rows = std::max(most_rows, shape.rows);
    return shape.rows;
  };
  of.body = [](const PoolPiece& piece, ParameterValues, std::byte* scratch) {
    std::memset(scratch, 0xFF, piece.task->rows.count);
    default_pool_body(piece);
  };
  Features features({{"bags fetch=8 held=8 store=0 stage=0 ids=0", 8}, {"", 8}});
  features.set_template(1, of);
  auto smaller = features.generated();
  smaller[1].rows.count = 1;
  const auto code = make(smaller, {"a test"});
  EXPECT_EQ(most_rows, 1);
  features.expect_equal(code, {kMostSamples, 9}, 7, 5);
  EXPECT_EQ(most_rows, features.generated()[1].rows.count);
}

TEST_F(Generated, empty_features_beside_each_other_are_zeroed_and_nothing_else) {
  const std::string bags = "bags fetch=8 held=8 store=0 stage=0 ids=0";
  const Features features({{bags, 8}, {"", 3}, {bags, 16}, {bags, 1}, {"", 100}, {bags, 8}});
  const auto code = make(features, {"a test", Dispatch::branches, 4, 2});
  ASSERT_NE(code, nullptr);
  EXPECT_EQ(code->kernels(), 2);
  for (const auto& way : {code, decltype(code)()}) {
    for (uint64_t empty = 0; empty < 64; ++empty) {
      for (int64_t tile : {int64_t{4}, kWholeFeature}) {
        features.expect_equal_beside(way, empty, 0, tile);
        features.expect_equal_beside(way, empty, 5, tile);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(Generated, a_table_is_staged_for_the_lookups_of_all_pieces_beside_each_other) {
  std::vector<std::pair<int64_t, int64_t>> staging;  // features and first samples
  std::vector<PoolTask> tasks;
  PoolTemplate of;
  of.name = "of_a_test";
  of.body = [&](const PoolPiece& piece, ParameterValues, std::byte*) {
    if (piece.staging) staging.emplace_back(piece.task - tasks.data(), piece.first);
  };
  Features features({{"", 4}, {"bags fetch=8 held=8 store=0 stage=0 ids=0", 4}, {"", 4}});
  features.set_template(0, of);
  features.set_template(2, of);
  // Two lookups a sample, but for samples 9 to 11. 16 ask for the cache lines of 61 rows.
  std::vector<int64_t> offsets = {0};
  for (int64_t i = 0; i < 18; ++i) offsets.push_back(offsets.back() + (i / 3 == 3 ? 0 : 2));
  const std::vector<int64_t> lookups(offsets.back(), 7);
  std::vector<float> out(18 * 12);
  for (const GeneratedFeature& feature : features.generated())
    tasks.push_back({{offsets.data(), lookups.data(), nullptr, 18, false},
                     feature.rows,
                     Pooling::sum,
                     out.data() + tasks.size() * 4,
                     12});
  const TaskMap map{
      {{0, 0, 3}, {0, 3, 6}, {0, 6, 9}, {0, 9, 12}, {0, 12, 18}, {1, 0, 18}, {2, 0, 18}},
      {0, 2, 7}};
  const auto code = make(features, {"a test"});
  ASSERT_NE(code, nullptr);
  ThreadPool alone(1);
  for (const auto& way : {code, decltype(code)()}) {
    staging.clear();
    features.fused(way, kWholeFeature).run(tasks, map, alone);
    EXPECT_EQ(staging, (std::vector<std::pair<int64_t, int64_t>>{{0, 6}, {2, 0}}));
  }
}

TEST_F(Generated, one_bag_of_a_hundred_thousand_ids_is_right) {
  const Features features({{"bags fetch=64 held=8 store=0 stage=0 ids=512", 8}});
  features.expect_equal(make(features, {"a test"}), {2, 100000}, 1, 3);
}

TEST_F(Generated, tables_other_than_those_it_was_made_for_go_through_the_templates) {
  const std::string schedule = "bags fetch=8 held=8 store=0 stage=0 ids=0";
  const Features made_for({{schedule, 8}, {schedule, 8}, {schedule, 8}, {schedule, 8}});
  const auto code = make(made_for, {"a test"});
  const Features others({{schedule, 16},
                         {schedule, 8, RowPrecision::bfloat16},
                         {schedule, 8, RowPrecision::float32, Pooling::mean},
                         {schedule, 8, RowPrecision::float32, Pooling::sum, true, 8}});
  others.expect_equal(code, {kMostSamples, 9}, 7, 4);
}

}  // namespace
}  // namespace recmill::kernels::codegen
