// SPDX-License-Identifier: Apache-2.0
// What becomes of a run whose data drifts while it trains.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <sstream>

#include "base/json/json.h"
#include "cli/testing/program.h"

namespace recmill::cli {
namespace {

constexpr int64_t kIds = 20'000, kColumns = 4, kBatch = 256, kIterations = 400;

/// Ids by Zipf's law; from row `drift` on those half a table away are the popular ones.
std::string rows_that_drift(int64_t drift) {
  std::vector<double> weights;
  for (int64_t k = 0; k < kIds; ++k) weights.push_back(std::pow(static_cast<double>(k + 1), -1.1));
  std::discrete_distribution<int64_t> law(weights.begin(), weights.end());
  std::mt19937_64 random(1);
  std::string rows = "label,a,b,c,d\n";
  for (int64_t row = 0; row < kBatch * kIterations; ++row) {
    rows += random() % 4 == 0 ? "1" : "0";
    for (int64_t c = 0; c < kColumns; ++c)
      rows += "," + std::to_string((law(random) * 7919 + (row < drift ? 0 : kIds / 2)) % kIds);
    rows += "\n";
  }
  return rows;
}

// Layers that take long beside what is planned.
std::string config(const std::string& store) {
  std::string text = R"([data]
format = "csv"
train = ["rows.csv"]
cache = ""
)";
  for (const char* name : {"label", "a", "b", "c", "d"})
    text += std::string("[[data.columns]]\nname = \"") + name + "\"\nrole = \"" +
            (name[1] == 'a' ? "label" : "id") + "\"\nid_text = \"integer\"\n";
  return text + R"([model]
kind = "mlp"
top = [128, 1]
[train]
batch_size = 256
slices = 8
threads = 2
epochs = 1
[placement]
planner = "oper"
count_samples = 10000
dedup_fetch = false
replan_every = 30
[embedding]
rows = 20000
dim = 16
mapping = "direct"
optimizer.kind = "rowwise_adagrad"
)" + store;
}

class Replan : public Program {
 protected:
  void SetUp() override {
    write("local.toml", config(""));
    write("placed.toml", config("store = \"placed\"\n"));
  }
  /// Lines of kind "placement" of a run on `ranks` ranks.
  std::vector<Json> lines_of_run(const std::string& ranks) {
    const Outcome trained =
        run({"train", "placed.toml", "--quiet", "--overwrite", "--set", "train.ranks=" + ranks});
    EXPECT_EQ(trained.status, 0) << trained.err;
    std::vector<Json> lines;
    std::istringstream text(*read_text(posix_files(), path("runs/placed/metrics.jsonl")));
    for (std::string line; std::getline(text, line);) {
      Json json = Json::parse(line);
      if (json["kind"] == "placement") lines.push_back(std::move(json));
    }
    return lines;
  }
};

// When plans come depends on how fast the machine makes them: a busy one may be done with training
// before. That one comes is tested where training waits for it (train/replanner_test).
TEST_F(Replan, rows_end_as_in_the_local_store_when_the_data_drifts) {
  write("rows.csv", rows_that_drift(kBatch * kIterations / 3));
  ASSERT_EQ(run({"train", "local.toml", "--quiet"}).status, 0);
  for (const char* ranks : {"2", "4"}) {
    int64_t plans = 0, moves = 0;
    for (const Json& line : lines_of_run(ranks)) {
      plans += line.contains("from_iteration") ? 1 : 0;
      moves += line.contains("moved_rows") ? 1 : 0;
    }
    EXPECT_LE(plans, 1) << ranks;
    EXPECT_LE(moves, plans) << ranks;
    const Outcome same = run({"verify", "--checkpoints", "runs/local", "runs/placed"});
    EXPECT_EQ(same.status, 0) << same.err;
  }
}

TEST_F(Replan, no_plan_comes_while_nothing_drifts) {
  write("rows.csv", rows_that_drift(kBatch * kIterations));
  const auto lines = lines_of_run("2");
  EXPECT_GT(lines.size(), 1u);
  for (const Json& line : lines) EXPECT_FALSE(line.contains("planned_ms")) << line;
}

TEST_F(Replan, refuses_a_planner_that_does_not_go_by_lookups) {
  write("rows.csv", "label,a,b,c,d\n1,2,3,4,5\n");
  const Outcome refused = run({"train", "placed.toml", "--set", "placement.planner=row_wise"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("placement.replan_every: the planner row_wise"), std::string::npos)
      << refused.err;
}

}  // namespace
}  // namespace recmill::cli
