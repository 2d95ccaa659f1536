// SPDX-License-Identifier: Apache-2.0
// Benchmarks as a user runs them, where a run takes seconds.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "base/json/json.h"
#include "cli/testing/program.h"

namespace recmill::cli {
namespace {

using BenchProgram = Program;

TEST_F(BenchProgram, cost_model_is_of_several_processes) {
  const Outcome outcome = run({"bench", "cost_model"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("bench cost_model: needs several processes"), std::string::npos)
      << outcome.err;
}

TEST_F(BenchProgram, rater_is_the_old_name_of_cost_model) {
  const Outcome outcome = run({"bench", "rater"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("bench rater is called cost_model now\n"), std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("bench cost_model: needs several processes"), std::string::npos)
      << outcome.err;
}

TEST_F(BenchProgram, cost_model_runs_plans_on_two_ranks_and_knows_what_they_send) {
  launcher_ = {RECMILL_LAUNCHER, "-n", "2"};
  const Outcome outcome = run({"bench", "cost_model", "--quick", "--pairs", "1", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::map<std::string, std::map<std::string, double>> cases;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line, nullptr, false);
    ASSERT_TRUE(json.is_object()) << line;
    cases[json["case"]][json["metric"]] = json["value"];
  }
  EXPECT_EQ(cases.size(), 20u + 1 + 4) << outcome.out;
  for (const char* one : {"bytes", "communication", "iteration"})
    EXPECT_EQ(cases[one].count("median_error"), 1u) << one;
  EXPECT_EQ(cases["order"].count("spearman"), 1u);
  int judged = 0;
  for (const auto& [name, metrics] : cases) {
    if (!name.starts_with("kaggle_")) continue;
    ++judged;
    // Ranks of one host: by messages. Batches are small, and what is in them differs.
    EXPECT_NEAR(metrics.at("predicted_sent_in_messages") / metrics.at("sent_in_messages"), 1, 0.15)
        << name;
    EXPECT_GT(metrics.at("iteration"), 0) << name;
    EXPECT_GT(metrics.at("predicted_iteration"), 0) << name;
  }
  EXPECT_EQ(judged, 20);
  EXPECT_LT(cases["bytes"]["median_error"], 0.1);
}

}  // namespace
}  // namespace recmill::cli
