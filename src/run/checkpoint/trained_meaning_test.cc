// SPDX-License-Identifier: Apache-2.0
// A checkpoint is taken where its rows and layers mean the same, and what differs is named.
#include "run/checkpoint/trained_meaning.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/json/json.h"
#include "base/testing/faulty_files.h"
#include "base/testing/shared_files.h"
#include "checkpoint/folder.h"
#include "run/testing/small_run.h"

namespace recmill::train {
namespace {

struct Change {
  std::string expected;  // of the message
  std::function<void(RunOptions&)> make;
};

/// A table of rows of bags, all of whose ops are there.
RunOptions run_with_all_ops() {
  RunOptions options = small_run();
  options.embedding.max_length = 3;
  options.preprocess.dense = {"fill_null", "log", "clamp"};
  preprocess::FeatureOptions buckets;
  buckets.name = "price_range";
  buckets.column = "price";
  buckets.borders = {0.5, 1.5};
  options.features = {buckets};
  return options;
}

std::vector<Change> changes() {
  using preprocess::Mapping;
  return {
      {"embedding.pooling: is \"mean\" (feature 'shop'), and ",
       [](RunOptions& o) { o.embedding.pooling = preprocess::FeaturePooling::mean; }},
      {"features[0].pooling: is \"mean\" (feature 'price_range'), and ",
       [](RunOptions& o) { o.features[0].pooling = preprocess::FeaturePooling::mean; }},
      {"features[0].table: is \"other\" (feature 'price_range'), and ",
       [](RunOptions& o) { o.features[0].table = "other"; }},
      {"features[0].borders: is [0.5,2.5] (feature 'price_range'), and ",
       [](RunOptions& o) { o.features[0].borders[1] = 2.5; }},
      {"embedding.max_length: is 2 (feature 'shop'), and ",
       [](RunOptions& o) { o.embedding.max_length = 2; }},
      {"embedding.missing: is \"empty\" (feature 'shop'), and ",
       [](RunOptions& o) { o.embedding.missing = preprocess::MissingId::empty; }},
      {"embedding.missing_id: is 7 (feature 'shop'), and ",
       [](RunOptions& o) { o.embedding.missing_id = 7; }},
      {"embedding.mapping: is \"hash\" (feature 'shop'), and ",
       [](RunOptions& o) { o.embedding.mapping = Mapping::hash; }},
      {"tables[0].mapping: is \"modulo\" (feature 'shop'), and ",
       [](RunOptions& o) { o.tables[0].mapping = Mapping::modulo; }},
      {"tables[0].rows: is 90 (feature 'shop'), and ",
       [](RunOptions& o) { o.tables[0].rows = 90; }},
      {"embedding.out_of_range: is \"clamp\" (feature 'shop'), and ",
       [](RunOptions& o) { o.embedding.out_of_range = preprocess::OutOfRange::clamp; }},
      {"embedding.min_count: is 2 (feature 'shop'), and ",
       [](RunOptions& o) { o.embedding.min_count = 2; }},
      {"preprocess.dense: is [\"log\",\"fill_null\",\"clamp\"] (column 'price'), and ",
       [](RunOptions& o) {
         o.preprocess.dense = {"log", "fill_null", "clamp"};
       }},
      {"preprocess.fill_value: is 3.0 (column 'price'), and ",
       [](RunOptions& o) { o.preprocess.fill_value = 3.0; }},
      {"preprocess.clamp_low: is -1.0 (column 'price'), and ",
       [](RunOptions& o) { o.preprocess.clamp_low = -1.0; }},
      {"preprocess.clamp_high: is 2.0 (column 'price'), and ",
       [](RunOptions& o) { o.preprocess.clamp_high = 2.0; }},
      {"embedding.dim: is 8 (table 'shop'), and ",
       [](RunOptions& o) {
         o.embedding.dim = 8;
         o.model.bottom.back() = 8;
       }},
      {"embedding.precision: is \"float16\" (table 'words'), and ",
       [](RunOptions& o) { o.embedding.precision = RowPrecision::float16; }},
      {"model.top: is [5,1], and ",
       [](RunOptions& o) {
         o.model.top = {5, 1};
       }},
      {"train.negative_keep: is 0.5, and ", [](RunOptions& o) { o.train.negative_keep = 0.5; }},
      {"model.kind: is \"mlp\", and ",
       [](RunOptions& o) {
         o.model.kind = model::ModelKind::mlp;
         o.model.bottom = {};
       }},
      {"data.format: the dense columns are [\"cost\"], and ",
       [](RunOptions& o) {
         o.data.synthetic.dense[0].name = "cost";
         o.features[0].column = "cost";
       }},
  };
}

ColumnSpec column(const std::string& name, ColumnRole role) {
  ColumnSpec spec;
  spec.name = name;
  spec.role = role;
  return spec;
}

/// Columns of a file of text, without the file.
struct TextRun {
  RunOptions options = generated_run(10);
  DataSchema schema;

  TextRun() {
    options.data.format = DataFormat::csv;
    options.data.columns = {column("y", ColumnRole::label), column("price", ColumnRole::dense),
                            column("words", ColumnRole::id)};
    options.data.columns.back().list_separator = "|";
    schema.dense = {"price"};
    schema.ids = schema.bags = {"words"};
  }
  ResolvedRun resolve() const {
    auto run = resolve_run(options, schema, 1);
    EXPECT_TRUE(run.ok()) << run.status().message();
    return *std::move(run);
  }
};

}  // namespace

TEST(TrainedMeaning, evaluation_and_resuming_name_the_key_of_what_differs_from_the_checkpoint) {
  FaultyFiles disk;
  SharedFiles files(disk, [](const std::string&) { return Status(); });
  const RunOptions options = run_with_all_ops();
  const auto trained = train(options, files);
  ASSERT_TRUE(trained.ok()) << trained.status().message();
  for (const Change& change : changes()) {
    SCOPED_TRACE(change.expected);
    RunOptions other = options;
    change.make(other);
    const Status scored = score(other, files).status();
    EXPECT_NE(scored.message().find(change.expected), std::string::npos) << scored.message();
    EXPECT_NE(scored.message().find(small_checkpoints()), std::string::npos) << scored.message();
    const Status resumed = train(other, files, ExistingRun::resume).status();
    EXPECT_NE(resumed.message().find(change.expected), std::string::npos) << resumed.message();
  }
  EXPECT_TRUE(score(options, files).ok());
}

TEST(TrainedMeaning, how_the_run_is_carried_out_may_be_another) {
  FaultyFiles disk;
  SharedFiles files(disk, [](const std::string&) { return Status(); });
  RunOptions options = run_with_all_ops();
  const auto trained = train(options, files);
  ASSERT_TRUE(trained.ok()) << trained.status().message();
  const auto scored = score(options, files);
  ASSERT_TRUE(scored.ok()) << scored.status().message();
  options.train.ranks = 4;
  options.train.queue = 1;
  options.embedding.sharding = Sharding::row_range;
  options.embedding.optimizer.kind = OptimizerKind::sgd;
  options.embedding.initial_scale = 3.0;
  options.embedding.unseen = preprocess::Unseen::row;
  const auto again = score(options, files);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ((*again)["log_loss"], (*scored)["log_loss"]);
}

TEST(TrainedMeaning, how_cells_are_read_is_named_by_column) {
  const TextRun text;
  const Json then = meaning_of(text.resolve());
  const std::pair<std::string, std::function<void(RunOptions&)>> changes[] = {
      {"data.columns[2].id_text: is \"integer\" (column 'words'), and P was written with \"text\"",
       [](RunOptions& o) { o.data.columns[2].id_text = IdText::integer; }},
      {"data.columns[2].list_separator: is \";\" (column 'words'), and P was written with \"|\"",
       [](RunOptions& o) { o.data.columns[2].list_separator = ";"; }},
      {"data.columns[2].weight_separator: is \":\" (column 'words'), and P was written with \"\"",
       [](RunOptions& o) { o.data.columns[2].weight_separator = ":"; }},
      {"data.columns[1].missing: is [\"-1\"] (column 'price'), and P was written with []",
       [](RunOptions& o) { o.data.columns[1].missing = {"-1"}; }},
      {"data.columns[2].missing: is [\"-\",\"0\"] (column 'words'), and P was written with []",
       [](RunOptions& o) {
         o.data.columns[2].missing = {"0", "-", "0"};
       }}};
  for (const auto& [expected, make] : changes) {
    TextRun other;
    make(other.options);
    EXPECT_EQ(compare_meaning(other.resolve(), then, "P").message(), expected);
  }
  TextRun columnar;  // whose ids are numbers already
  columnar.options.data.format = DataFormat::parquet;
  columnar.options.data.columns[2].id_text = IdText::hex;
  EXPECT_TRUE(compare_meaning(columnar.resolve(), then, "P").ok());
  EXPECT_TRUE(compare_meaning(text.resolve(), then, "P").ok());
}

TEST(TrainedMeaning, options_of_a_model_that_have_no_parameter_count) {
  const auto meaning = [](model::ModelKind kind, const std::function<void(RunOptions&)>& make) {
    TextRun run;
    run.options.model = {};
    run.options.model.kind = kind;
    if (kind == model::ModelKind::tbsm) {
      run.options.model.bottom = {4};
      run.options.model.top = {2};
      run.options.model.over = {1};
      run.options.features.resize(2);
      run.options.features[0].name = run.options.features[0].table = "words";
      run.options.features[1].name = "history";
      run.options.features[1].column = run.options.features[1].table = "words";
      run.options.features[1].pooling = preprocess::FeaturePooling::none;
    } else {
      run.options.model.deep = {1};
    }
    make(run.options);
    return run.resolve();
  };
  using model::ModelKind;
  const auto as_is = [](RunOptions&) {};
  const auto tbsm = meaning_of(meaning(ModelKind::tbsm, as_is));
  EXPECT_EQ(
      compare_meaning(meaning(ModelKind::tbsm, [](RunOptions& o) { o.model.sequence_length = 5; }),
                      tbsm, "P")
          .message(),
      "model.sequence_length: is 5, and P was written with 20");
  const auto deep_fm = meaning_of(meaning(ModelKind::deep_fm, as_is));
  EXPECT_EQ(
      compare_meaning(meaning(ModelKind::deep_fm,
                              [](RunOptions& o) { o.model.deep_input = model::DeepInput::rows; }),
                      deep_fm, "P")
          .message(),
      "model.deep_input: is \"rows\", and P was written with \"all\"");
}

}  // namespace recmill::train
