// SPDX-License-Identifier: Apache-2.0
// What the program says of dense columns, rare ids and bags, and of checkpoints that mean others.
#include <gtest/gtest.h>

#include "base/json/json.h"
#include "cli/testing/program.h"

namespace recmill::cli {

class Preprocessing : public Program {
 protected:
  /// Ten rows: a label, a dense value of which four are below 0, an id, a bag with weights.
  void SetUp() override {
    for (const char* name : {"rows.csv", "held.csv"})
      write(name,
            "y,d,i,tags\n1,-1.5,1,1:1|2:3\n0,2,2,\n1,-0.2,3,2:1\n0,3.5,1,3:2|1:-2\n1,,2,5:1\n"
            "0,-4,4,1:2\n1,0,1,2:1|3:1\n0,1,7,\n1,-3,2,1:1\n0,5,1,2:2\n");
    write("a.toml",
          "[data]\nformat = 'csv'\ntrain = ['rows.csv']\neval = ['held.csv']\ncache = ''\n"
          "[[data.columns]]\nname = 'y'\nrole = 'label'\n"
          "[[data.columns]]\nname = 'd'\nrole = 'dense'\n"
          "[[data.columns]]\nname = 'i'\nrole = 'id'\nid_text = 'integer'\n"
          "[[data.columns]]\nname = 'tags'\nrole = 'id'\nid_text = 'integer'\n"
          "list_separator = '|'\nweight_separator = ':'\n"
          "[embedding]\nrows = 20\ndim = 2\n[model]\nkind = 'mlp'\ntop = [1]\n"
          "[train]\nbatch_size = 4\nslices = 2\nepochs = 2\n");
  }
};

TEST_F(Preprocessing, says_the_default_of_dense_columns_and_what_it_flattened) {
  Outcome outcome = run({"train", "a.toml"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("preprocess.dense is not given: "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("log: 40 % of d are below 0 and become 0\n"), std::string::npos)
      << outcome.err;
  const auto summary =
      Json::parse(*read_text(posix_files(), path("runs/a/summary.json")), nullptr, false);
  EXPECT_EQ(summary["flattened"].dump(),
            R"([{"column":"d","op":"log","values":20,"below":8,"low":0.0}])");
  outcome = run({"train", "a.toml", "--overwrite", "--set", "train.ranks=2", "--set",
                 "preprocess.dense=['fill_null', 'clamp']", "--set", "preprocess.clamp_high=3"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("is not given"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("clamp: 40 % of d are below 0 and become 0\n"), std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("clamp: 20 % of d are above 3 and become 3\n"), std::string::npos)
      << outcome.err;
}

TEST_F(Preprocessing, a_checkpoint_of_another_meaning_is_refused_by_line_and_key) {
  ASSERT_EQ(run({"train", "a.toml", "--quiet"}).status, 0);
  const std::string config = *read_text(posix_files(), path("runs/a/config.toml"));
  const std::string text = *read_text(posix_files(), path("a.toml"));
  const struct {
    std::string before, after, message;
  } changes[] = {
      {"dim = 2\n", "dim = 2\npooling = 'mean'\n",
       "a.toml:25: embedding.pooling: is \"mean\" (feature 'i'), and runs/a/checkpoints/step-"},
      {"name = 'i'\nrole = 'id'\nid_text = 'integer'", "name = 'i'\nrole = 'id'\nid_text = 'text'",
       "a.toml:15: data.columns[2].id_text: is \"text\" (column 'i'), and runs/a/"},
      {"list_separator = '|'", "missing = ['1']\nlist_separator = '|'",
       "data.columns[3].missing: is [\"1\"] (column 'tags'), and runs/a/"},
      {"[model]", "[preprocess]\ndense = ['log']\n[model]",
       "preprocess.dense: is [\"log\"] (column 'd'), and runs/a/"}};
  for (const auto& [before, after, message] : changes) {
    std::string changed = text;
    changed.replace(changed.find(before), before.size(), after);
    write("a.toml", changed);
    for (const std::vector<std::string>& verb : {std::vector<std::string>{"eval", "a.toml"},
                                                 {"predict", "a.toml", "--out", "p.parquet"},
                                                 {"train", "a.toml", "--resume", "--quiet"}}) {
      const Outcome outcome = run(verb);
      EXPECT_EQ(outcome.status, 2) << after << outcome.err;
      EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
      EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    }
  }
  EXPECT_EQ(*read_text(posix_files(), path("runs/a/config.toml")), config);
  write("a.toml", text);
  EXPECT_EQ(run({"eval", "a.toml", "--quiet"}).status, 0);
}

TEST_F(Preprocessing, rare_ids_weighted_means_and_standardized_columns_are_the_plain_runs) {
  const Outcome outcome =
      run({"verify", "a.toml", "--ranks", "1,2", "--set", "embedding.mapping=dictionary", "--set",
           "embedding.min_count=2", "--set", "embedding.unseen=zero", "--set",
           "embedding.pooling=weighted_mean", "--set",
           "preprocess.dense=['standardize', 'fill_null']"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

// Ids 8 and 9 are in no training row; both have the mean of the rows of the others.
TEST_F(Preprocessing, means_stand_in_for_unseen_ids_in_every_evaluation_and_in_no_training) {
  write("new.csv", "y,d,i,tags\n1,1,8,\n0,1,9,\n");
  const auto with_means = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--set", "embedding.mapping=dictionary", "--set",
                                       "embedding.unseen=mean", "--set", "data.eval=['new.csv']"});
    return run(arguments);
  };
  for (const char* const store : {"embedding.store=local", "embedding.store=placed"}) {
    const Outcome verified = with_means({"verify", "a.toml", "--ranks", "1,2", "--set", store});
    EXPECT_EQ(verified.status, 0) << verified.err;
  }
  // Training sees nothing of it.
  ASSERT_EQ(with_means({"train", "a.toml", "--set", "train.evaluate_every=2"}).status, 0);
  ASSERT_EQ(
      with_means({"train", "a.toml", "--set", "name=row", "--set", "embedding.unseen=row"}).status,
      0);
  const Outcome same =
      run({"verify", "--checkpoints", newest_checkpoint("a"), newest_checkpoint("row")});
  EXPECT_EQ(same.status, 0) << same.out << same.err;
  // Row 0 is what it began as; the mean is not.
  const auto score = [&](const std::string& unseen) {
    EXPECT_EQ(run({"predict", "runs/a", "--rows", "new.csv", "--out", unseen + ".csv", "--quiet",
                   "--set", "embedding.unseen=" + unseen})
                  .status,
              0);
    return *read_text(posix_files(), path(unseen + ".csv"));
  };
  const std::string means = score("mean");
  EXPECT_NE(means, score("row"));
  EXPECT_NE(means, score("zero"));
}

TEST_F(Preprocessing, resuming_counts_rare_ids_on) {
  const std::vector<std::string> sets{"--set", "embedding.mapping=dictionary", "--set",
                                      "embedding.min_count=3", "--quiet"};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), sets.begin(), sets.end());
    return arguments;
  };
  ASSERT_EQ(run(with({"train", "a.toml", "--set", "name=whole"})).status, 0);
  ASSERT_EQ(
      run(with({"train", "a.toml", "--set", "name=cut", "--set", "train.iterations=2"})).status, 0);
  ASSERT_EQ(
      run(with({"train", "a.toml", "--set", "name=cut", "--set", "train.iterations=4", "--resume"}))
          .status,
      0);  // in the second epoch
  ASSERT_EQ(run(with({"train", "a.toml", "--set", "name=cut", "--resume"})).status, 0);
  const Outcome same =
      run({"verify", "--checkpoints", newest_checkpoint("whole"), newest_checkpoint("cut")});
  EXPECT_EQ(same.status, 0) << same.out << same.err;
}

}  // namespace recmill::cli
