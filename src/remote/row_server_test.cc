// SPDX-License-Identifier: Apache-2.0
#include "remote/row_server.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "remote/row_client.h"
#include "remote/row_versions.h"

namespace recmill::remote {
namespace {

using Kind = MessageKind;

/// A server, and what it says to each message.
class RowServerTest : public ::testing::Test {
 protected:
  static Greeting greeting() {
    Greeting of;
    of.run = "run";
    of.ranks = 2;
    of.seed = 7;
    of.deadline = 5.0;
    TableSpec table;
    table.name = "a";
    table.rows = 10;
    table.dim = 1;
    table.optimizer.kind = OptimizerKind::sgd;
    of.tables = {table};
    return of;
  }
  /// The answer, an error's text, or "waits".
  std::string say(int64_t connection, const Message& message) {
    server_.take(connection, message, now_);
    return heard(connection);
  }
  std::string heard(int64_t connection) {
    std::string said = "waits";
    for (const auto& out : server_.take_out())
      if (out.to == connection)
        said = out.message.kind == Kind::answer ? "ok" + std::string(out.message.body.text())
                                                : std::string(out.message.body.text());
    return said;
  }
  std::string greet(int64_t connection, int rank, const Greeting& of, int64_t begin = -1) {
    const std::string said = say(connection, {Kind::hello, 0, begin, rank, write_greeting(of)});
    return said.starts_with("ok") ? "ok" : said;
  }
  static Bytes rows(std::vector<int64_t> of, float value = 0.0f, bool records = false) {
    const std::vector<float> values(of.size(), value);
    std::vector<TableRows> lists{{0, std::move(of), {}}};
    if (records) lists[0].records = std::as_bytes(std::span(values));
    return write_row_lists(lists);
  }
  std::string put(int64_t connection, int64_t step, std::vector<int64_t> of, float value = 1.0f) {
    return say(connection, {Kind::put, 1, step, 0, rows(std::move(of), value, true)});
  }
  Json status() const { return Json::parse(server_.status()); }

  RowServer server_{11};
  double now_ = 0.0;
};

TEST_F(RowServerTest, a_fetch_that_waits_too_long_names_the_rank_that_is_late) {
  EXPECT_EQ(greet(1, 0, greeting()), "ok");
  EXPECT_EQ(greet(2, 1, greeting()), "ok");
  EXPECT_EQ(put(1, 3, {4}), "ok");
  EXPECT_EQ(say(1, {Kind::fetch, 9, 3, 0, rows({4})}), "waits");
  server_.tick(4.9);
  EXPECT_EQ(heard(1), "waits");
  server_.tick(5.0);
  EXPECT_EQ(heard(1), "rank 1 has put up to step -1, not to step 3, for 5 seconds");
}

TEST_F(RowServerTest,
       a_run_is_refused_while_another_ones_rank_is_connected_and_takes_its_place_then) {
  EXPECT_EQ(greet(1, 0, greeting()), "ok");
  EXPECT_EQ(put(1, 0, {4}), "ok");
  Greeting other = greeting();
  other.run = "other";
  EXPECT_EQ(greet(2, 0, other), "the server has rows of run 'run', of which rank 0 is connected");
  EXPECT_EQ(say(1, {Kind::goodbye}), "ok");
  EXPECT_EQ(greet(2, 0, other), "ok");
  EXPECT_EQ(status()["touched_rows"], 0);
  // Who was connected with the run before is not taken for a rank of this one.
  EXPECT_EQ(put(1, 1, {4}), "a connection begins with a greeting");
  server_.closed(2);
  Greeting again = greeting();
  again.again = 11;
  EXPECT_EQ(greet(3, 0, again), "the server has no rows of run 'run' any more");
}

TEST_F(RowServerTest, a_later_term_ends_the_one_before) {
  EXPECT_EQ(greet(1, 0, greeting()), "ok");
  EXPECT_EQ(greet(2, 1, greeting()), "ok");
  for (const int64_t rank : {1, 2}) EXPECT_EQ(put(rank, 3, {rank}), "ok");
  EXPECT_EQ(say(1, {Kind::record, 1, 3}), "a record of step 3, which is not cut");
  EXPECT_EQ(say(1, {Kind::cut, 1, 3}), "waits");
  EXPECT_EQ(say(2, {Kind::cut, 1, 3}), "ok");
  EXPECT_EQ(say(1, {Kind::record, 2, 3, 0, Bytes::text("all else")}), "ok");
  EXPECT_EQ(put(1, 4, {1, 5}, 2.0f), "ok");
  EXPECT_EQ(say(2, {Kind::fetch, 9, 9, 0, rows({5})}), "waits");
  Greeting next = greeting();
  next.term = 2;
  next.ranks = 1;
  next.fresh = false;
  EXPECT_EQ(greet(3, 0, next, 2), "the last commit is of step 3, not of step 2");
  server_.take(3, {Kind::hello, 0, 3, 0, write_greeting(next)}, now_);
  EXPECT_EQ(heard(2), "the run was started again");  // the fetch that waited
  EXPECT_EQ(put(1, 5, {1}), "the run was started again; a rank of term 1 no longer belongs to it");
  EXPECT_EQ(greet(4, 0, greeting()), "the run was started again; term 1 is over");
  EXPECT_EQ(status()["touched_rows"], 2);
  EXPECT_EQ(status()["marks"], Json::array({3}));
  EXPECT_EQ(say(3, {Kind::recorded, 3}), "okall else");
}

TEST_F(RowServerTest, an_image_goes_when_all_ranks_have_released_it) {
  EXPECT_EQ(greet(1, 0, greeting()), "ok");
  EXPECT_EQ(greet(2, 1, greeting()), "ok");
  for (const int64_t rank : {1, 2}) say(rank, {Kind::cut, 1, 3});
  const int64_t before = status()["image_bytes"];
  EXPECT_EQ(put(1, 4, {1}), "ok");
  EXPECT_EQ(say(1, {Kind::release, 2, 3}), "ok");
  EXPECT_GT(before, 0);
  EXPECT_GT(status()["image_bytes"], 0);
  EXPECT_EQ(say(2, {Kind::release, 2, 3}), "ok");
  EXPECT_EQ(status()["image_bytes"], 0);
  EXPECT_EQ(say(2, {Kind::release, 2, 3}), "ok");  // a repeat
}

// A row takes 64 bytes, and 27 at most beside them.
TEST_F(RowServerTest, asks_for_a_commit_when_memory_is_scarce_and_refuses_only_what_does_not_fit) {
  RowServer server(11, {.memory = 1 << 20});
  Greeting wide = greeting();
  wide.ranks = 1;
  wide.tables[0].rows = 20'000;
  wide.tables[0].dim = 16;
  int64_t room = -1;
  const auto ask = [&](const Message& message) {
    server.take(1, message, 0.0);
    const auto out = server.take_out();
    room = out[0].message.detail;
    return std::string(out[0].message.body.text());
  };
  const auto put_rows = [&](int64_t step, int64_t first, int64_t count) {
    std::vector<int64_t> of(static_cast<size_t>(count));
    std::iota(of.begin(), of.end(), first);
    const std::vector<float> values(of.size() * 16, 1.0f);
    const std::vector<TableRows> lists{{0, std::move(of), std::as_bytes(std::span(values))}};
    return ask({Kind::put, 1, step, 0, write_row_lists(lists)});
  };
  ask({Kind::hello, 0, -1, 0, write_greeting(wide)});
  EXPECT_EQ(put_rows(0, 0, 5000), "");
  EXPECT_EQ(room, 0);
  ask({Kind::cut, 1, 0});
  EXPECT_EQ(put_rows(1, 0, 5000), "");  // the image keeps them
  EXPECT_EQ(room, 1);
  EXPECT_EQ(server.take_lines().back(),
            "run 'run': 1 MiB of 1 MiB are used; ranks are asked for a commit");
  ask({Kind::cut, 1, 1});
  ask({Kind::release, 1, 0});
  EXPECT_EQ(put_rows(2, 5000, 100), "");
  EXPECT_EQ(room, 0);
  const std::string full = put_rows(3, 6000, 8000);
  EXPECT_TRUE(full.starts_with("its memory of 1 MiB (--memory) is full: rows take ")) << full;
  EXPECT_EQ(put_rows(4, 0, 1), full);  // which was sent behind it
  EXPECT_EQ(ask({Kind::cut, 1, 4}), full);
  Json status = Json::parse(server.status());
  EXPECT_EQ(status["marks"], Json::array({2}));
  EXPECT_EQ(status["touched_rows"], 5100);
  EXPECT_EQ(status["memory"], 1 << 20);
  wide.term = 2;
  wide.fresh = false;
  ask({Kind::hello, 0, 1, 0, write_greeting(wide)});
  EXPECT_EQ(put_rows(2, 0, 1), "");
}

TEST_F(RowServerTest, a_start_waits_for_the_end_of_a_part_that_is_being_written) {
  RowServer server(11, {.checkpoints = "/runs"});
  Greeting first = greeting();
  first.ranks = 1;
  const auto ask = [&](int64_t connection, const Message& message) {
    server.take(connection, message, 0.0);
    std::string said;
    for (const auto& out : server.take_out()) said += std::string(out.message.body.text()) + ";";
    return said;
  };
  const auto order = [&](int64_t step, const std::string& folder) {
    return ask(1, {Kind::write, 7, step, 0, write_part_order({folder, 3})});
  };
  ask(1, {Kind::hello, 0, -1, 0, write_greeting(first)});
  ask(1, {Kind::put, 1, 0, 0, rows({4}, 1.0f, true)});
  EXPECT_EQ(order(0, "/runs/a"), "there is no image of step 0;");
  ask(1, {Kind::cut, 1, 0});
  ask(1, {Kind::record, 1, 0});
  EXPECT_EQ(order(0, "/runs/../etc"),
            "'/runs/../etc' is not below '/runs' (--checkpoints), where it writes;");
  EXPECT_FALSE(server.begin_write());
  EXPECT_EQ(order(0, "/runs/a"), "");
  EXPECT_EQ(order(0, "/runs/b"), "");  // one after the other
  const auto write = server.begin_write();
  ASSERT_TRUE(write);
  EXPECT_EQ(write->order.folder, "/runs/a");
  EXPECT_EQ(write->order.number, 3);
  EXPECT_FALSE(server.begin_write());
  EXPECT_EQ(ask(1, {Kind::put, 1, 1, 0, rows({5}, 1.0f, true)}), ";");  // service goes on
  EXPECT_TRUE(server.read_image(0, 0).ok());
  Greeting next = first;
  next.term = 2;
  next.fresh = false;
  EXPECT_EQ(ask(2, {Kind::hello, 0, 0, 0, write_greeting(next)}), "");
  EXPECT_EQ(server.read_image(0, 0).status().message(), "there is no image of step 0");
  server.written(Status::Failed("it ends"), 0.0);
  std::string said;
  for (const auto& out : server.take_out()) said += std::string(out.message.body.text()) + ";";
  EXPECT_TRUE(said.starts_with("it ends;the run was started again;{")) << said;
  EXPECT_FALSE(server.begin_write());
  EXPECT_TRUE(server.read_image(0, 0).ok());
}

TEST_F(RowServerTest, refuses_what_does_not_fit_with_a_line) {
  EXPECT_EQ(say(1, {Kind::ping}), "a connection begins with a greeting");
  EXPECT_EQ(greet(1, 2, greeting()), "rank 2 of 2 greets");
  Greeting first = greeting();
  first.servers = 2;
  EXPECT_EQ(greet(1, 0, first), "ok");
  Greeting other = first;
  other.tables[0].rows = 11;
  EXPECT_EQ(greet(2, 1, other),
            "the run was begun with other tables: rows of table 'a' is 11 here and 10 there");
  other = first;
  other.server = 1;
  EXPECT_EQ(greet(2, 1, other),
            "the server is number 0 of 2, not 1 of 2: name the servers of a run in the same order");
  other = first;
  other.again = 12;
  EXPECT_EQ(greet(2, 1, other),
            "the server was started again since rank 1 was connected, and its rows are lost");
  EXPECT_EQ(greet(2, 1, first, 5),
            "ranks of one term greet with different numbers of ranks or steps");
  other = first;
  other.term = 2;
  other.fresh = false;
  EXPECT_EQ(greet(2, 1, other, 5), "the server has no commit of step 5");
  const table::RowShare share(10, 0, 2);
  int64_t elsewhere = 0;
  while (share.owns(elsewhere)) ++elsewhere;
  const std::string row = std::to_string(elsewhere);
  EXPECT_EQ(put(1, 1, {elsewhere}), "table 'a': row " + row + " is at server 1, not at server 0");
  EXPECT_EQ(put(1, 1, {10}), "table 'a': row 10 is outside of its 10 rows");
  EXPECT_EQ(say(1, {Kind::put, 1, 1, 0, Bytes::text("garbage")}),
            "a message names rows in no known way");
  EXPECT_EQ(status()["marks"], Json::array({-1, -1}));
  EXPECT_EQ(say(5, {Kind::hello, 0, 0, -1, Bytes::text("{}")}), "greeting: no key protocol");
  EXPECT_EQ(say(5, {Kind::hello, 0, 0, -1, Bytes::text("{\"protocol\": 2}")}),
            "protocol 2 of rows on servers; here it is 1: use the same version of Recmill");
  say(5, {Kind::hello, 0, 0, -1, write_guest_greeting()});
  EXPECT_EQ(put(5, 1, {0}), "a guest may only read");
}

/// Gives a row at a time, and sometimes none.
class FewRows final : public MemoryRows {
 public:
  using MemoryRows::MemoryRows;
  Result<ImageRows> read_image(int64_t step, int table, int64_t first, size_t) override {
    if (is_none_ = !is_none_; is_none_) return ImageRows{{}, {}, first};
    return MemoryRows::read_image(step, table, first, 0);
  }

 private:
  bool is_none_ = false;
};

TEST_F(RowServerTest, rows_of_an_image_that_come_one_by_one_are_a_list_of_each_table) {
  RowServer server(11, {.make_rows = [](std::span<const TableSpec> tables) {
                     return Result<std::unique_ptr<table::ServedRows>>(
                         std::make_unique<FewRows>(shapes_of(tables)));
                   }});
  Greeting two = greeting();
  two.ranks = 1;
  two.tables.push_back(two.tables[0]);
  server.take(1, {Kind::hello, 0, -1, 0, write_greeting(two)}, 0.0);
  const std::vector<float> values(5, 1.0f);
  const auto bytes = std::as_bytes(std::span(values));
  const std::vector<TableRows> lists{{0, {9, 2, 4}, bytes.first(12)}, {1, {7, 3}, bytes.first(8)}};
  server.take(1, {Kind::put, 1, 0, 0, write_row_lists(lists)}, 0.0);
  server.take(1, {Kind::cut, 1, 0}, 0.0);
  const auto image = server.read_image(0, 0);
  ASSERT_TRUE(image.ok());
  const auto shapes = shapes_of(two.tables);
  const auto found = read_row_lists(image->body.view(), /*has_records=*/true, shapes);
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].rows, (std::vector<int64_t>{2, 4, 9}));
  EXPECT_EQ((*found)[1].rows, (std::vector<int64_t>{3, 7}));
  EXPECT_EQ(image->detail, -1);
}

TEST_F(RowServerTest, a_rank_whose_connection_breaks_at_each_message_does_not_try_for_ever) {
  RowClientOptions options;
  options.greeting = greeting();
  RowClient client(options);
  client.put({}, 0);
  double now = 0.0;
  for (; client.failure().ok() && now < 100.0; now += 0.5) {
    client.connected(0, now);
    EXPECT_EQ(client.next(0)->kind, Kind::hello);
    client.take(0, {Kind::answer, -1, 0, 0, write_server_greeting({11})}, now);
    EXPECT_EQ(client.next(0)->kind, Kind::put);
    client.disconnected(0, now, Status::Failed("it breaks"));
    client.tick(now);
  }
  EXPECT_EQ(now, 10.5);
  EXPECT_EQ(
      client.failure().message(),
      "server 0 greets and answers nothing else for 10 seconds (twice lookahead.deadline): it "
      "breaks");
}

}  // namespace
}  // namespace recmill::remote
