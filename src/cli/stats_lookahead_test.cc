// SPDX-License-Identifier: Apache-2.0
// `recmill stats --lookahead`.
#include <gmock/gmock.h>

#include "base/json/json.h"
#include "cli/testing/program.h"
#include "lookahead/testing/streams.h"

namespace recmill::cli {
namespace {

using testing::HasSubstr;

/// Features of a CSV file with one id in each cell, which is a row of the column's own table.
std::string direct_ids(const std::vector<std::string>& columns, const std::string& rows,
                       int64_t batch_size, int64_t slices) {
  std::string text =
      "[data]\nformat = 'csv'\ntrain = ['ids.csv']\n[[data.columns]]\nname = 'y'\n"
      "role = 'label'\n";
  for (const std::string& column : columns)
    text += "[[data.columns]]\nname = '" + column + "'\nrole = 'id'\nid_text = 'integer'\n";
  return text + "[embedding]\nmapping = 'direct'\ndim = 4\nrows = " + rows +
         "\n[model]\nkind = 'mlp'\ntop = [4, 1]\n[train]\nbatch_size = " +
         std::to_string(batch_size) + "\nslices = " + std::to_string(slices) + "\n";
}

constexpr int64_t kSlotBytes = 4 * 4 + 4 + 17;  // 4 floats, their state, and what names a row

class StatsLookahead : public Program {
 protected:
  std::vector<Json> lines_of(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"stats", "a.toml", "--lookahead", "--json", "--quiet"});
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::vector<Json> lines;
    std::istringstream text(outcome.out);
    for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
    return lines;
  }
  void write_skewed() {
    std::string text = "y,a,b,c\n";
    using lookahead::testing::skewed_row;
    for (int64_t i = 0; i < lookahead::testing::kSkewedSteps * lookahead::testing::kSkewedBatch;
         ++i)
      text += std::to_string(i % 2) + "," + std::to_string(skewed_row(0, i)) + "," +
              std::to_string(skewed_row(1, i) - 5000) + "," +
              std::to_string(skewed_row(2, i) - 5300) + "\n";
    write("ids.csv", text);
    write("a.toml", direct_ids({"a", "b", "c"}, "[5000, 300, 7]", 256, 4));
  }
};

TEST_F(StatsLookahead, traces_figure_6_of_bagpipe) {
  write("ids.csv", "y,a\n1,3\n0,9\n1,3\n0,4\n1,3\n0,6\n1,6\n0,1\n");
  write("a.toml", direct_ids({"a"}, "10", 2, 1));
  const auto lines = lines_of({"--trace", "--batches", "1", "--prefetch", "0"});
  ASSERT_EQ(lines.size(), 5u);
  const char* const expected[] = {
      R"({"iteration":0,"fetch":["a:3","a:9"],"last_use":{"a:3":1,"a:9":0},"evict":["a:9"]})",
      R"({"iteration":1,"fetch":["a:4"],"last_use":{"a:3":2,"a:4":1},"evict":["a:4"]})",
      R"({"iteration":2,"fetch":["a:6"],"last_use":{"a:3":2,"a:6":3},"evict":["a:3"]})",
      R"({"iteration":3,"fetch":["a:1"],"last_use":{"a:1":3,"a:6":3},"evict":["a:1","a:6"]})"};
  for (size_t step = 0; step < 4; ++step) EXPECT_EQ(lines[step].dump(), expected[step]);
  EXPECT_EQ(lines[4]["fetched"], 5);
}

TEST_F(StatsLookahead, counts_an_epoch_as_it_was_counted_otherwise) {
  write_skewed();
  const auto lines = lines_of({"--batches", "0,1,4,16,59", "--prefetch", "0"});
  const int64_t fetched[] = {21'371, 15'296, 10'210, 6'135, 4'375};
  ASSERT_EQ(lines.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(lines[i]["distinct"], 21'371);
    EXPECT_EQ(lines[i]["fetched"], fetched[i]);
    EXPECT_EQ(lines[i]["evicted"], fetched[i]);
    EXPECT_EQ(lines[i]["critical"], i == 0 ? 0 : 6'075);
    EXPECT_EQ(lines[i]["static_fetched"], 21'071);
  }
  const auto limited = lines_of({"--batches", "59", "--prefetch", "0", "--slots", "375,500,1000"});
  const int64_t of_slots[] = {14'199, 10'453, 6'588};
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(limited[i]["fetched"], of_slots[i]);
  EXPECT_EQ(limited[1]["lru_fetched"], 13'629);
}

TEST_F(StatsLookahead, counts_what_a_run_moves) {
  write_skewed();
  const std::string cache = "--set lookahead.cache=" + std::to_string(1202 * kSlotBytes);
  for (const auto& [batches, prefetch, sets] :
       {std::tuple{"4", "2", std::string("--set lookahead.batches=4 --set lookahead.prefetch=2")},
        std::tuple{"59", "4", "--set lookahead.batches=59 " + cache}}) {
    std::vector<std::string> train{"train",  "a.toml",      "--quiet", "--profile",
                                   "--json", "--overwrite", "--set",   "embedding.store='cached'"};
    std::istringstream words(sets);
    for (std::string word; words >> word;) train.push_back(word);
    const Outcome outcome = run(train);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const Json moved = Json::parse(outcome.out)["profile"][0]["moved_rows"];
    std::vector<std::string> stats{"--batches", batches, "--prefetch", prefetch};
    if (sets.ends_with(cache)) stats.insert(stats.end(), {"--slots", "1202"});
    const auto counted = lines_of(stats);
    EXPECT_EQ(moved, counted[0]["sent"]["forward"]);
    if (sets.ends_with(cache)) {
      EXPECT_EQ(moved["fetched"], 8'316);
    }
  }
}

/// Over all ranks, by every design.
TEST_F(StatsLookahead, are_the_rows_that_training_on_ranks_moves) {
  write_skewed();
  const auto counted = lines_of({"--batches", "16", "--prefetch", "2", "--ranks", "4"});
  for (const auto& [design, name] : EnumNames<CacheDesign>::names) {
    const Outcome outcome = run({"train", "a.toml", "--overwrite", "--quiet", "--json", "--profile",
                                 "--set", "train.ranks=4", "--set", "embedding.store='cached'",
                                 "--set", "lookahead.batches=16", "--set", "lookahead.prefetch=2",
                                 "--set", "lookahead.design='" + std::string(name) + "'"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    std::map<std::string, int64_t> moved;
    const Json summary = Json::parse(outcome.out);
    for (const Json& rank : summary["profile"])
      for (const auto& [kind, rows] : rank["moved_rows"].items())
        moved[kind] += rows.get<int64_t>();
    for (const auto& [kind, rows] : counted[0]["sent"][std::string(name)].items())
      EXPECT_EQ(moved[kind], rows.get<int64_t>()) << name << ", " << kind;
  }
}

TEST_F(StatsLookahead, prints_how_many_batches_are_fetched_ahead) {
  write_skewed();
  const Outcome outcome = run({"stats", "a.toml", "--lookahead", "--quiet", "--batches", "2,16"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\n        2        2      any "));
  EXPECT_THAT(outcome.out, HasSubstr("\n       16        4      any "));
}

TEST_F(StatsLookahead, is_told_by_training_where_there_are_fewer_batches) {
  write_skewed();
  for (const std::string batches : {"60", "61"}) {
    const Outcome outcome =
        run({"train", "a.toml", "--overwrite", "--set", "embedding.store='cached'", "--set",
             "lookahead.batches=" + batches});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const bool told = outcome.err.find(
                          "lookahead.batches: 61 is more than the 60 batches that "
                          "there are") != std::string::npos;
    EXPECT_EQ(told, batches == "61") << outcome.err;
  }
}

TEST_F(StatsLookahead, has_window_and_cache_in_the_memory_that_training_needs) {
  write_skewed();
  const auto ledger_of = [&](std::vector<std::string> sets) {
    std::vector<std::string> words{"train", "a.toml", "--dry-run", "--json"};
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return Json::parse(outcome.out);
  };
  const std::string cached = "embedding.store='cached'", looks = "rank 0: batches looked ahead",
                    known = "rank 0: what is known of their rows, at most",
                    rows = "rank 0: cached rows and optimizer state",
                    hand = "rank 0: batches in hand";
  const Json local = ledger_of({});
  for (const std::string& item : {looks, known, rows}) EXPECT_FALSE(local.contains(item)) << item;
  // A sample has a label and, in each of 3 features, a row and an offset.
  constexpr int64_t kBatch = 256 * (4 + 3 * 16);
  const Json by_default = ledger_of({cached});
  EXPECT_EQ(by_default[looks], 200 * kBatch);
  EXPECT_EQ(by_default[rows], 5307 * kSlotBytes);
  EXPECT_GT(by_default[known].get<int64_t>(), 5307 * 64);
  const Json given =
      ledger_of({cached, "lookahead.batches=7", "lookahead.prefetch=0", "lookahead.cache=40000"});
  EXPECT_EQ(given[looks], 7 * kBatch);
  EXPECT_EQ(given[rows], 40'000);
  EXPECT_GT(given[known].get<int64_t>(), 0);
  EXPECT_LT(given[known].get<int64_t>(), by_default[known].get<int64_t>());
  // Rows of P + 1 steps are on their way while batches that wait are prepared.
  EXPECT_EQ(given[hand], local[hand]);
  EXPECT_GT(by_default[hand].get<int64_t>(), local[hand].get<int64_t>());
}

TEST_F(StatsLookahead, writes_a_page) {
  write_skewed();
  const auto lines = lines_of({"--batches", "4,16", "--html", "a.html"});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(*read_text(posix_files(), path("a.html")),
              HasSubstr("16 batches ahead, 4 fetched ahead"));
}

TEST_F(StatsLookahead, counts_what_ranks_would_send) {
  write_skewed();
  const auto lines = lines_of({"--batches", "16", "--prefetch", "0", "--ranks", "4"});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["one_rank"], 17'784);
  const auto total = [&](const char* design) {
    int64_t rows = 0;
    for (const auto& [kind, moved] : lines[0]["sent"][design].items()) rows += moved.get<int64_t>();
    return rows;
  };
  EXPECT_EQ(total("none"), 53'922);
  EXPECT_LE(total("forward"), 33'600);
  EXPECT_LE(total("lrpp"), 104'790);
}

/// Each of four ranks decides for a quarter of each rank's slots.
TEST_F(StatsLookahead, counts_ranks_with_few_slots) {
  write_skewed();
  const auto lines =
      lines_of({"--batches", "16", "--prefetch", "0", "--ranks", "4", "--slots", "0,144,500"});
  ASSERT_EQ(lines.size(), 3u);
  const auto& enough = lines[0]["sent"]["forward"];
  EXPECT_EQ(enough["fetched"], 6'135);
  for (const Json& line : lines) {
    const auto& sent = line["sent"]["forward"];
    EXPECT_EQ(sent["fetched"], line["fetched"]);
    for (const char* kind : {"gradients", "weights"}) EXPECT_EQ(sent[kind], enough[kind]) << kind;
  }
  EXPECT_GT(lines[1]["fetched"], 9'000);  // and fewer rows are handed over
  EXPECT_LT(lines[1]["sent"]["forward"]["handed_over"], enough["handed_over"]);
  EXPECT_EQ(lines[2]["fetched"], 6'135);
  EXPECT_TRUE(lines[1]["sent"]["replicated"].is_null());  // all ranks need slots for all rows
}

TEST_F(StatsLookahead, refuses_what_it_cannot_count_in_one_line) {
  write_skewed();
  const std::pair<std::vector<std::string>, std::string> wrong[] = {
      {{"--batches", "59", "--prefetch", "0", "--slots", "374"},
       "--slots: 374 are fewer than the 375 rows of one batch"},
      {{"--batches", "59", "--prefetch", "4", "--slots", "1201"},
       "--slots: 1201 are fewer than the 1202 rows of 5 batches in a row"},
      {{"--batches", "-1"}, "--batches: must be 0 to 65535"},
      {{"--ranks", "8"}, "train.ranks: 8 is more than train.slices, which is 4"},
      {{"--ranks", "4", "--slots", "7"}, "--slots: must be 0 or at least 8 with --ranks 4"},
      {{"--batches", "16", "--prefetch", "0", "--ranks", "4", "--slots", "143"},
       "--slots: 143 are fewer than 144: 4 ranks decide for the rows of each rank's slots, and one "
       "has 36 rows of one batch at one rank"},
      {{"--rows", "9"}, "--lookahead: does not go with --rows"},
      {{"--counts", "x.counts"}, "--lookahead: does not go with --rows, --counts"},
      {{"--trace", "--batches", "1,2"}, "--trace: takes one of --batches"}};
  for (const auto& [arguments, message] : wrong) {
    std::vector<std::string> words{"stats", "a.toml", "--lookahead", "--quiet"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, 2) << message;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

}  // namespace
}  // namespace recmill::cli
