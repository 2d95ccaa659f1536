// SPDX-License-Identifier: Apache-2.0
// recmill stats --counts and --merge, as a user meets them.
#include <gmock/gmock.h>

#include "base/json/json.h"
#include "cli/testing/program.h"

namespace recmill::cli {
namespace {

using testing::HasSubstr;

class StatsCounts : public Program {
 protected:
  void SetUp() override { write("a.toml", config(kDlrm, "", "")); }

  std::string bytes(const std::string& name) { return *read_text(posix_files(), path(name)); }

  void expect_refused(const std::vector<std::string>& arguments, const std::string& message) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_FALSE(posix_files().exists(path("x.counts")));
  }
};

TEST_F(StatsCounts, say_of_each_table_how_even_its_lookups_are) {
  const Json stats = run_json({"stats", "a.toml", "--counts", "a.counts", "--quiet"});
  EXPECT_EQ(stats["samples"], 6000);
  ASSERT_EQ(stats["tables"].size(), 26u);
  for (const Json& table : stats["tables"]) {
    EXPECT_EQ(table["rows"], 500);
    EXPECT_EQ(table["lookups"], 6000);
    EXPECT_LE(table["touched"], 500);
    EXPECT_GT(table["top_0_1_percent"], 1.0 / 500) << "the hottest of 500 rows";
    EXPECT_GE(table["top_1_percent"], table["top_0_1_percent"]);
    EXPECT_GE(table["top_5_percent"], table["top_1_percent"]);
    EXPECT_LE(table["top_5_percent"], 1.0);
  }
  const Outcome text = run({"stats", "a.toml", "--counts", "a.counts", "--quiet", "--overwrite"});
  EXPECT_EQ(text.status, 0);
  EXPECT_EQ(std::count(text.out.begin(), text.out.end(), '\n'), 27);
  EXPECT_EQ(text.err, "");
}

TEST_F(StatsCounts, are_the_same_bytes_for_any_number_of_ranks_and_threads) {
  ASSERT_EQ(run({"stats", "a.toml", "--counts", "a.counts", "--quiet"}).status, 0);
  for (const char* ranks : {"train.ranks=2", "train.ranks=4"}) {
    const Outcome outcome = run({"stats", "a.toml", "--counts", "b.counts", "--quiet",
                                 "--overwrite", "--set", ranks, "--set", "train.threads=3"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(bytes("a.counts"), bytes("b.counts")) << ranks;
  }
}

TEST_F(StatsCounts, of_different_data_merge_to_those_of_both) {
  ASSERT_EQ(run({"stats", "a.toml", "--counts", "a.counts", "--quiet"}).status, 0);
  const Json b = run_json({"stats", "a.toml", "--counts", "b.counts", "--quiet", "--rows", "100",
                           "--set", "data.synthetic.seed=9"});
  EXPECT_EQ(b["samples"], 100);
  const Json merged =
      run_json({"stats", "--merge", "a.counts", "b.counts", "--counts", "m.counts", "--quiet"});
  EXPECT_EQ(merged["samples"], 6100);
  EXPECT_EQ(merged["model"], b["model"]);
  for (const Json& table : merged["tables"]) {
    EXPECT_EQ(table["lookups"], 6100);
    EXPECT_EQ(table["undercount"], 0);
  }
}

TEST_F(StatsCounts, of_wrong_requests_are_refused_in_one_line) {
  ASSERT_EQ(run({"stats", "a.toml", "--counts", "a.counts", "--quiet"}).status, 0);
  ASSERT_EQ(
      run({"stats", "a.toml", "--counts", "b.counts", "--quiet", "--set", "embedding.rows=501"})
          .status,
      0);
  expect_refused({"stats"}, "name a configuration or a workload, or --merge FILES");
  expect_refused({"stats", "--merge", "a.counts", "b.counts", "--counts", "x.counts"},
                 "b.counts: counts rows of another model or data set");
  expect_refused({"stats", "--merge", "a.counts", "c.counts", "--counts", "x.counts"},
                 "--merge c.counts: no such file");
  expect_refused({"stats", "--merge", "a.counts", "a.toml", "--counts", "x.counts"},
                 "a.toml: is not a file of access counts");
  expect_refused({"stats", "--merge", "a.counts"}, "--merge: name the file");
  expect_refused({"stats", "a.toml", "--merge", "a.counts", "--counts", "x.counts"},
                 "--merge: takes files alone");
  expect_refused({"stats", "a.toml", "--counts", "nowhere/x.counts"},
                 "--counts nowhere/x.counts: there is no folder " + path("nowhere"));
  expect_refused({"stats", "a.toml", "--counts", "x.counts", "--rows", "-1"}, "--rows");
  expect_refused({"stats", "a.toml", "--counts", "a.counts"},
                 "a.counts: is there already; --overwrite replaces it");
  std::string damaged = bytes("a.counts");
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  write("d.counts", damaged);
  const Outcome outcome = run({"stats", "--merge", "d.counts", "--counts", "x.counts"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("d.counts: table 'C26': its checksum is wrong"));
}

}  // namespace
}  // namespace recmill::cli
