// SPDX-License-Identifier: Apache-2.0
#include "run/checkpoint/row_digest.h"

#include <gtest/gtest.h>

#include <functional>

namespace recmill::train {
namespace {

std::string digest(const std::function<void(RunOptions&)>& change = {},
                   std::vector<std::string> columns = {"user", "item"}) {
  RunOptions options;
  options.embedding.rows = {100, 200};
  options.model.kind = model::ModelKind::mlp;
  options.model.top = {4, 1};
  if (change) change(options);
  DataSchema schema;
  schema.ids = std::move(columns);
  schema.dense = {"x"};
  const auto run = resolve_run(options, schema, 1);
  EXPECT_TRUE(run.ok()) << run.status().message();
  return row_digest(*run);
}

TEST(RowDigest, IsOfWhatRowsMean) {
  const std::string expected = digest();
  EXPECT_EQ(expected.size(), 16u);
  EXPECT_EQ(digest(), expected);
  EXPECT_NE(digest([](RunOptions& o) { o.embedding.rows = {100, 201}; }), expected);
  EXPECT_NE(digest([](RunOptions& o) { o.embedding.mapping = preprocess::Mapping::modulo; }),
            expected);
  EXPECT_NE(digest([](RunOptions& o) { o.embedding.max_length = 3; }), expected);
  EXPECT_NE(digest({}, {"user", "shop"}), expected);
}

TEST(RowDigest, IsOfNothingElse) {
  const std::string expected = digest();
  EXPECT_EQ(digest([](RunOptions& o) {
              o.embedding.dim = 8;
              o.embedding.optimizer.kind = OptimizerKind::sgd;
              o.embedding.pooling = preprocess::FeaturePooling::mean;
              o.embedding.sharding = Sharding::column;
              o.train.seed = 9;
              o.train.batch_size = 77;
              o.train.threads = 3;
              o.data.train = {"another.tsv"};
            }),
            expected);
}

TEST(RowDigest, OfDictionariesIsAlsoOfTheDataAndItsOrder) {
  const auto with = [](const std::function<void(RunOptions&)>& change) {
    return digest([&](RunOptions& o) {
      o.embedding.mapping = preprocess::Mapping::dictionary;
      o.data.train = {"a.tsv"};
      change(o);
    });
  };
  const std::string expected = with([](RunOptions&) {});
  EXPECT_EQ(with([](RunOptions& o) { o.data.cache = "elsewhere"; }), expected);
  EXPECT_NE(with([](RunOptions& o) { o.data.train = {"b.tsv"}; }), expected);
  EXPECT_NE(with([](RunOptions& o) { o.data.shuffle.kind = ShuffleKind::window; }), expected);
  EXPECT_NE(with([](RunOptions& o) { o.train.seed = 9; }), expected);
}

}  // namespace
}  // namespace recmill::train
