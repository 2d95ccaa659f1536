// SPDX-License-Identifier: Apache-2.0
#include "preprocess/dag/resolve.h"

#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/json/json.h"

namespace recmill::preprocess {
namespace {

DataSchema schema() {
  DataSchema schema;
  schema.dense = {"I1", "I2"};
  schema.ids = {"C1", "C2", "tags"};
  schema.bags = schema.weighted = {"tags"};
  return schema;
}

struct Options {
  EmbeddingOptions embedding;
  std::vector<TableOptions> tables;
  std::vector<FeatureOptions> features;
  PreprocessOptions preprocess;
  Options() { embedding.rows = {100, 200, 300}; }
  Result<ResolvedFeatures> resolve() const {
    return preprocess::resolve(schema(), embedding, tables, features, preprocess);
  }
  std::string error() const {
    const auto result = resolve();
    EXPECT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), Status::Code::bad_request);
    return result.status().message();
  }
};

TableOptions table_named(const std::string& name) {
  TableOptions table;
  table.name = name;
  return table;
}

FeatureOptions feature(const std::string& name, const std::string& column,
                       const std::string& table) {
  FeatureOptions feature;
  feature.name = name;
  feature.column = column;
  feature.table = table;
  return feature;
}

}  // namespace

TEST(Resolve, makes_each_id_column_a_feature_in_a_table_of_its_own) {
  const auto resolved = Options().resolve();
  ASSERT_TRUE(resolved.ok()) << resolved.status().message();
  EXPECT_EQ(resolved->model.num_dense, 2);
  ASSERT_EQ(resolved->model.tables.size(), 3u);
  ASSERT_EQ(resolved->model.features.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(resolved->model.tables[i].name, schema().ids[i]);
    EXPECT_EQ(resolved->model.tables[i].rows, 100 * (i + 1));
    EXPECT_EQ(resolved->model.features[i].table, i);
    EXPECT_EQ(resolved->model.features[i].weighted, i == 2);
  }
  const Chain& chain = resolved->graph.features[1];
  ASSERT_EQ(chain.ops.size(), 2u);
  EXPECT_EQ(chain.ops[0], (OpSpec{"fill_missing_id", Json{{"id", kMissingId}}}));
  EXPECT_EQ(chain.ops[1], (OpSpec{"sigrid_hash", Json{{"rows", 200}, {"salt", hash_bytes("C2")}}}));
  EXPECT_EQ(resolved->graph.dense[1].ops[1].op, "log");
}

TEST(Resolve, shared_tables_are_sized_for_their_largest_column_and_share_one_dictionary) {
  Options options;
  options.embedding.mapping = Mapping::dictionary;
  options.embedding.out_of_range = OutOfRange::drop;
  options.features = {feature("a", "C1", "shared"), feature("b", "C2", "shared")};
  const auto resolved = options.resolve();
  ASSERT_TRUE(resolved.ok()) << resolved.status().message();
  ASSERT_EQ(resolved->model.tables.size(), 2u);
  EXPECT_EQ(resolved->model.tables[0].rows, 200);
  EXPECT_EQ(resolved->model.features[1].table, 0);
  ASSERT_EQ(resolved->graph.dictionaries.size(), 2u);
  EXPECT_EQ(resolved->graph.dictionaries[0], (DictionarySpec{"shared", 200, "drop"}));
}

TEST(Resolve, exceptions_override_defaults) {
  Options options;
  auto table = table_named("C1");
  table.rows = 7;
  table.dim = 3;
  table.mapping = Mapping::direct;
  table.out_of_range = OutOfRange::clamp;
  table.learning_rate = 0.5;
  table.optimizer = OptimizerKind::adam;
  table.l2 = 0.25;
  table.correction = BiasCorrection::row;
  table.frozen = true;
  table.sharding = Sharding::row_range;
  options.embedding.sharding = Sharding::table;
  options.tables = {table};
  auto tags = feature("tags", "", "");
  tags.pooling = FeaturePooling::none;
  tags.max_length = 5;
  tags.missing = MissingId::empty;
  options.features = {tags};
  const auto resolved = options.resolve();
  ASSERT_TRUE(resolved.ok()) << resolved.status().message();
  const TableSpec& spec = resolved->model.tables[0];
  EXPECT_EQ(spec.rows, 7);
  EXPECT_EQ(spec.dim, 3);
  EXPECT_EQ(spec.optimizer.learning_rate, 0.5);
  EXPECT_EQ(spec.optimizer.l2, 0.25);
  EXPECT_EQ(spec.optimizer.correction, BiasCorrection::row);
  EXPECT_EQ(resolved->model.tables[1].optimizer.correction, BiasCorrection::global);
  EXPECT_TRUE(spec.frozen);
  EXPECT_EQ(spec.sharding, Sharding::row_range);
  EXPECT_EQ(resolved->model.tables[1].sharding, Sharding::table);
  EXPECT_EQ(resolved->graph.features[0].ops[1],
            (OpSpec{"direct", Json{{"rows", 7}, {"out_of_range", "clamp"}}}));
  EXPECT_EQ(resolved->model.features[2].pooling, Pooling::none);
  ASSERT_EQ(resolved->graph.features[2].ops.size(), 2u);
  EXPECT_EQ(resolved->graph.features[2].ops[0], (OpSpec{"first_x", Json{{"x", 5}}}));
}

TEST(Resolve, a_weighted_mean_is_a_sum_by_weights_that_preprocessing_divides) {
  Options options;
  options.embedding.pooling = FeaturePooling::weighted_mean;
  const auto resolved = options.resolve();
  ASSERT_TRUE(resolved.ok()) << resolved.status().message();
  for (size_t f = 0; f < resolved->model.features.size(); ++f) {
    const FeatureSpec& feature = resolved->model.features[f];
    EXPECT_EQ(feature.pooling, feature.weighted ? Pooling::sum : Pooling::mean) << feature.name;
    EXPECT_EQ(resolved->graph.features[f].normalized, feature.weighted) << feature.name;
  }
  const auto again = feature_graph_from_json(to_json(resolved->graph));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(*again, resolved->graph);
}

TEST(Resolve, what_dictionaries_alone_have_is_refused_without_one) {
  Options options;
  options.embedding.min_count = 3;
  EXPECT_EQ(options.resolve().status().message(),
            "embedding.min_count: needs mapping = \"dictionary\", which no table has");
  options.embedding.min_count = 1;
  options.embedding.unseen = Unseen::zero;
  EXPECT_EQ(options.resolve().status().message(),
            "embedding.unseen: needs mapping = \"dictionary\", which no table has");
  options.embedding.mapping = Mapping::dictionary;
  options.embedding.min_count = 3;
  auto resolved = options.resolve();
  ASSERT_TRUE(resolved.ok()) << resolved.status().message();
  EXPECT_EQ(resolved->graph.dictionaries[0].min_count, 3);
  EXPECT_TRUE(resolved->graph.dictionaries[0].drops_unseen());
  EXPECT_EQ(*feature_graph_from_json(to_json(resolved->graph)), resolved->graph);
  TableOptions table;
  table.name = resolved->model.tables[0].name;
  table.min_count = 2;
  table.unseen = Unseen::row;
  options.tables = {table};
  resolved = options.resolve();
  ASSERT_TRUE(resolved.ok()) << resolved.status().message();
  EXPECT_EQ(resolved->graph.dictionaries[0].min_count, 2);
  EXPECT_FALSE(resolved->graph.dictionaries[0].drops_unseen());
  options.tables[0].mapping = Mapping::hash;
  EXPECT_EQ(options.resolve().status().message(),
            "tables[0].min_count: needs mapping = \"dictionary\"");
}

TEST(Resolve, a_dense_column_with_borders_becomes_a_feature_after_the_others) {
  Options options;
  auto bucket = feature("I1_bucket", "I1", "");
  bucket.borders = {0.5, 1.0, 1.5};
  options.features = {bucket};
  const auto resolved = options.resolve();
  ASSERT_TRUE(resolved.ok()) << resolved.status().message();
  EXPECT_EQ(resolved->model.features.back().name, "I1_bucket");
  EXPECT_EQ(resolved->model.tables.back().rows, 4);
  EXPECT_EQ(resolved->graph.features.back().source, Source::dense);
}

TEST(Resolve, errors_name_the_key) {
  const auto error = [](auto change) {
    Options options;
    change(options);
    return options.error();
  };
  EXPECT_EQ(error([](Options& o) { o.embedding.optimizer.correction = BiasCorrection::row; }),
            "embedding.optimizer.correction: 'row' is of adam, which no table has");
  EXPECT_EQ(error([](Options& o) {
              o.tables = {table_named("C1")};
              o.tables[0].correction = BiasCorrection::row;
            }),
            "tables[0].correction: 'row' is of adam (table 'C1')");
  EXPECT_EQ(error([](Options& o) {
              o.embedding.rows = {1, 2};
            }),
            "embedding.rows: 2 numbers for 3 id columns: give one number, or one for each column");
  EXPECT_EQ(error([](Options& o) { o.embedding.rows = {}; }),
            "embedding.rows: must be given and at least 1 (table 'C1')");
  EXPECT_EQ(error([](Options& o) { o.features = {feature("x", "C9", "")}; }),
            "features[0].column: 'C9' is not an id column of the data");
  EXPECT_EQ(error([](Options& o) { o.features = {feature("C2", "C1", "")}; }),
            "features[0].name: 'C2' is also an id column that becomes a feature of its own");
  EXPECT_EQ(error([](Options& o) {
              o.tables = {table_named("C1"), table_named("C1")};
            }),
            "tables[1].name: 'C1' is there twice");
  EXPECT_EQ(error([](Options& o) { o.tables = {table_named("C7")}; }),
            "tables[0].name: 'C7' is the table of no feature");
  EXPECT_EQ(
      error([](Options& o) {
        o.preprocess.dense = {"fill_null", "lg"};
      }),
      "preprocess.dense[1]: 'lg' is not an operation on dense columns: fill_null, clamp, log or "
      "standardize");
  EXPECT_EQ(error([](Options& o) {
              o.embedding.mapping = Mapping::dictionary;
              o.embedding.rows = {1};
            }),
            "embedding.rows: a dictionary needs 2 rows or more; row 0 is that of unseen ids (table "
            "'C1')");
}

TEST(FeatureGraph, survives_a_round_trip_through_json) {
  Options options;
  options.embedding.mapping = Mapping::dictionary;
  auto bucket = feature("I1_bucket", "I1", "");
  bucket.borders = {0.5, 1.0};
  options.features = {bucket};
  const auto resolved = options.resolve();
  ASSERT_TRUE(resolved.ok());
  const auto again = feature_graph_from_json(Json::parse(to_json(resolved->graph).dump()));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(*again, resolved->graph);
}

TEST(FeatureGraph, a_damaged_json_is_an_error_that_names_the_place) {
  Json json = to_json(Options().resolve()->graph);
  json["features"][1].erase("column");
  const auto graph = feature_graph_from_json(json);
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().message(), "feature graph: features[1]: key 'column' is missing");
}

}  // namespace recmill::preprocess
