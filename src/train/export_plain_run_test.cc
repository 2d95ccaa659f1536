// SPDX-License-Identifier: Apache-2.0
#include "train/export_plain_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "checkpoint/npy.h"
#include "comm/threads.h"
#include "run/rank.h"
#include "run/testing/small_run.h"

namespace recmill::train {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

using Shape = std::vector<int64_t>;

/// 40 rows in batches of 16, twice; two tables; 10 evaluation rows in batches of 8.
RunOptions exported_run() {
  RunOptions options = generated_run(40);
  options.embedding.optimizer.learning_rate = 0.5;
  options.optimizer.learning_rate = 0.25;
  options.train.batch_size = 16;
  options.train.eval_batch_size = 8;
  options.train.epochs = 2;
  options.train.slices = 2;
  options.train.warmup.iterations = 2;
  return options;
}

ResolvedRun resolved(const RunOptions& options) {
  auto run = resolve_run(options, posix_files());
  EXPECT_TRUE(run.ok()) << run.status().message();
  return *std::move(run);
}

struct ExportPlainRun : testing::Test {
  template <typename T>
  std::vector<T> values_of(const std::string& name, const Shape& shape) {
    auto file = checkpoint::open_npy(posix_files(), folder.path() + "/" + name + ".npy", name);
    EXPECT_TRUE(file.ok()) << file.status().message();
    if (!file.ok()) return {};
    const checkpoint::EntrySpec& spec = (*file)->tensors()[0].spec;
    EXPECT_EQ(shape, spec.shape) << name;
    EXPECT_EQ(int64_t{sizeof(T)}, checkpoint::size_of(spec.type)) << name;
    std::vector<T> values(checkpoint::tensor_bytes(spec) / sizeof(T));
    EXPECT_TRUE((*file)->read(0, 0, std::as_writable_bytes(std::span(values))).ok());
    return values;
  }

  const TemporaryFolder folder;
};

TEST_F(ExportPlainRun, writes_every_training_batch_of_every_epoch_and_the_last_evaluation) {
  const Status status = export_plain_run(resolved(exported_run()), posix_files(), folder.path());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(values_of<int64_t>("train/batches", {7}), ElementsAre(0, 16, 32, 40, 56, 72, 80));
  EXPECT_THAT(values_of<int64_t>("eval/batches", {3}), ElementsAre(0, 8, 10));
  const auto dense = values_of<float>("train/dense", {80, 1});
  ASSERT_EQ(80u, dense.size());
  EXPECT_TRUE(std::equal(dense.begin(), dense.begin() + 40, dense.begin() + 40))
      << "the second epoch is the first again";
  EXPECT_EQ(10u, values_of<float>("eval/labels", {10}).size());
  const auto offsets = values_of<int64_t>("train/offsets_1", {81});
  ASSERT_EQ(81u, offsets.size());
  EXPECT_GT(offsets.back(), 80) << "cells of several words";
  const auto rows = values_of<int64_t>("train/rows_1", {offsets.back()});
  EXPECT_THAT(rows, Each(testing::AllOf(testing::Ge(0), testing::Lt(100))));
  values_of<int64_t>("eval/rows_0", {10});
}

TEST_F(ExportPlainRun, learning_rates_are_those_of_parameters_and_tables_after_warm_up) {
  RunOptions options = exported_run();
  preprocess::TableOptions frozen;
  frozen.name = "words";
  frozen.frozen = true;
  options.tables = {frozen};
  options.train.epochs = 1;
  const Status status = export_plain_run(resolved(options), posix_files(), folder.path());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(values_of<double>("train/learning_rates", {3, 3}),
              ElementsAre(0.125, 0.25, 0.0, 0.25, 0.5, 0.0, 0.25, 0.5, 0.0));
}

TEST_F(ExportPlainRun, rows_and_parameters_are_those_that_training_begins_with) {
  const ResolvedRun run = resolved(exported_run());
  ASSERT_TRUE(export_plain_run(run, posix_files(), folder.path()).ok());
  const auto pool = make_pool(1);
  const Status status = run_ranks(1, [&](Communicator& communicator) -> Status {
    RECMILL_ASSIGN_OR_RETURN(Rank rank,
                             make_rank(run, Way::plain, communicator, *pool, posix_files()));
    std::vector<std::vector<float>> tables(run.spec.tables.size());
    RECMILL_RETURN_IF_ERROR(rank.store->read_rows([&](const store::RowBlock& block) {
      auto& table = tables[block.table];
      table.insert(table.end(), block.weights.begin(), block.weights.end());
      return Status();
    }));
    EXPECT_EQ(tables[0], values_of<float>("tables/0", {100, 4}));
    EXPECT_EQ(tables[1], values_of<float>("tables/1", {100, 4}));
    for (const model::ParameterSpec& spec : rank.model->parameters()) {
      const float* first = rank.trainer->parameters().data() + spec.offset;
      EXPECT_EQ(std::vector<float>(first, first + spec.size()),
                values_of<float>("parameters/" + spec.name, spec.shape));
    }
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(ExportPlainRun, names_the_key_that_the_plain_script_cannot_repeat) {
  const auto message_of = [&](const auto& change) {
    RunOptions options = exported_run();
    change(options);
    const Status status = export_plain_run(resolved(options), posix_files(), folder.path());
    EXPECT_EQ(Status::Code::bad_request, status.code());
    return status.message();
  };
  EXPECT_THAT(message_of([](RunOptions& o) { o.train.ranks = 2; }), HasSubstr("train.ranks"));
  EXPECT_THAT(message_of([](RunOptions& o) { o.train.negative_keep = 0.5; }),
              HasSubstr("train.negative_keep"));
  EXPECT_THAT(message_of([](RunOptions& o) { o.data.synthetic.eval_rows = 0; }),
              HasSubstr("data.eval"));
  EXPECT_FALSE(posix_files().exists(folder.path() + "/train/dense.npy"));
}

}  // namespace
}  // namespace recmill::train
