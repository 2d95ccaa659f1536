// SPDX-License-Identifier: Apache-2.0
// Runs whose hot rows are in the memory of an emulated GPU, and the others in the host's: on 1,000
// inputs whose counts are known (hotset_verbs_test.cc).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "cli/testing/program.h"
#include "cli/testing/three_columns.h"
#include "kernels/codegen/testing/kernel_folder.h"

namespace recmill::cli {
namespace {

constexpr const char* kTop = "name = 'hot'\ndevice = 'emulated'\n";
constexpr const char* kTrain = R"(slices = 4
evaluate_every = 4
log_every = 1
[gpu]
rows = 'hot'
[hotset]
bytes = 3648
)";

class HotRowsOnGpu : public Program {
 protected:
  void SetUp() override {
    write("t.csv", three_columns(1000));
    write("e.csv", three_columns(50));
    write("hot.toml", three_columns_config(kTop, "", kTrain));
  }
  /// `verb` of the configuration, with these keys.
  Outcome run_with(const std::string& verb, std::vector<std::string> sets,
                   const std::vector<std::string>& more = {}, const std::string& what = "") {
    sets.push_back("kernels.cache=" + kernels::codegen::kernel_folder());
    std::vector<std::string> words{verb};
    if (!what.empty()) words.push_back(what);
    words.push_back("hot.toml");
    words.insert(words.end(), more.begin(), more.end());
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    return run(words);
  }
  Json summary_of(const std::vector<std::string>& sets) {
    const Outcome outcome = run_with("train", sets, {"--json", "--overwrite"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    said_ = outcome.err;
    return Json::parse(outcome.out, nullptr, false);
  }
  /// The lines of training, of the last run of this name.
  std::vector<Json> lines_of(const std::string& name) {
    std::vector<Json> lines;
    std::istringstream text(*read_text(posix_files(), path("runs/" + name + "/metrics.jsonl")));
    for (std::string line; std::getline(text, line);)
      if (const Json json = Json::parse(line); json["kind"] == "train") lines.push_back(json);
    return lines;
  }

  std::string said_;
};

TEST_F(HotRowsOnGpu, TrainToTheBitsOfRowsInOneMemoryAndCountWhatIsFar) {
  const Json hot = summary_of({});
  EXPECT_EQ(hot["far_lookups"], 349) << "as recmill plan hotset says";
  EXPECT_THAT(said_, ::testing::HasSubstr("gpu.rows = \"hot\": 57 hot rows (0.0 MiB) are in the "
                                          "GPU's memory, the 39950 others of 3 tables (2.4 MiB) in "
                                          "the host's\n"));
  int64_t lookups = 0, rows = 0;
  for (const Json& line : lines_of("hot")) {
    lookups += line["far_lookups"].get<int64_t>();
    rows += line["far_rows"].get<int64_t>();
  }
  EXPECT_EQ(lookups, 349);
  EXPECT_EQ(rows, hot["far_rows"]);
  EXPECT_GT(rows, 0);
  const Json device = summary_of({"name=device", "gpu.rows=device"});
  EXPECT_FALSE(device.contains("far_lookups"));
  const Outcome same =
      run({"verify", "--checkpoints", newest_checkpoint("hot"), newest_checkpoint("device")});
  EXPECT_EQ(same.status, 0) << same.out << same.err;
  EXPECT_EQ(summary_of({"name=host", "gpu.rows=host"})["far_lookups"], 3000);
}

TEST_F(HotRowsOnGpu, AreEachRanksOwnOfItsTables) {
  const Json two = summary_of({"name=two", "train.ranks=2"});
  EXPECT_THAT(said_, ::testing::HasSubstr("rank 1: gpu.rows = \"hot\": "));
  const Json one = summary_of({});
  // One cutoff for all: where each rank has the bytes, more rows are hot.
  EXPECT_LE(two["far_lookups"], one["far_lookups"]);
  EXPECT_EQ(lines_of("two").size(), 10u);
  EXPECT_EQ(lines_of("two").back().contains("far_rows"), true);
  const Outcome same =
      run({"verify", "--checkpoints", newest_checkpoint("hot"), newest_checkpoint("two")});
  EXPECT_EQ(same.status, 0) << same.out << same.err;
}

TEST_F(HotRowsOnGpu, AreBitwiseThePlainRunsWhateverIsHot) {
  for (const std::vector<std::string>& sets : std::vector<std::vector<std::string>>{
           {"embedding.optimizer.kind=adam", "embedding.precision=bfloat16", "hotset.bytes=8000"},
           {"embedding.optimizer.kind=rowwise_adagrad", "hotset.pick=top", "gpu.preprocess=true"},
           {"hotset.threshold=0.02", "hotset.bytes=0"}}) {
    const Outcome outcome = run_with("verify", sets, {"--iterations", "6"});
    EXPECT_EQ(outcome.status, 0) << sets[0] << outcome.err;
    EXPECT_NE(outcome.err.find("bitwise the same"), std::string::npos) << outcome.err;
  }
}

TEST_F(HotRowsOnGpu, AreInTheLedgerOfADryRun) {
  const auto ledger = [&](const std::vector<std::string>& sets) {
    const Outcome outcome = run_with("train", sets, {"--dry-run", "--json"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return Json::parse(outcome.out, nullptr, false);
  };
  EXPECT_EQ(ledger({})["gpu 0: hot rows"], 3648);
  const Json adam = ledger({"embedding.optimizer.kind=adam", "hotset.bytes=11000"});
  EXPECT_LE(adam["gpu 0: hot rows"], 11000);
  EXPECT_GT(adam["gpu 0: hot rows"], 10000);
}

TEST_F(HotRowsOnGpu, AreRefusedInOneLineWhereTheyCannotBe) {
  const auto refusal = [&](const std::vector<std::string>& sets) {
    const Outcome outcome = run_with("train", sets, {"--overwrite"});
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(refusal({"hotset.bytes=447"}), ::testing::HasSubstr("448"));
  EXPECT_THAT(refusal({"embedding.store=cached"}),
              ::testing::HasSubstr("gpu.rows: \"hot\" is not supported with embedding.store = "
                                   "\"cached\""));
  EXPECT_THAT(refusal({"gpu.memory_gib=0.00001"}), ::testing::HasSubstr("gpu.rows = \"hot\": "));
}

TEST_F(HotRowsOnGpu, AreThoseThatThePlanSays) {
  for (const std::string set : {"hotset.bytes=3648", "hotset.bytes=0"}) {
    const Outcome planned = run_with(
        "plan", {set}, {"--out", "set.json", "--overwrite", "--quiet", "--json"}, "hotset");
    ASSERT_EQ(planned.status, 0) << planned.err;
    const Json by_counts = summary_of({"name=counts", set});
    const Json by_plan = summary_of({"name=plan", set, "hotset.plan=set.json"});
    EXPECT_EQ(by_plan["far_lookups"], by_counts["far_lookups"]) << set;
  }
}

TEST_F(HotRowsOnGpu, AreLookedUpByTunedSchedules) {
  const Outcome tuned = run_with("tune", {}, {"--overwrite"});
  ASSERT_EQ(tuned.status, 0) << tuned.err;
  const Outcome outcome = run_with("verify", {"kernels.mode=tuned"}, {"--iterations", "3"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(HotRowsOnGpu, ScoringNeedsNoCounts) {
  summary_of({});
  const Outcome fitted = run_with("eval", {}, {"--json"});
  EXPECT_EQ(fitted.status, 0) << fitted.err;
  ASSERT_EQ(run_with("plan", {}, {"--out", "set.json", "--quiet"}, "hotset").status, 0);
  const Outcome hot = run_with("eval", {"hotset.plan=set.json"}, {"--json"});
  EXPECT_EQ(hot.status, 0) << hot.err;
  EXPECT_EQ(hot.out, fitted.out);
  EXPECT_THAT(hot.err, ::testing::HasSubstr("57 hot rows")) << hot.err;
}

}  // namespace
}  // namespace recmill::cli
