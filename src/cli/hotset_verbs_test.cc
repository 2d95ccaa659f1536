// SPDX-License-Identifier: Apache-2.0
// `recmill plan hotset`, `convert --hotcold` and training in that order, on 1,000 inputs whose
// counts are known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/random.h"
#include "cli/testing/serving_program.h"
#include "cli/testing/three_columns.h"

namespace recmill::cli {
namespace {

class PlanHotset : public ServingProgram {
 protected:
  void SetUp() override {
    const std::string rows = three_columns(1000);
    write("t.csv", rows);
    write("e.csv", rows.substr(0, rows.find('\n', rows.size() / 3) + 1));
    write("g.toml", three_columns_config("name = 'g'\n",
                                         "shuffle = { kind = 'window', window = 100 }\n", ""));
  }

  std::vector<std::string> arguments(const std::vector<std::string>& sets,
                                     const std::vector<std::string>& more) {
    std::vector<std::string> words{"plan", "hotset", "g.toml", "--quiet"};
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::vector<Json> lines(const std::vector<std::string>& sets,
                          std::vector<std::string> more = {}) {
    more.push_back("--json");
    const Outcome outcome = run(arguments(sets, more));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::vector<Json> lines;
    std::istringstream out(outcome.out);
    for (std::string line; std::getline(out, line);) lines.push_back(Json::parse(line));
    return lines;
  }
  Json chosen(const std::vector<std::string>& sets) {
    const auto all = lines(sets);
    const auto is_chosen = [](const Json& line) { return line["chosen"] == true; };
    EXPECT_EQ(std::ranges::count_if(all, is_chosen), 1);
    const auto found = std::ranges::find_if(all, is_chosen);
    return found == all.end() ? Json::object() : *found;
  }
  std::string refusal(const std::vector<std::string>& sets,
                      const std::vector<std::string>& more = {}) {
    const Outcome outcome = run(arguments(sets, more));
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    return outcome.err;
  }
};

TEST_F(PlanHotset, says_what_the_chosen_cutoff_makes_hot) {
  EXPECT_EQ(chosen({"hotset.threshold=0.012"}), (Json{{"cutoff", 12},
                                                      {"hot_rows", 57},
                                                      {"hot_bytes", 3648},
                                                      {"hot_inputs", 678},
                                                      {"inputs", 1000},
                                                      {"far_lookups", 349},
                                                      {"lookups", 3000},
                                                      {"chosen", true}}));
  const auto figures = [&](const std::vector<std::string>& sets) {
    const Json line = chosen(sets);
    return std::pair(line["cutoff"].get<int64_t>(), line["hot_inputs"].get<int64_t>());
  };
  EXPECT_EQ(figures({"hotset.bytes=4096"}), std::pair(int64_t{11}, int64_t{723}));
  EXPECT_EQ(figures({"hotset.bytes=4096", "embedding.optimizer.kind=adagrad"}),
            std::pair(int64_t{27}, int64_t{403}));
  EXPECT_EQ(figures({"hotset.bytes=4096", "hotset.pick=top"}), std::pair(int64_t{0}, int64_t{741}));
  EXPECT_EQ(figures({"hotset.bytes=448"}), std::pair(int64_t{94}, int64_t{0}));
}

TEST_F(PlanHotset, says_of_a_sample_what_it_leaves_open) {
  // One block, which is all: nothing.
  Json line = chosen({"hotset.threshold=0.012", "hotset.sample=0.5"});
  EXPECT_EQ(line["hot_inputs"], 678);
  EXPECT_EQ(line["far_lookups"], 349);
  EXPECT_EQ(line["shares_by_sample"]["counted_inputs"], 1000);
  EXPECT_EQ(line["shares_by_sample"]["hot_inputs_low"], 0.678);
  EXPECT_EQ(line["shares_by_sample"]["hot_inputs_high"], 0.678);
  std::string rows = "label,a,b,c\n";
  for (int64_t i = 0; i < 20'000; ++i) {
    const int64_t id = i * i % 19'997;
    rows += "0," + std::to_string(id % (1 + id % 500)) + "," + std::to_string(id % 3000) + ",0\n";
  }
  write("t.csv", rows);
  line = chosen({"hotset.threshold=0.0002", "hotset.sample=0.5"});
  EXPECT_EQ(line["cutoff"], 2);
  EXPECT_EQ(line["inputs"], 20'000);
  EXPECT_EQ(line["shares_by_sample"]["counted_inputs"], 8'000);
  const double share = line["hot_inputs"].get<double>() / 20'000;
  EXPECT_LT(line["shares_by_sample"]["hot_inputs_low"], share);
  EXPECT_GT(line["shares_by_sample"]["hot_inputs_high"], share);
  EXPECT_THAT(run(arguments({"hotset.sample=0.5"}, {})).out,
              ::testing::HasSubstr("by a sample of 10 of 20 blocks, of which 8000 inputs"));
}

TEST_F(PlanHotset, has_a_line_for_every_cutoff_or_those_named) {
  const auto all = lines({"hotset.threshold=0.012"});
  EXPECT_EQ(all.size(), 44u);
  int64_t last = 0, rows = -1;
  for (const Json& line : all) {
    EXPECT_GT(line["cutoff"], last);
    EXPECT_NE(line["hot_rows"], rows);
    last = line["cutoff"];
    rows = line["hot_rows"];
  }
  const auto named = lines({}, {"--cutoffs", "27,12"});
  ASSERT_EQ(named.size(), 2u);
  EXPECT_EQ(named[0]["cutoff"], 12);
  EXPECT_EQ(named[0]["far_lookups"], 349);
  EXPECT_EQ(named[1]["hot_inputs"], 403);
}

TEST_F(PlanHotset, prints_the_schedules_of_given_losses) {
  const auto all =
      lines({}, {"--cutoffs", "12", "--losses", ".50,.49,.48,.47,.46,.47,.48,.47,.46,.45,.44"});
  std::vector<double> rates;
  for (size_t i = 1; i < all.size(); ++i) rates.push_back(all[i]["rate"]);
  EXPECT_THAT(rates, ::testing::ElementsAre(50, 50, 50, 50, 50, 100, 50, 25, 25, 25, 25, 50));
}

TEST_F(PlanHotset, explains_what_an_epoch_moves) {
  const Json of = lines({"hotset.threshold=0.012"}, {"--cutoffs", "12", "--explain"}).back();
  EXPECT_NEAR(of["log10_all_hot"].get<double>(), 100 * std::log10(0.678), 1e-9);
  EXPECT_EQ(of["cold_batches"], 4);
  EXPECT_EQ(of["hot_batches"], 7);
  EXPECT_EQ(of["next_table"]["table"], "b");
  EXPECT_EQ(of["iterations"], 10);
  EXPECT_EQ(of["moved_rows"]["all_far"], 1570);
  EXPECT_EQ(of["moved_rows"]["hot_near_mixed"], 542);
}

TEST_F(PlanHotset, writes_the_same_set_at_any_number_of_threads) {
  for (const char* threads : {"1", "2", "5"}) {
    const std::string name = std::string(threads) + ".json";
    const auto words =
        arguments({"hotset.threshold=0.012", std::string("train.threads=") + threads},
                  {"--out", name, "--html", "page.html", "--overwrite"});
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(*read_text(posix_files(), path(name)), *read_text(posix_files(), path("1.json")));
    EXPECT_EQ(*read_text(posix_files(), path(name + ".rows")),
              *read_text(posix_files(), path("1.json.rows")));
  }
  EXPECT_THAT(*read_text(posix_files(), path("page.html")),
              ::testing::HasSubstr("which rows are hot"));
}

TEST_F(PlanHotset, refuses_in_one_line_what_cannot_be) {
  EXPECT_THAT(refusal({"hotset.bytes=447"}),
              ::testing::HasSubstr("hotset.bytes: 447 is less than the 448 bytes"));
  EXPECT_THAT(refusal({"hotset.bytes=3647", "hotset.threshold=0.012"}),
              ::testing::HasSubstr("which take 3648 bytes"));
  EXPECT_THAT(refusal({"hotset.sample=0"}), ::testing::HasSubstr("hotset.sample: must be above 0"));
  EXPECT_THAT(refusal({"hotset.sample=0.5", "embedding.mapping=dictionary"}),
              ::testing::HasSubstr("hotset.sample: 0.5 of the data cannot tell"));
  EXPECT_THAT(refusal({"hotset.pick=most"}), ::testing::HasSubstr("hotset.pick"));
  EXPECT_THAT(refusal({}, {"--cutoffs", "0"}), ::testing::HasSubstr("--cutoffs"));
  EXPECT_THAT(refusal({}, {"--losses", "nan"}), ::testing::HasSubstr("--losses"));
  EXPECT_THAT(refusal({}, {"--out", "nowhere/set.json"}), ::testing::HasSubstr("--out"));
}

TEST_F(PlanHotset, warns_where_it_does_not_pay) {
  EXPECT_THAT(run(arguments({}, {})).err, ::testing::HasSubstr("all inputs are hot"));
  EXPECT_THAT(run(arguments({"hotset.bytes=448"}, {})).err,
              ::testing::HasSubstr("no input is hot"));
}

class HotCold : public PlanHotset {
 protected:
  void SetUp() override {
    PlanHotset::SetUp();
    const Outcome made =
        run({"convert", "g.toml", "--hotcold", "F", "--quiet", "--set", "hotset.threshold=0.012"});
    ASSERT_EQ(made.status, 0) << made.err;
  }

  /// A verb's words for a run in the order of the folder.
  std::vector<std::string> words(const std::vector<std::string>& verb,
                                 const std::vector<std::string>& sets = {}) {
    std::vector<std::string> words = verb;
    for (const char* set : {"hotset.threshold=0.012", "hotset.order=hot_cold", "hotset.folder=F",
                            "train.batch_size=20", "train.slices=4"})
      words.insert(words.end(), {"--set", set});
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    return words;
  }
  std::string error_of(const std::vector<std::string>& words, int status = 2) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    return outcome.err;
  }
  void expect_same(const std::string& a, const std::string& b) {
    const Outcome outcome = run({"verify", "--checkpoints", "runs/" + a, "runs/" + b});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  }
};

TEST_F(HotCold, inputs_are_put_apart_once) {
  const auto again = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all{"convert", "g.toml", "--hotcold", "F", "--quiet"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const Json there = run_json(again({"--set", "hotset.threshold=0.012"}));
  EXPECT_EQ(there, (Json{{"folder", "F"},
                         {"hot_inputs", 678},
                         {"cold_inputs", 322},
                         {"hot_rows", 57},
                         {"cutoff", 12},
                         {"reused", true}}));
  EXPECT_THAT(error_of(again({"--set", "hotset.threshold=0.013"})),
              ::testing::HasSubstr("hotset.threshold was 0.012 when it was written, and is 0.013"));
  EXPECT_EQ(run_json(again({"--set", "hotset.threshold=0.02", "--overwrite"}))["hot_inputs"], 496);
  EXPECT_THAT(
      error_of({"convert", "g.toml", "--hotcold", "G", "--quiet", "--set", "hotset.bytes=448"}),
      ::testing::HasSubstr("no input is hot: most far lookups are of column"));
  EXPECT_FALSE(posix_files().exists(path("G")) || posix_files().exists(path("G.tmp")));
  EXPECT_THAT(error_of({"convert", "g.toml", "--hotcold", "t.csv", "--quiet", "--overwrite"}),
              ::testing::HasSubstr("is no folder that --hotcold has written"));
}

TEST_F(HotCold, runs_have_the_bits_of_the_plain_one_at_any_number_of_ranks) {
  const std::vector<std::vector<std::string>> cases{
      {},
      {"hotset.first=hot", "embedding.optimizer.kind=sgd", "train.batch_size=12"},
      {"embedding.store=cached", "lookahead.batches=3"},
      {"embedding.store=cached", "lookahead.design=lrpp", "lookahead.prefetch=0"},
      {"embedding.store=placed", "placement.planner=hot_cold"},
      {"embedding.store=placed", "placement.planner=hot_cold", "placement.share_rows=false"},
      {"embedding.store=placed", "placement.planner=hot_cold", "placement.share_rows=false",
       "placement.reduce=dense", "placement.one_call=false"}};
  for (const auto& sets : cases) {
    std::vector<std::string> all =
        words({"verify", "g.toml", "--ranks", "1,2,3,4", "--iterations", "500"}, sets);
    const Outcome outcome = run(all);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, ::testing::HasSubstr("[1,2,3,4]"));
  }
}

TEST_F(HotCold, runs_are_those_of_the_same_inputs_in_the_same_order) {
  // 2 divides both numbers of inputs, so that batches are the same.
  ASSERT_EQ(run(words({"train", "g.toml", "--quiet", "--order", "order.txt"},
                      {"name=apart", "train.batch_size=2", "train.slices=2"}))
                .status,
            0);
  std::istringstream order(*read_text(posix_files(), path("order.txt")));
  std::istringstream lines(*read_text(posix_files(), path("t.csv")));
  std::vector<std::string> inputs;
  for (std::string line; std::getline(lines, line);) inputs.push_back(line + "\n");
  std::string ordered = inputs[0];
  std::vector<bool> seen(1000);
  for (size_t number = 0; order >> number;) {
    EXPECT_FALSE(seen.at(number)) << number;
    seen[number] = true;
    ordered += inputs.at(number + 1);
  }
  EXPECT_EQ(std::ranges::count(seen, true), 1000);
  write("t.csv", ordered);
  ASSERT_EQ(
      run({"train", "g.toml", "--quiet", "--set", "name=ordered", "--set", "train.batch_size=2",
           "--set", "train.slices=2", "--set", "data.shuffle.kind=none"})
          .status,
      0);
  expect_same("apart", "ordered");
}

TEST_F(HotCold, runs_go_on_where_they_stopped) {
  const std::vector<std::string> epochs{"train.epochs=4", "name=whole"};
  ASSERT_EQ(run(words({"train", "g.toml", "--quiet"}, epochs)).status, 0);
  const std::string schedules = *read_text(posix_files(), path("runs/whole/schedule.jsonl"));
  EXPECT_GE(std::ranges::count(schedules, '\n'), 7);
  for (const char* iterations : {"1", "26", "51", "60", "130"}) {
    ASSERT_EQ(
        run(words({"train", "g.toml", "--quiet", "--overwrite"},
                  {"train.epochs=4", "name=cut", std::string("train.iterations=") + iterations}))
            .status,
        0);
    ASSERT_EQ(run(words({"train", "g.toml", "--quiet", "--resume"}, {"train.epochs=4", "name=cut"}))
                  .status,
              0);
    expect_same("whole", "cut");
    EXPECT_EQ(*read_text(posix_files(), path("runs/cut/schedule.jsonl")), schedules) << iterations;
  }
  // The same rates again, without a loss.
  ASSERT_EQ(run(words({"train", "g.toml", "--quiet"},
                      {"train.epochs=4", "name=again", "hotset.replay=runs/whole/schedule.jsonl"}))
                .status,
            0);
  EXPECT_EQ(run({"verify", "--checkpoints", "runs/whole", "runs/again"}).status, 1);  // its losses
  const Outcome mixed = run({"train", "g.toml", "--resume", "--quiet", "--set", "name=cut", "--set",
                             "train.batch_size=20", "--set", "train.slices=4"});
  EXPECT_THAT(mixed.err, ::testing::HasSubstr("hotset.order: is mixed, and runs/cut"));
}

TEST_F(HotCold, batches_move_what_the_plan_counts) {
  const std::vector<std::string> sets{"hotset.threshold=0.012", "hotset.order=hot_cold",
                                      "hotset.folder=F", "data.shuffle.kind=none"};
  const Json of = lines(sets, {"--cutoffs", "12", "--explain"}).back();
  EXPECT_EQ(of["iterations_without_far_hot_cold"], 7);  // all hot batches
  const Json& moved = of["moved_rows"];
  EXPECT_EQ(moved["all_far"], 1570);
  EXPECT_EQ(moved["hot_near_mixed"], 542);
  // Of four cold batches, which have all far rows; FAE fetches the others for them too, and three
  // times makes copies of 57 rows current.
  EXPECT_LE(moved["hot_near_hot_cold"], 542);
  EXPECT_GT(moved["fae"], moved["hot_near_hot_cold"].get<int64_t>() + 3 * 57);
}

TEST_F(HotCold, hot_batches_send_nothing_for_lookups) {
  const auto sent = [&](const std::string& ranks, const std::string& first) -> int64_t {
    const Json trained =
        run_json(words({"train", "g.toml", "--profile", "--quiet", "--overwrite"},
                       {"embedding.store=placed", "placement.planner=hot_cold",
                        "placement.share_rows=false", "hotset.rate=50", "hotset.first=" + first,
                        "data.eval=[]", "train.iterations=8", "train.ranks=" + ranks}));
    int64_t bytes = 0;
    for (const Json& rank : trained["profile"])
      bytes += rank["stages"]["lookup"]["sent"].get<int64_t>();
    return bytes;
  };
  for (const char* ranks : {"2", "4"}) {
    EXPECT_EQ(sent(ranks, "hot"), 0) << ranks;
    EXPECT_GT(sent(ranks, "cold"), 0) << ranks;
  }
}

TEST_F(HotCold, caches_hold_where_windows_end_to_wait_for_losses) {
  // Labels that nothing tells of, so that losses rise and rates fall.
  const Random random(3, Purpose::test, 0);
  std::istringstream lines(*read_text(posix_files(), path("t.csv")));
  std::string noise, line;
  std::getline(lines, line);
  noise = line + "\n";
  for (uint64_t i = 0; std::getline(lines, line); ++i)
    noise += (random.uniform64(i) < 0.5 ? "0" : "1") + line.substr(1) + "\n";
  write("t.csv", noise);
  ASSERT_EQ(
      run({"convert", "g.toml", "--hotcold", "N", "--quiet", "--set", "hotset.threshold=0.012"})
          .status,
      0);
  const std::string server = serve();
  const auto train = [&](const std::string& name, std::vector<std::string> sets) {
    sets.insert(sets.end(), {"hotset.folder=N", "name=" + name, "train.batch_size=8",
                             "optimizer.learning_rate=0.5", "embedding.optimizer.learning_rate=5",
                             "train.evaluate_every=31", "train.epochs=3", "hotset.eval_rows=50"});
    const Outcome outcome = run(words({"train", "g.toml", "--quiet", "--overwrite"}, sets));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  };
  train("local", {});
  EXPECT_THAT(*read_text(posix_files(), path("runs/local/schedule.jsonl")),
              ::testing::HasSubstr("\"rate\":6.25"));
  for (const char* design : {"forward", "lrpp"}) {
    for (const char* ranks : {"1", "3"}) {
      for (const char* home : {"embedded", "disk", "remote"}) {
        std::vector<std::string> sets{"embedding.store=cached", "lookahead.batches=5",
                                      std::string("lookahead.design=") + design,
                                      std::string("train.ranks=") + ranks,
                                      std::string("lookahead.home=") + home};
        if (home == std::string("disk"))
          sets.push_back("lookahead.disk_path=rows" + std::string(design) + ranks);
        if (home == std::string("remote"))
          sets.push_back("lookahead.servers=[" + in_quotes(server) + "]");
        train("cached", sets);
        expect_same("local", "cached");
      }
    }
  }
}

TEST_F(HotCold, caches_fetch_what_is_counted_over_the_same_order) {
  const std::vector<std::string> sets{"hotset.rate=12.5", "embedding.store=cached",
                                      "lookahead.batches=3", "data.eval=[]", "name=cached"};
  const Json counted = run_json(words(
      {"stats", "g.toml", "--lookahead", "--batches", "3", "--prefetch", "3", "--quiet"}, sets));
  const Json trained = run_json(words({"train", "g.toml", "--profile", "--quiet"}, sets));
  EXPECT_EQ(counted["batches"], trained["iterations"]);
  EXPECT_GT(counted["fetched"], 0);
  EXPECT_EQ(trained["profile"][0]["moved_rows"]["fetched"], counted["fetched"]);
  EXPECT_THAT(error_of(words({"stats", "g.toml", "--lookahead"})),
              ::testing::HasSubstr("hotset.replay: rates follow losses"));
}

TEST_F(HotCold, runs_are_refused_in_one_line) {
  const auto refused = [&](const std::vector<std::string>& sets) {
    return error_of(words({"train", "g.toml", "--quiet"}, sets));
  };
  EXPECT_THAT(refused({"hotset.folder="}), ::testing::HasSubstr("hotset.folder: order = "));
  EXPECT_THAT(refused({"hotset.folder=nowhere"}),
              ::testing::HasSubstr("hotset.folder: there is no"));
  EXPECT_THAT(refused({"hotset.threshold=0.013"}),
              ::testing::HasSubstr("hotset.threshold was 0.012"));
  EXPECT_THAT(refused({"train.negative_keep=0.5"}), ::testing::HasSubstr("train.negative_keep"));
  EXPECT_THAT(refused({"hotset.rate=0.0000001"}), ::testing::HasSubstr("at most six decimals"));
  EXPECT_THAT(refused({"data.eval=[]"}), ::testing::HasSubstr("hotset.rate: is 0"));
  EXPECT_THAT(refused({"hotset.replay=none.jsonl"}),
              ::testing::HasSubstr("hotset.replay: there is no"));
  EXPECT_THAT(refused({"hotset.order=mixed"}), ::testing::HasSubstr("hotset.folder: is used with"));
  EXPECT_THAT(refused({"embedding.mapping=hash"}),
              ::testing::HasSubstr("or how ids become their rows"));
  const std::string hot = *read_text(posix_files(), path("F/hot.parquet"));
  write("F/hot.parquet", hot.substr(0, hot.size() - 1));
  EXPECT_THAT(refused({}), ::testing::HasSubstr("it is cut short"));
  write("F/hot.parquet", hot);
  std::string rows = *read_text(posix_files(), path("t.csv"));
  write("t.csv", rows.replace(rows.size() - 2, 1, "6"));
  EXPECT_THAT(refused({}), ::testing::HasSubstr("the data: file 0 was"));
}

}  // namespace
}  // namespace recmill::cli
