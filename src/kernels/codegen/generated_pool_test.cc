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
    Pool pool(2);
    FusedPool fused(kernels_, tile);
    fused.use(std::move(code));
    TaskMap map;
    fused.map(tasks, pool.threads(), map);
    fused.run(tasks, map, pool);
    for (size_t f = 0; f < cases_.size(); ++f) {
      ASSERT_EQ(std::memcmp(found[f].data(), expected[f].data(), found[f].size()), 0)
          << cases_[f].schedule << " dim " << cases_[f].dim << " " << name_of(cases_[f].precision)
          << " " << name_of(cases_[f].pooling) << " weighted " << cases_[f].weighted << " samples "
          << shape.samples << " longest " << shape.longest << " seed " << seed;
    }
  }

 private:
  std::vector<Case> cases_;
  std::vector<PoolKernel> kernels_;
  std::vector<Buffer> tables_;
  std::vector<RowStorage> rows_;
};

class Generated : public testing::Test {
 protected:
  std::shared_ptr<const GeneratedPool> make(const Features& features,
                                            const PoolSourceOptions& options) {
    LibraryCache cache({folder_.path(), {RECMILL_COMPILER, 2, 600.0}, "this"}, posix_files());
    const auto made = GeneratedPool::make(features.generated(), options, cache);
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

TEST_F(Generated, what_is_called_by_pointer_has_its_scratch) {
  constexpr int64_t kBytes = 1000;
  PoolTemplate of;
  of.name = "with_scratch";
  of.scratch_bytes = [](const FeatureShape&, ParameterValues) { return kBytes; };
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
