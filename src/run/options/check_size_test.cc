// SPDX-License-Identifier: Apache-2.0
#include "run/options/check_size.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace recmill::train {
namespace {

using model::ModelKind;
using Change = std::function<void(RunOptions&)>;

constexpr int64_t kHuge = int64_t{1} << 55;

/// Two id columns, of which "b" may be a history, and a dense one.
Result<ResolvedRun> resolved(const Change& change) {
  RunOptions options;
  options.data.format = DataFormat::csv;
  options.embedding.rows = {100};
  options.embedding.dim = 4;
  options.model = {.kind = ModelKind::mlp, .top = {8, 1}};
  change(options);
  DataSchema schema;
  schema.dense = {"d"};
  schema.ids = {"a", "b"};
  return resolve_run(options, schema, 1);
}

std::string refusal(const Change& change) {
  const auto run = resolved(change);
  if (run.ok()) return "taken";
  EXPECT_EQ(run.status().code(), Status::Code::bad_request);
  return run.status().message();
}

void expect_refused(const Change& change, const std::string& start) {
  const std::string message = refusal(change);
  EXPECT_TRUE(message.starts_with(start)) << message;
}

TEST(CheckSize, tables_of_more_than_2_to_the_56_bytes_are_refused_by_their_key) {
  expect_refused([](RunOptions& o) { o.embedding.rows = {int64_t{1} << 62}; },
                 "embedding.rows: must be at least 1 and at most 72057594037927936, is 46116");
  expect_refused([](RunOptions& o) { o.embedding.dim = int64_t{1} << 62; },
                 "embedding.dim: must be at least 1 and at most 72057594037927936, is 46116");
  expect_refused([](RunOptions& o) { o.embedding.rows = {kHuge}; },
                 "embedding.rows: the tables take more than 2^56 bytes, with 'a' of ");
  expect_refused([](RunOptions& o) { o.embedding.dim = kHuge; },
                 "embedding.dim: the tables take more than 2^56 bytes, with 'a' of ");
  // Each of the two is possible.
  expect_refused([](RunOptions& o) { o.embedding.rows = {kHuge / 16}; },
                 "embedding.rows: the tables take more than 2^56 bytes, with 'b' of ");
  const auto with_tables = [](RunOptions& o) {
    o.tables.resize(2);
    o.tables[0].name = "a";
    o.tables[1].name = "b";
  };
  expect_refused(
      [&](RunOptions& o) {
        with_tables(o);
        o.tables[1].rows = kHuge;
      },
      "tables[1].rows: the tables take");
  expect_refused(
      [&](RunOptions& o) {
        with_tables(o);
        o.tables[1].dim = kHuge;
      },
      "tables[1].dim: the tables take");
}

TEST(CheckSize, of_a_workload_the_line_is_named) {
  const auto lines = [](RunOptions& o) {
    o.data.format = DataFormat::synthetic;
    o.data.synthetic.shape = reader::SyntheticShape::columns;
    o.workload.lines.resize(2);
    o.workload.lines[0].count = 2;
    o.workload.lines[0].dims = {4};
    o.workload.lines[1].dims = {kHuge};
    o.embedding.rows = {};
  };
  RunOptions options;
  lines(options);
  options.model = {.kind = ModelKind::mlp, .top = {8, 1}};
  DataSchema schema;
  schema.ids = {"f0", "f1", "f2"};
  const auto run = resolve_run(options, schema, 1);
  ASSERT_FALSE(run.ok());
  EXPECT_TRUE(run.status().message().starts_with("workload.lines[1].dims: the tables take"))
      << run.status().message();
}

TEST(CheckSize, rows_that_a_batch_looks_up_are_refused_where_no_machine_holds_them) {
  expect_refused(
      [](RunOptions& o) {
        o.embedding.rows = {1};
        o.embedding.dim = int64_t{1} << 50;
        o.model.top = {1};
      },
      "embedding.dim: the rows that 8192 samples look up take more than 2^56 bytes");
}

TEST(CheckSize, layers_of_every_model_are_refused_by_their_key) {
  const auto expect = [](model::ModelOptions options, const std::string& key) {
    expect_refused(
        [&](RunOptions& o) {
          o.model = options;
          if (options.kind != ModelKind::tbsm) return;
          o.features.resize(2);
          o.features[0].name = "a";
          o.features[1].name = "b";
          o.features[0].table = o.features[1].table = "t";
          o.features[1].pooling = preprocess::FeaturePooling::none;
        },
        key + ": the model's layers take more than 2^56 bytes");
  };
  using enum ModelKind;
  expect({.kind = mlp, .top = {kHuge, 1}}, "model.top[0]");
  expect({.kind = mlp, .top = {1 << 30, 1 << 30, 1}}, "model.top[1]");
  expect({.kind = dlrm, .bottom = {kHuge, 4}, .top = {1}}, "model.bottom[0]");
  expect({.kind = dlrm, .bottom = {4}, .top = {kHuge, 1}}, "model.top[0]");
  expect({.kind = wide_and_deep, .deep = {kHuge}}, "model.deep[0]");
  expect({.kind = deep_fm, .deep = {kHuge, 1}}, "model.deep[0]");
  expect({.kind = deep_cross, .bottom = {kHuge}, .over = {1}}, "model.bottom[0]");
  expect({.kind = deep_cross, .bottom = {4}, .over = {kHuge, 1}}, "model.over[0]");
  expect({.kind = deep_cross, .bottom = {4}, .over = {1}, .cross_rank = kHuge}, "model.cross_rank");
  expect({.kind = tbsm, .bottom = {4}, .top = {kHuge}, .over = {1}}, "model.top[0]");
  expect({.kind = tbsm, .bottom = {4}, .top = {4}, .over = {kHuge, 1}}, "model.over[0]");
  expect({.kind = tbsm, .bottom = {4}, .top = {4}, .over = {1}, .attention = {kHuge}},
         "model.attention[0]");
}

TEST(CheckSize, what_is_large_and_possible_is_resolved) {
  EXPECT_EQ(refusal([](RunOptions& o) { o.embedding.rows = {int64_t{1} << 44}; }), "taken");
  EXPECT_EQ(refusal([](RunOptions& o) { o.model.top = {1'000'000'000'000, 1}; }), "taken");
}

}  // namespace
}  // namespace recmill::train
