// SPDX-License-Identifier: Apache-2.0
#include "table/home/testing/late_home.h"

#include <gtest/gtest.h>

#include <deque>

#include "table/home/embedded_home.h"
#include "table/home/row_home_contract.h"

namespace recmill::table {
namespace {

struct LateFixture {
  static constexpr bool kManyThreads = true;
  LateFixture(std::vector<EmbeddingTable>& tables, int writers, ThreadPool& pool, uint64_t seed)
      : home(tables, writers, pool) {
    for (int w = 0; w < writers; ++w) late.emplace_back(home.writer(w), seed * 100 + w);
  }
  RowHome& writer(int number) { return late[number]; }
  EmbeddedHome home;
  std::deque<testing::LateHome> late;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Late, RowHomeContract, LateFixture);

// The order in which so many fetches of one row are answered, and of how many polls each.
std::vector<std::pair<int, RowHome::Ticket>> order_of(uint64_t seed) {
  ThreadPool pool(1);
  const TableSpec spec{.name = "t", .rows = 3, .dim = 1, .optimizer = {}};
  auto tables = testing::tables_of({spec}, 1, pool);
  EmbeddedHome home(tables, 1, pool);
  testing::LateHome late(home.writer(0), seed);
  for (int i = 0; i < 10; ++i) late.fetch({}, RowHome::kNoFence);
  std::vector<std::pair<int, RowHome::Ticket>> order;
  for (int polls = 0; polls < 1000 && order.size() < 10; ++polls) {
    std::vector<RowHome::Answer> answers;
    late.poll(answers);
    for (const auto& answer : answers) order.emplace_back(polls, answer.ticket);
  }
  return order;
}

TEST(LateHome, answers_late_and_in_another_order_which_its_seed_gives_again) {
  int in_order = 0, late = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const auto order = order_of(seed);
    ASSERT_EQ(order.size(), 10u);
    in_order += std::ranges::is_sorted(order, {}, [](const auto& of) { return of.second; });
    late += order.back().first > 2;
    EXPECT_EQ(order, order_of(seed)) << seed;
  }
  EXPECT_LT(in_order, 2);
  EXPECT_GT(late, 40);
}

TEST(LateHome, leaves_garbage_where_a_fetch_is_not_answered_and_reads_puts_late) {
  ThreadPool pool(1);
  TableSpec spec{.name = "t", .rows = 3, .dim = 1, .optimizer = {}};
  spec.optimizer.kind = OptimizerKind::sgd;
  auto tables = testing::tables_of({spec}, 1, pool);
  EmbeddedHome home(tables, 1, pool);
  testing::LateHome late(home.writer(0), 1);
  const int64_t row = 1;
  float value = 1.0f, read = 1.0f;
  const PutRows put{0, {&row, 1}, std::as_bytes(std::span(&value, 1))};
  const FetchedRows fetch{0, {&row, 1}, std::as_writable_bytes(std::span(&read, 1))};
  late.put({&put, 1}, 0);
  late.fetch({&fetch, 1}, 0);
  EXPECT_NE(read, 1.0f);
  value = 2.0f;
  std::vector<RowHome::Answer> answers;
  while (answers.size() < 2) late.poll(answers);
  EXPECT_EQ(read, 2.0f);
}

}  // namespace
}  // namespace recmill::table
