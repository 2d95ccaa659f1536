// SPDX-License-Identifier: Apache-2.0
// What every home of rows must do. A home is a fixture: a type
//     struct Fixture {
//       // `tables` are whole, with their initial rows.
//       Fixture(std::vector<EmbeddingTable>& tables, int writers, ThreadPool& pool, uint64_t seed);
//       RowHome& writer(int number);
//       static constexpr bool kManyThreads;  // false: its writers share one thread
//     };
// then
//     INSTANTIATE_TYPED_TEST_SUITE_P(Embedded, RowHomeContract, EmbeddedFixture);
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "table/home/home_caller.h"
#include "table/home/row_home.h"
#include "table/home/testing/home_trace.h"
#include "table/row_record.h"

namespace recmill::table {

/// A home of two tables, and rows that are told from each other by one number.
template <typename Fixture>
class RowHomeContract : public ::testing::Test {
 protected:
  static constexpr int kPolls = 1000;  // after which what has no answer waits for something

  void make(int writers) {
    specs_ = {{.name = "a", .rows = 10, .dim = 3, .optimizer = {}},
              {.name = "b", .rows = 4, .dim = 16, .optimizer = {}}};
    specs_[1].precision = RowPrecision::bfloat16;
    specs_[1].optimizer.kind = OptimizerKind::rowwise_adagrad;
    tables_ = testing::tables_of(specs_, 1, pool_);
    home_ = std::make_unique<Fixture>(tables_, writers, pool_, 1);
    answers_.resize(writers);
  }

  /// Polls all writers until `writer` has the answer, or nobody gets any more.
  const RowHome::Answer* answer(int writer, RowHome::Ticket ticket) {
    for (int i = 0; i < kPolls && answers_[writer].count(ticket) == 0; ++i) {
      for (int w = 0; w < std::ssize(answers_); ++w) {
        std::vector<RowHome::Answer> some;
        home_->writer(w).poll(some);
        for (auto& one : some) {
          EXPECT_EQ(answers_[w].count(one.ticket), 0u) << "a second answer";
          answers_[w][one.ticket] = std::move(one);
        }
      }
    }
    const auto found = answers_[writer].find(ticket);
    return found == answers_[writer].end() ? nullptr : &found->second;
  }
  std::string message(int writer, RowHome::Ticket ticket) {
    const auto* found = answer(writer, ticket);
    return found == nullptr ? "no answer" : found->status.message();
  }

  /// Bytes of records that are all `value`.
  std::vector<std::byte> records(int table, size_t rows, int value) const {
    return std::vector<std::byte>(rows * RowRecord(specs_[table]).bytes(),
                                  static_cast<std::byte>(value));
  }
  /// Puts rows of table 0 that are all `value`, and waits.
  std::string put(int writer, std::vector<int64_t> rows, int64_t step, int value) {
    const auto bytes = records(0, rows.size(), value);
    const PutRows list{0, rows, bytes};
    return message(writer, home_->writer(writer).put({&list, rows.empty() ? 0u : 1u}, step));
  }
  /// The `value` of rows of table 0, as they are after `fence`.
  std::vector<int> fetched(int writer, std::vector<int64_t> rows, int64_t fence) {
    auto bytes = records(0, rows.size(), 0);
    const FetchedRows list{0, rows, bytes};
    EXPECT_EQ(message(writer, home_->writer(writer).fetch({&list, 1}, fence)), "");
    std::vector<int> values;
    const auto size = RowRecord(specs_[0]).bytes();
    for (size_t i = 0; i < rows.size(); ++i) values.push_back(static_cast<int>(bytes[i * size]));
    return values;
  }
  /// Of each row of table 0 the first bytes of what an image has, 0 where it is an initial row.
  std::vector<int> read(RowSnapshot& image) const {
    std::vector<int> values;
    const Status status = image.read([&](const RowBlock& block) -> Status {
      for (int64_t i = 0; block.table == 0 && i < block.count; ++i) {
        const auto* bytes = reinterpret_cast<const unsigned char*>(&block.weights[i * 3]);
        const bool is_put = bytes[0] == bytes[1] && bytes[1] == bytes[2] && bytes[2] == bytes[3];
        values.push_back(is_put ? bytes[0] : 0);
      }
      return {};
    });
    EXPECT_TRUE(status.ok()) << status.message();
    return values;
  }

  ThreadPool pool_{1};
  std::vector<TableSpec> specs_;
  std::vector<EmbeddingTable> tables_;
  std::unique_ptr<Fixture> home_;
  std::vector<std::map<RowHome::Ticket, RowHome::Answer>> answers_;  // [writers]
};
TYPED_TEST_SUITE_P(RowHomeContract);

TYPED_TEST_P(RowHomeContract, shows_under_random_work_what_the_plain_home_shows) {
  for (const int writers : {1, 2, 3, 5}) {
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      testing::HomeTrace trace;
      trace.seed = seed;
      trace.writers = writers;
      auto tables = testing::tables_of(trace.specs, seed, this->pool_);
      TypeParam home(tables, writers, this->pool_, seed);
      const auto of = [&](int w) -> RowHome& { return home.writer(w); };
      ASSERT_EQ(testing::difference_from_plain(trace, of), "")
          << "seed " << seed << ", " << writers << " writers";
    }
  }
}

TYPED_TEST_P(RowHomeContract, answers_a_fetch_once_every_writer_has_put_up_to_its_fence) {
  this->make(3);
  std::vector<int64_t> row{4};
  auto bytes = this->records(0, 1, 0);
  const FetchedRows list{0, row, bytes};
  const auto ticket = this->home_->writer(1).fetch({&list, 1}, 5);
  EXPECT_EQ(this->put(0, row, 5, 7), "");
  EXPECT_EQ(this->put(1, {}, 4, 0), "");
  EXPECT_EQ(this->put(2, {}, 6, 0), "");
  EXPECT_EQ(this->message(1, ticket), "no answer");
  EXPECT_EQ(this->put(1, {}, 5, 0), "");  // an empty one
  EXPECT_EQ(this->message(1, ticket), "");
  EXPECT_EQ(bytes, this->records(0, 1, 7));
}

TYPED_TEST_P(RowHomeContract, a_fetch_that_waits_holds_up_no_other_call) {
  this->make(2);
  std::vector<int64_t> row{4};
  auto bytes = this->records(0, 1, 0);
  const FetchedRows list{0, row, bytes};
  const auto waiting = this->home_->writer(0).fetch({&list, 1}, 3);
  EXPECT_EQ(this->put(0, {1}, 2, 9), "");
  EXPECT_EQ(this->fetched(0, {1}, RowHome::kNoFence), std::vector{9});
  EXPECT_EQ(this->put(0, {1, 4}, 3, 11), "");
  EXPECT_EQ(this->message(0, waiting), "no answer");
  EXPECT_EQ(this->put(1, {}, 3, 0), "");
  EXPECT_EQ(this->message(0, waiting), "");
  EXPECT_EQ(bytes, this->records(0, 1, 11));
}

TYPED_TEST_P(RowHomeContract, carries_a_step_out_once) {
  this->make(1);
  EXPECT_EQ(this->put(0, {2, 3}, 1, 5), "");
  EXPECT_EQ(this->put(0, {2}, 1, 6), "");
  EXPECT_EQ(this->put(0, {2}, 0, 6), "");
  EXPECT_EQ(this->fetched(0, {2, 3}, 1), (std::vector{5, 5}));
}

TYPED_TEST_P(RowHomeContract, gives_a_row_as_often_as_it_is_named_and_keeps_the_last_one_put) {
  this->make(1);
  const std::vector<int64_t> rows{6, 1, 6};
  auto bytes = this->records(0, 2, 3);
  const auto last = this->records(0, 1, 4);
  bytes.insert(bytes.end(), last.begin(), last.end());
  const PutRows list{0, rows, bytes};
  EXPECT_EQ(this->message(0, this->home_->writer(0).put({&list, 1}, 0)), "");
  EXPECT_EQ(this->fetched(0, {6, 6, 1, 6}, 0), (std::vector{4, 4, 3, 4}));
}

TYPED_TEST_P(RowHomeContract, names_table_and_row_of_a_row_outside_and_changes_nothing) {
  this->make(1);
  EXPECT_EQ(this->put(0, {0, 1}, 0, 1), "");
  const std::string outside = "table 'a': row 10 is outside of its 10 rows";
  EXPECT_EQ(this->put(0, {1, 10}, 1, 2), outside);
  EXPECT_EQ(this->put(0, {-1}, 1, 2), "table 'a': row -1 is outside of its 10 rows");
  const std::vector<int64_t> rows{1, 10};
  auto bytes = this->records(0, 2, 0);
  const FetchedRows list{0, rows, bytes};
  EXPECT_EQ(this->message(0, this->home_->writer(0).fetch({&list, 1}, 0)), outside);
  const FetchedRows nowhere{2, {}, {}};
  EXPECT_EQ(this->message(0, this->home_->writer(0).fetch({&nowhere, 1}, 0)),
            "there is no table 2");
  EXPECT_EQ(this->fetched(0, {1}, 0), std::vector{1});
  const FetchedRows beyond{0, std::span(rows).first(1), std::span(bytes).first(bytes.size() / 2)};
  const auto waiting = this->home_->writer(0).fetch({&beyond, 1}, 1);
  EXPECT_EQ(this->message(0, waiting), "no answer");  // the mark has not moved
  EXPECT_EQ(this->put(0, {1}, 1, 3), "");
  EXPECT_EQ(this->message(0, waiting), "");
}

TYPED_TEST_P(RowHomeContract, an_image_has_the_rows_as_after_its_step_whoever_is_ahead) {
  this->make(2);
  EXPECT_EQ(this->put(0, {0, 1}, 0, 1), "");
  const auto first = this->home_->writer(0).cut(1, {});
  EXPECT_EQ(this->put(0, {0}, 2, 2), "");  // ahead of the other one
  EXPECT_EQ(this->put(1, {5}, 1, 3), "");  // belongs to the image
  EXPECT_EQ(this->message(0, first), "no answer");
  const auto second = this->home_->writer(1).cut(1, {});
  EXPECT_EQ(this->put(1, {6}, 2, 4), "");
  const auto* of_first = this->answer(0, first);
  const auto* of_second = this->answer(1, second);
  ASSERT_TRUE(of_first != nullptr && of_second != nullptr);
  EXPECT_EQ(this->put(0, {1}, 3, 5), "");
  EXPECT_EQ(this->read(*of_first->image), (std::vector{1, 1, 0, 0, 0, 3, 0, 0, 0, 0}));
  EXPECT_EQ(this->put(1, {}, 3, 0), "");
  EXPECT_EQ(this->fetched(0, {0, 1, 5, 6}, 3), (std::vector{2, 5, 3, 4}));
}

TYPED_TEST_P(RowHomeContract, two_images_are_there_at_a_time_and_one_that_nobody_reads_is_let_go) {
  this->make(1);
  RowHome& home = this->home_->writer(0);
  const auto cut = [&](int64_t step) {
    const auto ticket = home.cut(step, {});
    const auto* answer = this->answer(0, ticket);
    EXPECT_NE(answer, nullptr);
    auto image = std::move(this->answers_[0][ticket].image);
    return image;
  };
  EXPECT_EQ(this->put(0, {0}, 0, 1), "");
  auto first = cut(0);
  EXPECT_EQ(this->put(0, {0}, 1, 2), "");
  const auto second = cut(1), again = cut(1);
  EXPECT_EQ(this->put(0, {0}, 2, 3), "");
  first.reset();
  const auto third = cut(2);
  EXPECT_EQ(this->put(0, {0}, 3, 4), "");
  EXPECT_EQ(this->read(*third)[0], 3);
  EXPECT_EQ(this->read(*again)[0], 2);
  EXPECT_EQ(this->read(*second)[0], 2);
  EXPECT_EQ(this->fetched(0, {0}, 3), std::vector{4});
}

TYPED_TEST_P(RowHomeContract, an_image_is_read_on_another_thread_while_rows_are_put) {
  this->make(1);
  EXPECT_EQ(this->put(0, {0, 9}, 0, 1), "");
  const auto ticket = this->home_->writer(0).cut(0, {});
  ASSERT_NE(this->answer(0, ticket), nullptr);
  std::vector<int> values;
  std::thread reading([&] { values = this->read(*this->answers_[0][ticket].image); });
  for (int step = 1; step < 100; ++step) EXPECT_EQ(this->put(0, {0, 5, 9}, step, 2), "");
  reading.join();
  EXPECT_EQ(values, (std::vector{1, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
}

TYPED_TEST_P(RowHomeContract, refuses_a_cut_behind_a_put_of_a_later_step) {
  this->make(1);
  EXPECT_EQ(this->put(0, {0}, 5, 1), "");
  EXPECT_EQ(this->message(0, this->home_->writer(0).cut(4, {})),
            "a cut after step 4 comes behind the put of step 5");
}

TYPED_TEST_P(RowHomeContract, a_cut_brings_rows_that_were_changed_and_not_put) {
  this->make(2);
  EXPECT_EQ(this->put(0, {0, 1, 2}, 0, 1), "");
  EXPECT_EQ(this->put(1, {}, 0, 0), "");
  const std::vector<int64_t> rows{1, 2, 3};
  const auto bytes = this->records(0, 3, 7);
  const PutRows changed{0, rows, bytes};
  const auto first = this->home_->writer(0).cut(1, {&changed, 1});
  EXPECT_EQ(this->put(0, {2}, 2, 8), "");  // a later step, which stays
  const auto second = this->home_->writer(1).cut(1, {});
  const auto* of_first = this->answer(0, first);
  ASSERT_TRUE(of_first != nullptr && this->answer(1, second) != nullptr);
  EXPECT_EQ(this->fetched(1, {0, 1, 2, 3}, 0), (std::vector{1, 7, 8, 7}));
  EXPECT_EQ(this->put(0, {3}, 3, 9), "");
  EXPECT_EQ(this->read(*of_first->image), (std::vector{1, 7, 7, 7, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(this->fetched(0, {3}, 0), std::vector{9});
}

TYPED_TEST_P(RowHomeContract, wakes_who_waits_for_the_put_of_another_thread) {
  if (!TypeParam::kManyThreads) GTEST_SKIP();
  this->make(2);
  constexpr int kSteps = 50;
  std::vector<std::thread> threads;
  std::vector<int> last(2);
  threads.reserve(2);
  // Each puts a row, and reads that of the other one behind the same step.
  for (int w = 0; w < 2; ++w) {
    threads.emplace_back([&, w] {
      HomeCaller caller(this->home_->writer(w));
      for (int step = 0; step < kSteps; ++step) {
        const std::vector<int64_t> own{w}, other{1 - w};
        const auto put = this->records(0, 1, step);
        auto got = this->records(0, 1, 0);
        const PutRows puts{0, own, put};
        const FetchedRows fetches{0, other, got};
        const auto ticket = caller.home().put({&puts, 1}, step);
        const Status status = caller.wait(caller.home().fetch({&fetches, 1}, step)).status;
        EXPECT_TRUE(status.ok()) << status.message();
        EXPECT_TRUE(caller.wait(ticket).status.ok());
        last[w] = static_cast<int>(got[0]);
        EXPECT_GE(last[w], step);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(last, (std::vector{kSteps - 1, kSteps - 1}));
}

REGISTER_TYPED_TEST_SUITE_P(RowHomeContract, shows_under_random_work_what_the_plain_home_shows,
                            answers_a_fetch_once_every_writer_has_put_up_to_its_fence,
                            a_fetch_that_waits_holds_up_no_other_call, carries_a_step_out_once,
                            gives_a_row_as_often_as_it_is_named_and_keeps_the_last_one_put,
                            names_table_and_row_of_a_row_outside_and_changes_nothing,
                            an_image_has_the_rows_as_after_its_step_whoever_is_ahead,
                            two_images_are_there_at_a_time_and_one_that_nobody_reads_is_let_go,
                            an_image_is_read_on_another_thread_while_rows_are_put,
                            refuses_a_cut_behind_a_put_of_a_later_step,
                            a_cut_brings_rows_that_were_changed_and_not_put,
                            wakes_who_waits_for_the_put_of_another_thread);

}  // namespace recmill::table
