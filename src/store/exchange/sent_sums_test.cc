// SPDX-License-Identifier: Apache-2.0
#include "store/exchange/sent_sums.h"

#include <gtest/gtest.h>

namespace recmill::store {
namespace {

using Rows = std::vector<int64_t>;

class SentSumsOfOneTable : public ::testing::Test {
 protected:
  SentSumsOfOneTable() {
    spec_.name = "t", spec_.rows = 100, spec_.dim = 4;
    // Row 7 in slices 1, 2, 2; row 3 in slice 1; row 9 in slice 3.
    distinct_.rows = {7, 3, 9};
    distinct_.begins = {0, 3, 4, 5};
    distinct_.sources = {{0, 0, 1}, {1, 0, 2}, {2, 0, 2}, {3, 0, 1}, {4, 0, 3}};
    distinct_.weights = {1, 2, 3, 4, 5};
  }

  SentSums plan(SliceRange own, SentUnit unit) {
    const auto table =
        table::EmbeddingTable::create(spec_, 1, table::RowShare::whole(100, 0, 2, 1), pool_);
    SentSums sent;
    sent.plan(distinct_, {}, *table, own, unit, {});
    return sent;
  }

  TableSpec spec_;
  ThreadPool pool_{1};
  DistinctRows distinct_;
};

TEST_F(SentSumsOfOneTable, are_of_the_rows_as_they_are_where_slices_are_one_subtree) {
  const SentSums sent = plan({0, 4}, SentUnit::subtree_sum);
  EXPECT_EQ(&sent.entries(), &distinct_);
  EXPECT_EQ(Rows(sent.range_begins().begin(), sent.range_begins().end()), (Rows{0, 3}));
  EXPECT_EQ(sent.by_rank().of[1].size(), 3);
}

TEST_F(SentSumsOfOneTable, have_an_entry_for_each_subtree_that_a_row_is_in) {
  const SentSums sent = plan({1, 4}, SentUnit::subtree_sum);  // slice 1, then slices 2 and 3
  EXPECT_EQ(sent.entries().rows, (Rows{7, 3, 7, 9}));
  EXPECT_EQ(sent.entries().begins, (Rows{0, 1, 2, 4, 5}));
  EXPECT_EQ(sent.entries().weights, (std::vector<float>{1, 4, 2, 3, 5}));
  EXPECT_EQ(Rows(sent.range_begins().begin(), sent.range_begins().end()), (Rows{0, 2, 4}));
}

TEST_F(SentSumsOfOneTable, have_an_entry_for_each_lookup_where_these_go_one_by_one) {
  const SentSums sent = plan({0, 4}, SentUnit::lookup);
  EXPECT_EQ(sent.entries().rows, (Rows{7, 3, 7, 7, 9}));
  EXPECT_EQ(sent.entries().begins, (Rows{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(Rows(sent.range_begins().begin(), sent.range_begins().end()), (Rows{0, 0, 2, 4, 5}));
  EXPECT_EQ(sent.by_rank().of[0].size(), 0);
  EXPECT_EQ(sent.by_rank().of[1].size(), 5);
}

}  // namespace
}  // namespace recmill::store
