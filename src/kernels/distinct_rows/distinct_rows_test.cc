// SPDX-License-Identifier: Apache-2.0
#include "kernels/distinct_rows/distinct_rows.h"

#include <gtest/gtest.h>

#include "kernels/testing/random_bags.h"

namespace recmill::kernels {
namespace {

struct Case {
  int64_t table_rows;
  int64_t samples;
  int64_t longest;  // -1: one each
  int features;
  int slices;
  bool weighted = false;
  Pooling pooling = Pooling::sum;
};

void expect_equal_to_reference(std::span<const Case> cases, int threads) {
  std::vector<std::vector<SparseFeature>> sparse(cases.size());
  std::vector<std::vector<FeatureBags>> bags(cases.size());
  std::vector<TableLookups> tables;
  for (size_t c = 0; c < cases.size(); ++c) {
    const Case& at = cases[c];
    for (int f = 0; f < at.features; ++f) {
      // Only every other feature is weighted or a mean, so that both meet in one table.
      sparse[c].push_back(random_bags({at.samples, at.longest, at.table_rows,
                                       at.weighted && f % 2 == 0, static_cast<int64_t>(f % 3)},
                                      1000 * c + f));
    }
    for (int f = 0; f < at.features; ++f)
      bags[c].push_back({sparse[c][f].view(at.samples), f % 2 == 0 ? at.pooling : Pooling::sum});
    tables.push_back({at.table_rows, bags[c]});
  }
  const auto begins = slice_begins(cases[0].samples, cases[0].slices);
  const LocalSlices slices{3, begins};
  ThreadPool pool(threads);
  DistinctRowsFinder finder;
  std::vector<DistinctRows> found(cases.size());
  for (int round = 0; round < 2; ++round) finder.find(tables, slices, found, pool);
  for (size_t c = 0; c < cases.size(); ++c) {
    DistinctRows expected;
    distinct_rows_reference(tables[c], slices, expected);
    EXPECT_EQ(found[c], expected) << "case " << c;
  }
}

TEST(DistinctRows, equals_the_reference_in_tables_of_every_kind) {
  for (int64_t samples : {0, 1, 7, 8, 9, 64, 500}) {
    for (int slices : {1, 2, 8}) {
      const std::vector<Case> cases{
          {1, samples, -1, 1, slices},
          {3, samples, 4, 1, slices},
          {1000, samples, -1, 1, slices},
          {1000, samples, 4, 3, slices, true, Pooling::mean},
          {int64_t{1} << 40, samples, 20, 1, slices},
          {int64_t{1} << 40, samples, 6, 2, slices, true, Pooling::none},
          {1 << 20, samples, 3, 5, slices, false, Pooling::mean},
      };
      SCOPED_TRACE(testing::Message() << samples << " samples, " << slices << " slices");
      expect_equal_to_reference(cases, 1);
      expect_equal_to_reference(cases, 3);
    }
  }
}

TEST(DistinctRows, takes_views_that_begin_inside_their_arrays) {
  const auto whole = random_bags({20, 3, 50}, 5);
  const auto part = whole.view(20).slice(7, 15);
  const FeatureBags bags{part, Pooling::none};
  const auto begins = slice_begins(8, 2);
  const TableLookups table{50, {&bags, 1}};
  DistinctRows expected;
  distinct_rows_reference(table, {0, begins}, expected);
  std::vector<DistinctRows> found(1);
  ThreadPool pool(1);
  DistinctRowsFinder().find({&table, 1}, {0, begins}, found, pool);
  EXPECT_EQ(found[0], expected);
  EXPECT_EQ(found[0].lookups(), part.lookups());
}

TEST(DistinctRows, an_empty_batch_may_have_no_arrays_at_all) {
  const FeatureBags bags{};
  const TableLookups table{50, {&bags, 1}};
  const std::vector<int64_t> begins{0, 0};
  std::vector<DistinctRows> found(1);
  ThreadPool pool(1);
  DistinctRowsFinder().find({&table, 1}, {0, begins}, found, pool);
  EXPECT_EQ(found[0].count(), 0);
  EXPECT_EQ(found[0].begins, std::vector<int64_t>{0});
}

}  // namespace
}  // namespace recmill::kernels
