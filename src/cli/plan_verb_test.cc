// SPDX-License-Identifier: Apache-2.0
// `recmill plan` and what a run makes of its plans.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>

#include "base/json/json.h"
#include "cli/testing/bags.h"
#include "cli/testing/program.h"

namespace recmill::cli {
namespace {

/// Tables large and small, dimensions of one and of several groups of columns, bags of some ids.
std::string bags(const std::string& sections) {
  return bags_config("rows = 50000\ndims = [16, 8, 40]\n",
                     "mean = 5\ndeviation = 2\nlongest = 9\ncoverage = 0.8\nrows = 300\n",
                     "slices = 8\niterations = 6\n[placement]\ncount_samples = 2000\n" + sections);
}

class Plan : public Program {
 protected:
  void SetUp() override {
    write("local.toml", bags(""));
    write("placed.toml", bags("[embedding]\nstore = 'placed'\n"));
  }
  std::vector<std::string> plan(const std::string& ranks, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"plan", "placement", "placed.toml", "--set",
                                       "train.ranks=" + ranks};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  void expect_refused(const std::vector<std::string>& arguments, const std::string& what) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_NE(outcome.err.find(what), std::string::npos) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
};

TEST_F(Plan, is_carried_out_to_the_rows_of_the_local_store) {
  const Outcome made = run(plan("2", {"--set", "placement.planner=oper", "--set",
                                      "placement.inference=true", "--out", "plan.json"}));
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(run({"train", "local.toml", "--quiet"}).status, 0);
  const Outcome trained = run({"train", "placed.toml", "--quiet", "--set", "train.ranks=2", "--set",
                               "placement.plan=plan.json"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  const Outcome same = run({"verify", "--checkpoints", "runs/local", "runs/placed"});
  EXPECT_EQ(same.status, 0) << same.err;
}

TEST_F(Plan, is_what_requests_are_answered_from_if_it_is_for_as_many_ranks) {
  ASSERT_EQ(run({"train", "local.toml", "--quiet", "--set", "name=run"}).status, 0);
  ASSERT_EQ(run({"predict", "local.toml", "--set", "name=run", "--set", "train.eval_batch_size=32",
                 "--out", "local.parquet", "--quiet"})
                .status,
            0);
  ASSERT_EQ(run(plan("2", {"--set", "placement.planner=oper", "--set", "placement.inference=true",
                           "--out", "plan.json"}))
                .status,
            0);
  const std::vector<std::string> predict{
      "predict", "placed.toml",    "--set", "name=run",
      "--out",   "placed.parquet", "--set", "placement.plan=plan.json"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = predict;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  const Json result = run_json(
      with({"--set", "train.ranks=2", "--latency", "--batch", "32", "--warmup", "1", "--quiet"}));
  EXPECT_EQ(result["latency"]["requests"], 31);  // of 32
  EXPECT_EQ(*read_text(posix_files(), path("placed.parquet")),
            *read_text(posix_files(), path("local.parquet")));
  expect_refused(with({"--overwrite"}), "placement.plan: the plan is for 2 devices; there are 1");
  EXPECT_EQ(run(with({"--overwrite", "--batch", "32"})).status, 2);
}

struct Carried {
  const char* planner;
  const char* extra_memory;
  const char* inference;
  std::string name() const { return std::string(planner) + ", extra memory " + extra_memory; }
};

/// Every planner; those that make copies with none, with some and with many.
constexpr Carried kCarried[] = {{"table_wise", "0", "false"},    {"row_wise", "0", "false"},
                                {"column_wise", "0", "false"},   {"table_row_wise", "0", "false"},
                                {"data_parallel", "0", "false"}, {"memory_greedy", "0", "false"},
                                {"access_greedy", "0", "false"}, {"torchrec_like", "0", "false"},
                                {"oper", "0", "false"},          {"oper", "0.05", "false"},
                                {"oper", "0.5", "true"},         {"hot_cold", "0", "false"},
                                {"milp", "0", "false"},          {"milp", "0.5", "true"}};

/// Whether each distinct row is fetched once, and whether ranks of one host read rows where they
/// are: of threads, and of processes.
constexpr std::pair<bool, bool> kThreadWays[] = {{false, true}, {true, false}},
                                kProcessWays[] = {{false, false}, {true, true}};

std::vector<std::string> verification(const Carried& of, bool dedup, bool share_rows) {
  std::vector<std::string> words{"verify", "placed.toml", "--iterations", "3"};
  const auto set = [&](const std::string& key, const std::string& value) {
    words.insert(words.end(), {"--set", "placement." + key + "=" + value});
  };
  set("planner", of.planner);
  set("extra_memory", of.extra_memory);
  set("inference", of.inference);
  set("dedup_fetch", dedup ? "true" : "false");
  set("share_rows", share_rows ? "true" : "false");
  // Of a few partitions the MILP is soon found.
  for (const char* key : {"access_threshold", "memory_threshold"})
    set(key, of.planner == std::string("milp") ? "0.2" : "0.001");
  return words;
}

TEST_F(Plan, of_every_planner_gives_the_bits_of_the_plain_run_at_every_number_of_ranks) {
  for (const Carried& carried : kCarried) {
    for (const auto& [dedup, share_rows] : kThreadWays) {
      std::vector<std::string> words = verification(carried, dedup, share_rows);
      // The MILP takes seconds for many ranks, and decides the same in both ways.
      const bool again = carried.planner == std::string("milp") && dedup;
      words.insert(words.end(), {"--ranks", again ? "2,3" : "1,2,3,4,8"});
      const Outcome verified = run(words);
      EXPECT_EQ(verified.status, 0) << carried.name() << ", dedup " << dedup << ", rows shared "
                                    << share_rows << verified.err;
    }
  }
}

#ifdef RECMILL_LAUNCHER
// Each plan in both ways, one with two ranks and the other with four.
TEST_F(Plan, of_every_planner_gives_these_bits_in_processes_too) {
  for (size_t i = 0; i < std::size(kCarried); ++i) {
    const Carried& carried = kCarried[i];
    for (const int ranks : {2, 4}) {
      // Of four ranks the MILP has too many choices to find the best of them soon.
      if (ranks == 4 && carried.planner == std::string("milp")) continue;
      launcher_ = {RECMILL_LAUNCHER, "-n", std::to_string(ranks)};
      const auto& [dedup, share_rows] = kProcessWays[(i + static_cast<size_t>(ranks) / 2) % 2];
      const Outcome verified = run(verification(carried, dedup, share_rows));
      EXPECT_EQ(verified.status, 0) << carried.name() << ", dedup " << dedup << ", rows shared "
                                    << share_rows << verified.err;
    }
  }
}
#endif

TEST_F(Plan, rates_every_planner_and_draws_it) {
  const Outcome rated = run(plan("4", {"--json", "--html", "plan.html"}));
  ASSERT_EQ(rated.status, 0) << rated.err;
  EXPECT_EQ(std::ranges::count(rated.out, '\n'), 9);
  const Json table_wise = Json::parse(rated.out.substr(0, rated.out.find('\n')));
  EXPECT_EQ(table_wise["planner"], "table_wise");
  EXPECT_EQ(table_wise["devices"].size(), 4u);
  EXPECT_GT(table_wise["memory_mib"]["largest"].get<double>(), 0.0);
  const std::string page = *read_text(posix_files(), path("plan.html"));
  for (const char* part : {"torchrec_like", "oper", "<svg", "lookups"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  expect_refused(plan("4", {"--html", "plan.html"}), "plan.html");
}

TEST_F(Plan, of_another_run_or_badly_edited_is_refused) {
  ASSERT_EQ(run(plan("2", {"--planner", "row_wise", "--out", "plan.json"})).status, 0);
  const std::vector<std::string> train{"train",
                                       "placed.toml",
                                       "--quiet",
                                       "--set",
                                       "train.ranks=2",
                                       "--set",
                                       "placement.plan=plan.json"};
  const auto with = [&](const std::string& set) {
    std::vector<std::string> arguments = train;
    arguments.insert(arguments.end(), {"--set", set});
    return arguments;
  };
  expect_refused(with("train.ranks=4"), "the plan is for 2 devices; there are 4");
  std::string other = bags("[embedding]\nstore = 'placed'\n");
  other.replace(other.find("rows = 300"), 10, "rows = 301");
  write("other.toml", other);
  expect_refused({"train", "other.toml", "--quiet", "--set", "train.ranks=2", "--set",
                  "placement.plan=plan.json"},
                 "the plan is for 300 rows of");
  expect_refused(with("placement.device_memory_mib=1"),
                 "placement.plan: the plan does not fit: device 0 is short of");
  const std::string text = *read_text(posix_files(), path("plan.json"));
  const size_t at = text.find("25000");
  ASSERT_NE(at, std::string::npos);
  write("plan.json", text.substr(0, at) + "24000" + text.substr(at + 5));
  expect_refused(train, "row 24000: no range has it");
  expect_refused(plan("2", {"--judge", "plan.json"}), "row 24000: no range has it");
  write("plan.json", text.substr(0, at));
  expect_refused(train, "plan.json: is not valid JSON");
}

TEST_F(Plan, has_owners_pool_where_sums_may_be_reordered) {
  const std::vector<std::string> reorder{"--set", "train.deterministic=false", "--set",
                                         "placement.planner=table_wise"};
  std::vector<std::string> arguments = plan("2", {"--explain", "--out", "plan.json"});
  arguments.insert(arguments.end(), reorder.begin(), reorder.end());
  const Outcome explained = run(arguments);
  ASSERT_EQ(explained.status, 0) << explained.err;
  EXPECT_NE(explained.out.find("owners pool the bags of"), std::string::npos) << explained.out;
  EXPECT_NE(explained.out.find("whole on device 0, owners pool"), std::string::npos);
  for (const char* name : {"a", "b"}) {
    arguments = {"train",
                 "placed.toml",
                 "--quiet",
                 "--set",
                 "train.ranks=2",
                 "--set",
                 std::string("name=") + name};
    arguments.insert(arguments.end(), reorder.begin(), reorder.end());
    const Outcome trained = run(arguments);
    ASSERT_EQ(trained.status, 0) << trained.err;
    EXPECT_NE(trained.err.find("train.deterministic = false: owners pool the bags of"),
              std::string::npos)
        << trained.err;
  }
  const Outcome same = run({"verify", "--checkpoints", "runs/a", "runs/b"});
  EXPECT_EQ(same.status, 0) << same.err;
  expect_refused({"train", "placed.toml", "--quiet", "--set", "train.ranks=2", "--set",
                  "placement.plan=plan.json"},
                 "its owners pool, which adds rows in another order");
}

TEST_F(Plan, of_tables_of_few_rows_is_printed_where_training_takes_it_and_nowhere_else) {
  write("placed.toml",
        bags_config("rows = 10\ndims = [4, 4, 4]\n",
                    "mean = 5\ndeviation = 2\nlongest = 9\ncoverage = 0.8\nrows = 7\n",
                    "slices = 8\niterations = 1\n[placement]\ncount_samples = 500\n"
                    "access_threshold = 0.2\nmemory_threshold = 0.2\n"
                    "[embedding]\nstore = 'placed'\n"));
  for (const char* planner : {"table_wise", "column_wise", "oper", "milp"}) {
    const std::string of = std::string("placement.planner=") + planner;
    const Outcome made =
        run(plan("3", {"--set", of, "--out", "plan.json", "--overwrite", "--planner", planner}));
    EXPECT_EQ(made.status, 0) << planner << ": " << made.err;
    for (const std::string& by : {of, std::string("placement.plan=plan.json")}) {
      const Outcome trained = run({"train", "placed.toml", "--quiet", "--overwrite", "--set",
                                   "train.ranks=3", "--set", by});
      EXPECT_EQ(trained.status, 0) << planner << ": " << trained.err;
    }
  }
}

TEST_F(Plan, that_a_run_would_refuse_is_a_wrong_request) {
  // Whole tables, of which device 0 has the largest.
  const std::vector<std::string> small{"--set", "placement.device_memory_mib=1", "--set",
                                       "placement.planner=table_wise"};
  Outcome refused = run(plan("2", small));
  EXPECT_EQ(refused.status, 2) << refused.err;
  EXPECT_NE(refused.err.find("placement.planner: "), std::string::npos) << refused.err;
  refused = run(plan("2", {"--planner", "oper", "--set", "placement.device_memory_mib=1", "--set",
                           "placement.planner=row_wise"}));
  EXPECT_EQ(refused.status, 2) << refused.err;
  EXPECT_NE(refused.err.find("--planner oper: rows do not fit"), std::string::npos) << refused.err;
  const Outcome milp =
      run(plan("2", {"--set", "placement.planner=milp", "--set", "placement.access_threshold=0.3",
                     "--set", "placement.memory_threshold=0.3"}));
  EXPECT_NE(milp.out.find("\nmilp"), std::string::npos) << milp.out;
}

TEST_F(Plan, wrong_requests_are_named) {
  expect_refused(plan("2", {"--planner", "opera"}), "--planner opera: there are table_wise");
  expect_refused(plan("2", {"--set", "placement.counts=none.counts"}),
                 "placement.counts: there is no file " + path("none.counts"));
  write("hole.json", R"({"version": 1, "devices": [{"name": "a", "memory_bytes": 1000000},
  {"name": "b", "memory_bytes": 1000000}], "message_seconds": [[0, 0], [0, 0]],
  "byte_seconds": [[0, 1e-9], [null, 0]]})");
  expect_refused(plan("2", {"--set", "placement.cluster=hole.json"}),
                 "the link of device 1 from device 0 is missing");
  expect_refused(plan("2", {"--set", "placement.device_memory_mib=1", "--set",
                            "placement.planner=oper", "--json", "--out", "plan.json"}),
                 "rows do not fit");
  expect_refused({"train", "placed.toml", "--quiet", "--set", "placement.device_memory_mib=1"},
                 "placement.planner: the plan does not fit: device 0 is short of");
  using Words = std::vector<std::string>;
  for (const auto& [set, why] :
       {std::pair{"extra_memory=-1", "extra_memory: must be at least 0 and at most 1024, is -1"},
        {"access_threshold=0", "access_threshold: must be above 0 and at most 1, is 0"},
        {"memory_threshold=2", "memory_threshold: must be above 0 and at most 1, is 2"},
        {"balance=nan", "balance: must be a finite number above 0 and at most 1, is nan"},
        {"replan_gain=0", "replan_gain: must be above 0, is 0"},
        {"replan_every=-1", "replan_every: must be at least 0, is -1"}}) {
    const std::string key = "placement.";
    const Words train = {"train", "placed.toml", "--quiet", "--set", key + set};
    for (const Words& words : {plan("2", {"--set", key + set}), train})
      expect_refused(words, key + why);
  }
}

TEST_F(Plan, counts_of_other_tables_are_refused) {
  ASSERT_EQ(run({"stats", "placed.toml", "--counts", "rows.counts", "--quiet"}).status, 0);
  const Outcome planned =
      run(plan("2", {"--planner", "oper", "--set", "placement.counts=rows.counts"}));
  EXPECT_EQ(planned.status, 0) << planned.err;
  std::string other = bags("");
  other.replace(other.find("rows = 300"), 10, "rows = 301");
  write("placed.toml", other);
  expect_refused(plan("2", {"--planner", "oper", "--set", "placement.counts=rows.counts"}),
                 "placement.counts");
}

TEST_F(Plan, goes_by_measured_links) {
  const Outcome measured = run({"plan", "measure", "--ranks", "3", "--out", "cluster.json"});
  ASSERT_EQ(measured.status, 0) << measured.err;
  EXPECT_NE(measured.out.find("Mbit/s"), std::string::npos);
  const Outcome planned =
      run(plan("3", {"--planner", "oper", "--set", "placement.cluster=cluster.json"}));
  EXPECT_EQ(planned.status, 0) << planned.err;
  expect_refused(plan("2", {"--set", "placement.cluster=cluster.json"}),
                 "has 3 devices; there are 2 ranks");
}

}  // namespace
}  // namespace recmill::cli
