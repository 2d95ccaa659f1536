// SPDX-License-Identifier: Apache-2.0
#include "table/home/embedded_home.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>

#include "table/home/row_home_contract.h"
#include "table/home/testing/patient_home.h"
#include "table/home/testing/plain_home.h"
#include "table/home/threaded_home.h"

namespace recmill::table {
namespace {

struct EmbeddedFixture {
  static constexpr bool kManyThreads = true;
  EmbeddedFixture(std::vector<EmbeddingTable>& tables, int writers, ThreadPool& pool, uint64_t)
      : home(tables, writers, pool) {}
  RowHome& writer(int number) { return home.writer(number); }
  EmbeddedHome home;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Embedded, RowHomeContract, EmbeddedFixture);

struct PlainFixture {
  static constexpr bool kManyThreads = false;
  PlainFixture(std::vector<EmbeddingTable>& tables, int writers, ThreadPool&, uint64_t)
      : home(tables, writers) {}
  RowHome& writer(int number) { return home.writer(number); }
  testing::PlainHome home;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Plain, RowHomeContract, PlainFixture);

/// Each behind a thread of its own.
struct ThreadedFixture {
  static constexpr bool kManyThreads = true;
  ThreadedFixture(std::vector<EmbeddingTable>& tables, int writers, ThreadPool& pool, uint64_t)
      : home(tables, writers, pool) {
    for (int w = 0; w < writers; ++w) {
      threaded.emplace_back(home.writer(w));
      patient.emplace_back(threaded.back(), std::chrono::microseconds(20));
    }
  }
  RowHome& writer(int number) { return patient[number]; }
  EmbeddedHome home;
  std::deque<ThreadedHome> threaded;
  std::deque<testing::PatientHome> patient;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Threaded, RowHomeContract, ThreadedFixture);

TEST(EmbeddedHome, of_a_rank_has_the_rows_of_its_share_and_names_the_owner_of_another_one) {
  ThreadPool pool(1);
  const TableSpec spec{.name = "t", .rows = 100, .dim = 2, .optimizer = {}};
  const RowShare share(spec.rows, 1, 3);
  std::vector<EmbeddingTable> tables;
  tables.push_back(*EmbeddingTable::create(spec, 1, share, pool));
  EmbeddedHome home(tables, 1, pool);
  const RowRecord record(spec);
  for (int64_t row = 0; row < spec.rows; ++row) {
    std::vector<std::byte> bytes(record.bytes()), expected(record.bytes());
    const FetchedRows list{0, {&row, 1}, bytes};
    home.writer(0).fetch({&list, 1}, RowHome::kNoFence);
    std::vector<RowHome::Answer> answers;
    home.writer(0).poll(answers);
    ASSERT_EQ(answers.size(), 1u);
    if (share.owns(row)) {
      record.pack(tables[0].rows(), share.slot(row), expected.data());
      EXPECT_EQ(answers[0].status.message(), "");
      EXPECT_EQ(bytes, expected);
    } else {
      EXPECT_EQ(answers[0].status.message(),
                "table 't': row " + std::to_string(row) + " is stored at rank " +
                    std::to_string(share.owner(row)) + ", not at rank 1");
    }
  }
}

TEST(EmbeddedHome, begins_at_the_mark_that_it_is_given) {
  ThreadPool pool(1);
  const TableSpec spec{.name = "t", .rows = 3, .dim = 1, .optimizer = {}};
  auto tables = testing::tables_of({spec}, 1, pool);
  EmbeddedHome home(tables, 2, pool, /*mark=*/41);
  for (const int64_t fence : {41, 42}) home.writer(0).fetch({}, fence);
  std::vector<RowHome::Answer> answers;
  home.writer(0).poll(answers);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].ticket, 0);
}

}  // namespace
}  // namespace recmill::table
