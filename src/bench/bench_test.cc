// SPDX-License-Identifier: Apache-2.0
#include "bench/bench.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "base/files.h"
#include "base/json/json.h"
#include "base/temporary_folder.h"
#include "bench/alternation.h"
#include "bench/machine.h"
#include "bench/rival.h"

namespace recmill::bench {
namespace {

AlternationOptions impatient() {
  AlternationOptions options;
  options.batches = 5;
  options.passes = 2;
  options.pairs = 3;
  options.patience_seconds = 0.0;
  return options;
}

TEST(Alternation, takes_turns_and_runs_every_batch_in_each_repetition_in_changing_order) {
  std::vector<char> turns;
  std::vector<std::vector<int64_t>> orders;
  const auto contender = [&](char mark, double seconds) -> Contender {
    return [&turns, &orders, mark, seconds](std::span<const int64_t> order) -> Result<double> {
      turns.push_back(mark);
      orders.emplace_back(order.begin(), order.end());
      return seconds;
    };
  };
  const auto timing = alternate(contender('o', 1.0), contender('r', 3.0), impatient());
  ASSERT_TRUE(timing.ok());
  EXPECT_EQ(std::string(turns.begin(), turns.end()), "orororor");
  EXPECT_NE(orders[0], orders[2]);
  for (auto order : orders) {
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, (std::vector<int64_t>{0, 0, 1, 1, 2, 2, 3, 3, 4, 4}));
  }
  EXPECT_EQ(timing->ours.size(), 3u);
  EXPECT_DOUBLE_EQ(median(timing->ours), 0.1);
  EXPECT_DOUBLE_EQ(ratio_of(*timing).ratio, 3.0);
  EXPECT_DOUBLE_EQ(ratio_of(*timing).spread, 0.0);
}

TEST(Alternation, of_short_repetitions_runs_the_first_of_a_turn_once_before_it_counts) {
  std::vector<int64_t> runs(3);
  std::vector<Contender> contenders;
  for (int64_t& own : runs) {
    contenders.emplace_back([&own](std::span<const int64_t>) -> Result<double> {
      return static_cast<double>(++own) * 10.0;
    });
  }
  AlternationOptions options = impatient();
  options.mixed = true;
  const auto turns = take_turns(contenders, options);
  ASSERT_TRUE(turns.ok());
  // Three pairs and one before, in each of which one of the three was first.
  EXPECT_EQ(runs[0] + runs[1] + runs[2], 4 * 3 + 4);
  for (size_t c = 0; c < runs.size(); ++c) {
    EXPECT_EQ(turns->seconds[c].size(), 3u);
    EXPECT_DOUBLE_EQ(turns->seconds[c].back(), static_cast<double>(runs[c]))
        << "the last run counts";
  }
}

TEST(Alternation, stops_at_the_first_failure) {
  const Contender fails = [](std::span<const int64_t>) -> Result<double> {
    return Status::Failed("broken");
  };
  EXPECT_EQ(alternate(fails, {}, impatient()).status().message(), "broken");
}

TEST(Ratio, is_of_medians_and_its_spread_of_quartiles) {
  const Timing timing{{1.0, 1.0, 1.0}, {2.0, 4.0, 3.0}, 0.0};
  EXPECT_DOUBLE_EQ(ratio_of(timing).ratio, 3.0);
  EXPECT_DOUBLE_EQ(ratio_of(timing).spread, 0.5 / 3.0);
}

TEST(BenchLine, has_the_promised_keys_and_says_when_the_machine_was_not_quiet) {
  BenchLine line{"embedding", "onehot_d16", "time_per_batch", 1.5, "ms", "fbgemm_tbe", {4.0, 0.1}};
  std::vector<std::string> keys;
  const Json json = to_json(line, {});
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_EQ(keys,
            (std::vector<std::string>{"bench", "case", "metric", "value", "unit", "rival", "ratio",
                                      "spread", "limit", "of_limit", "machine", "commit"}));
  EXPECT_TRUE(json["limit"].is_null());
  EXPECT_FALSE(to_json(line, {}).contains("core_to_core_ns"));
  line.core_to_core_ns = 31.5;
  EXPECT_EQ(to_json(line, {})["core_to_core_ns"], 31.5);
  line.foreign_load = 0.3;
  EXPECT_EQ(to_json(line, {})["foreign_load"], 0.3);
}

TEST(Machine, own_work_is_not_foreign) {
  const pid_t self[] = {getpid()};
  const double load = foreign_load(self, 0.05);
  EXPECT_GE(load, 0.0);
  EXPECT_LE(load, 1.0);
}

// Any program that answers lines will do in place of a script.
TEST(Rival, answers_line_by_line_and_its_end_is_a_failure_that_names_it) {
  const TemporaryFolder folder;
  const std::string script = folder.path() + "/rival.sh";
  ASSERT_TRUE(write_atomically(posix_files(), script,
                               std::string("read line; echo '{\"seconds\": 0.5}'\n"
                                           "read line; echo '{\"error\": \"no rows\"}'\n"))
                  .ok());
  auto rival = Rival::start("/bin/sh", {script});
  ASSERT_TRUE(rival.ok());
  Json request;
  request["run"] = 1;
  const auto first = rival->ask(request);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ((*first)["seconds"], 0.5);
  EXPECT_NE(rival->ask(request).status().message().find("no rows"), std::string::npos);
  EXPECT_NE(rival->ask(request).status().message().find("rival.sh"), std::string::npos);
}

TEST(Rival, that_does_not_answer_in_time_is_ended) {
  const TemporaryFolder folder;
  const std::string script = folder.path() + "/rival.sh";
  ASSERT_TRUE(write_atomically(posix_files(), script, std::string("exec sleep 3600\n")).ok());
  auto rival = Rival::start("/bin/sh", {script});
  ASSERT_TRUE(rival.ok());
  EXPECT_EQ(rival->ask({{"run", 1}}, 1).status().message(),
            "rival gave no answer in 1 s: " + script);
}  // which waits for its process

TEST(Rival, without_its_environment_says_how_to_get_it) {
  EXPECT_NE(Rival::start("/nowhere/python", {"x.py"}).status().message().find("make rivals"),
            std::string::npos);
}

}  // namespace
}  // namespace recmill::bench
