// SPDX-License-Identifier: Apache-2.0
// `recmill tune` and what a run makes of its record.
#include <gtest/gtest.h>

#include "cli/testing/program.h"

namespace recmill::cli {
namespace {

/// A small run with bags of several lengths and dimensions.
std::string bags(const std::string& kernels) {
  return R"([data]
format = "synthetic"
[data.synthetic]
rows = 6000
eval_rows = 1000
shape = "columns"
planted.crosses = 0
[[workload.lines]]
kind = "fixed"
count = 3
mean = 1
rows = 100
dims = [4, 8, 16]
dim_counts = [1, 1, 1]
[[workload.lines]]
kind = "normal"
count = 3
mean = 20
deviation = 9
longest = 50
coverage = 0.6
rows = 400
dims = [8, 32, 5]
dim_counts = [1, 1, 1]
[model]
kind = "mlp"
top = [8, 1]
[tune]
batch_sizes = [64, 1, 200]
[train]
batch_size = 256
shards = 4
threads = 2
[kernels]
)" + kernels;
}

class Tune : public Program {
 protected:
  void tune(const std::string& configuration) {
    const Json result = run_json({"tune", configuration, "--rounds", "2", "--quiet"});
    ASSERT_TRUE(result.contains("embedding_pool"));
    EXPECT_EQ(result["embedding_pool"]["features"], 6);
    EXPECT_GT(result["embedding_pool"]["measured_ms"].get<double>(), 0.0);
    ASSERT_TRUE(result.contains("row_update"));
    EXPECT_EQ(result["row_update"]["tables"], 6);
    EXPECT_GT(result["row_update"]["measured_ms"].get<double>(), 0.0);
  }
};

TEST_F(Tune, chooses_schedules_that_training_verifies_and_ends_with_in_the_same_rows) {
  write("plain.toml", bags(""));
  write("tuned.toml", bags("mode = 'tuned'\nrecord = 'tuned/plain.json'\n"));
  tune("plain.toml");
  EXPECT_FALSE(posix_files().exists(path("tuned/plain.json.partial")));
  EXPECT_EQ(run({"verify", "tuned.toml", "--iterations", "3", "--ranks", "1,2"}).status, 0);
  EXPECT_EQ(run({"train", "plain.toml", "--quiet"}).status, 0);
  EXPECT_EQ(run({"train", "tuned.toml", "--quiet"}).status, 0);
  const Outcome same = run({"verify", "--checkpoints", "runs/plain", "runs/tuned"});
  EXPECT_EQ(same.status, 0) << same.err;
}

TEST_F(Tune, replaces_no_record_unless_told_to) {
  write("plain.toml", bags(""));
  ASSERT_TRUE(posix_files().make_folder(path("tuned")).ok());
  write("tuned/plain.json", "mine");
  const Outcome refused = run({"tune", "plain.toml", "--quiet"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("tuned/plain.json"), std::string::npos) << refused.err;
  EXPECT_EQ(*read_text(posix_files(), path("tuned/plain.json")), "mine");
  EXPECT_EQ(run({"tune", "plain.toml", "--quiet", "--rounds", "1", "--overwrite"}).status, 0);
  EXPECT_EQ(run({"tune", "--replay", "tuned/plain.json"}).status, 0);
}

TEST_F(Tune, replays_its_times_to_the_same_bytes) {
  write("plain.toml", bags(""));
  tune("plain.toml");
  const Outcome again = run({"tune", "--replay", "tuned/plain.json"});
  EXPECT_EQ(again.status, 0) << again.err;
  std::string text = *read_text(posix_files(), path("tuned/plain.json"));
  text[text.size() / 2] ^= 1;
  write("tuned/plain.json", text);
  const Outcome damaged = run({"tune", "--replay", "tuned/plain.json"});
  EXPECT_EQ(damaged.status, 1);
  EXPECT_EQ(damaged.err,
            "recmill: tuned/plain.json: damaged, its checksum does not hold; tune again\n");
}

TEST_F(Tune, without_a_good_record_a_run_ends_in_one_line_or_with_the_defaults) {
  write("other.toml", bags(""));
  tune("other.toml");
  const std::string wanted = bags("mode = 'tuned'\n");
  write("a.toml", wanted);
  const Outcome missing = run({"train", "a.toml", "--quiet"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_EQ(missing.err,
            "recmill: tuned/a.json: no such tuning record; run `recmill tune` first\n");
  // One for other tables.
  std::string text = wanted + "record = 'tuned/other.json'\n";
  text.replace(text.find("dims = [8, 32, 5]"), 17, "dims = [8, 32, 6]");
  write("a.toml", text);
  const Outcome foreign = run({"train", "a.toml", "--quiet"});
  EXPECT_EQ(foreign.status, 1);
  EXPECT_EQ(foreign.err.find("recmill: tuned/other.json: it was tuned for tables and features '"),
            0u)
      << foreign.err;
  EXPECT_EQ(std::count(foreign.err.begin(), foreign.err.end(), '\n'), 1);
  write("a.toml", text + "on_missing_schedule = 'default'\n");
  const Outcome allowed = run({"train", "a.toml", "--quiet"});
  EXPECT_EQ(allowed.status, 0) << allowed.err;
  EXPECT_NE(allowed.err.find("default schedules run instead"), std::string::npos) << allowed.err;
}

// One line's bags grow from 20 lookups to 45.
std::string drifted_bags(const std::string& kernels) {
  std::string text = bags(kernels);
  text.replace(text.find("mean = 20"), 9, "mean = 45");
  return text;
}

TEST_F(Tune, training_on_other_bags_than_were_tuned_for_warns_once) {
  const std::string tuned = "mode = 'tuned'\nrecord = 'tuned/plain.json'\n";
  write("plain.toml", bags(""));
  tune("plain.toml");
  write("same.toml", bags(tuned));
  const Outcome same = run({"train", "same.toml", "--quiet"});
  EXPECT_EQ(same.status, 0);
  EXPECT_EQ(same.err.find("drifted"), std::string::npos) << same.err;
  write("other.toml", drifted_bags(tuned));
  const Outcome other = run({"train", "other.toml", "--quiet"});
  EXPECT_EQ(other.status, 0);
  const size_t at = other.err.find("warning: tuned/plain.json: feature 'f");
  ASSERT_NE(at, std::string::npos) << other.err;
  EXPECT_NE(other.err.find("and 2 more features"), std::string::npos) << other.err;
  EXPECT_EQ(other.err.find("warning: ", at + 1), std::string::npos) << other.err;
}

TEST_F(Tune, again_only_what_has_drifted) {
  const std::string record = "record = 'tuned/plain.json'\n";
  write("plain.toml", bags(""));
  tune("plain.toml");
  const std::string before = *read_text(posix_files(), path("tuned/plain.json"));
  const Outcome nothing = run({"tune", "plain.toml", "--if-drifted", "--rounds", "1", "--quiet"});
  EXPECT_EQ(nothing.status, 0) << nothing.err;
  EXPECT_NE(nothing.err.find("row_update: nothing has drifted"), std::string::npos) << nothing.err;
  EXPECT_EQ(*read_text(posix_files(), path("tuned/plain.json")), before);
  write("other.toml", drifted_bags(record));
  const Outcome moved = run({"tune", "other.toml", "--if-drifted", "--rounds", "1", "--quiet"});
  EXPECT_EQ(moved.status, 0) << moved.err;
  for (const char* what : {"embedding_pool: feature 'f", "row_update: table 'f"})
    EXPECT_NE(moved.err.find(what), std::string::npos) << moved.err;
  EXPECT_EQ(run({"tune", "--replay", "tuned/plain.json"}).status, 0);
  // What did not move has the times that it had.
  const auto times_of = [](const std::string& text) {
    return Json::parse(text.substr(text.find('\n') + 1))["families"][0]["times"];
  };
  const Json old = times_of(before),
             now = times_of(*read_text(posix_files(), path("tuned/plain.json")));
  size_t kept = 0;
  for (size_t c = 0; c < old["classes"].size(); ++c) {
    if (old["classes"][c]["mean"] != 1.0) continue;
    EXPECT_EQ(now["classes"][kept], old["classes"][c]);
    EXPECT_EQ(now["values"][0]["classes"][kept], old["values"][0]["classes"][c]);
    ++kept;
  }
  EXPECT_GT(kept, 0u);
  const Outcome again = run({"tune", "other.toml", "--if-drifted", "--quiet"});
  EXPECT_NE(again.err.find("embedding_pool: nothing has drifted"), std::string::npos) << again.err;
  write("other.toml", drifted_bags("record = 'tuned/none.json'\n"));
  EXPECT_EQ(run({"tune", "other.toml", "--if-drifted"}).err,
            "recmill: tuned/none.json: no such tuning record; run `recmill tune` first\n");
}

TEST_F(Tune, refuses_what_it_cannot_do_in_one_line) {
  write("plain.toml", bags(""));
  const std::pair<std::vector<std::string>, std::string> wrong[] = {
      {{"tune"}, "recmill: tune: name a configuration or a workload, or --replay RECORD\n"},
      {{"tune", "plain.toml", "--budget", "soon"},
       "recmill: --budget soon: must be a time, as 90s, 5m or 1h\n"},
      {{"tune", "plain.toml", "--rounds", "0"}, "recmill: --rounds: must be 1 or more\n"}};
  for (const auto& [arguments, message] : wrong) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.err, message);
  }
  EXPECT_FALSE(posix_files().exists(path("tuned")));
}

}  // namespace
}  // namespace recmill::cli
