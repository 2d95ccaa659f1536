// SPDX-License-Identifier: Apache-2.0
// Ranks that have one GPU among them.
#include "run/gpu/gpu_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "run/gpu/gpu_run.h"

namespace recmill::train {
namespace {

constexpr int64_t kMiB = 1 << 20;

TEST(GpuMemory, RanksOfAHostTakeItsGpusInTurn) {
  const std::vector<int> host{1, 2, 5, 6, 7};  // of several hosts
  EXPECT_EQ(ranks_of_same_gpu({0, host}, 2), (std::vector<int>{1, 5, 7}));
  EXPECT_EQ(ranks_of_same_gpu({3, host}, 2), (std::vector<int>{2, 6}));
  EXPECT_EQ(ranks_of_same_gpu({4, host}, 2), (std::vector<int>{1, 5, 7}));
  EXPECT_EQ(ranks_of_same_gpu({2, host}, 1), host);
  EXPECT_EQ(ranks_of_same_gpu({2, host}, 5), std::vector<int>{5});
  EXPECT_EQ(ranks_of_same_gpu({2, host}, 8), std::vector<int>{5});
  EXPECT_EQ(ranks_of_same_gpu({2, host}, 0), std::vector<int>{5}) << "each has its own";
}

GpuPlan plan(int rank, int64_t rows, int64_t activations) {
  GpuPlan made;
  made.rank = rank;
  made.need.device.items = {{"table T" + std::to_string(rank), rank, rows},
                            {"activations", rank, activations, /*certain=*/false}};
  return made;
}

TEST(GpuMemory, WhatRanksTakeOfOneGpuIsAddedUp) {
  ResolvedRun run;
  run.ranks = 4;
  run.spec.tables.resize(4);
  run.options.gpu.rows = GpuRowsIn::device;
  const std::vector<GpuPlan> plans{plan(1, 3 * kMiB, kMiB), plan(3, 2 * kMiB, kMiB)};
  EXPECT_TRUE(check_gpu_memory(run, plans, 5 * kMiB).ok());
  EXPECT_EQ(
      check_gpu_memory(run, plans, 4 * kMiB).message(),
      "gpu.rows = \"device\": ranks 1, 3 on one GPU take 5.0 MiB of the GPU's memory, of which "
      "it has 4.0 MiB; largest: table T1 3.0 MiB, table T3 2.0 MiB; the largest table: table T1 "
      "3.0 MiB; with \"fit\" or \"host\" rows are stored in the host's memory");
  const std::span one(plans.begin(), 1);
  EXPECT_TRUE(check_gpu_memory(run, one, 4 * kMiB).ok());
  EXPECT_NE(check_gpu_memory(run, one, 2 * kMiB).message().find(": rank 1 takes 3.0 MiB of"),
            std::string::npos);
  run.spec.tables.resize(1);
  GpuPlan alone = plan(0, kMiB, 0);
  alone.held.tables = {0};
  alone.need.device.items.push_back({"bags", 0, 3 * kMiB});
  run.options.gpu.memory_gib = 2.0 / 1024;
  EXPECT_EQ(check_gpu_memory(run, std::span(&alone, 1), 2 * kMiB).message(),
            "gpu.rows = \"device\": the run takes 4.0 MiB of the GPU's memory, of which "
            "gpu.memory_gib leaves it 2.0 MiB; largest: bags 3.0 MiB, table T0 1.0 MiB")
      << "without the table it takes too much too";
}

/// Two tables of as many bytes, of which each of two ranks has one.
ResolvedRun two_ranks() {
  ResolvedRun run;
  run.ranks = run.slices = 2;
  run.options.device = DeviceKind::emulated;
  run.options.gpu.rows = GpuRowsIn::fit;
  for (const int t : {0, 1}) {
    TableSpec table;
    table.name = "T" + std::to_string(t);
    table.rows = 1 << 16;
    table.dim = 16;
    table.sharding = Sharding::table;
    table.optimizer.kind = OptimizerKind::sgd;
    run.spec.features.push_back({.name = table.name, .table = t});
    run.spec.tables.push_back(table);
    preprocess::Chain& chain = run.graph.features.emplace_back();
    chain.column = table.name;
    chain.ops = {{"fill_missing_id", Json{{"id", 0}}}, {"modulo", Json{{"rows", table.rows}}}};
  }
  return run;
}

TEST(GpuMemory, RowsFitTheShareOfEachRank) {
  const ResolvedRun run = two_ranks();
  const std::vector<int> both{0, 1};
  int64_t all = 0;  // of the rank that takes more
  for (const GpuPlan& plan : plan_gpu(run, int64_t{1} << 40, both))
    all = std::max(all, plan.need.device.total(plan.rank));
  const auto rows_of = [](const GpuPlan& plan) { return plan.rows[plan.held.tables.at(0)].memory; };
  for (const auto& [usable, expected] :
       {std::pair{2 * all, GpuMemory::device}, std::pair{2 * (all - 2 * kMiB), GpuMemory::host}}) {
    const auto plans = plan_gpu(run, usable, both);
    ASSERT_EQ(plans.size(), 2u);
    for (const int rank : both) {
      EXPECT_EQ(plans[rank].rank, rank);
      EXPECT_EQ(rows_of(plans[rank]), expected) << rank;
    }
    EXPECT_TRUE(check_gpu_memory(run, plans, usable).ok());
  }
  EXPECT_EQ(rows_of(plan_gpu(run, all, std::span(&both[1], 1))[0]), GpuMemory::device)
      << "a GPU of its own";
}

/// What the first rank takes of its GPU and of the host, for certain or in all.
struct Bytes {
  int64_t certain = 0, all = 0;
  bool operator==(const Bytes&) const = default;
};
Bytes bytes_of(const ResolvedRun& run) {
  const store::GpuLedger need = plan_gpu(run, 0, std::vector{0})[0].need;
  Bytes bytes;
  for (const auto* of : {&need.device, &need.pinned}) {
    for (const MemoryItem& item : of->items) {
      bytes.all += item.bytes;
      if (item.certain) bytes.certain += item.bytes;
    }
  }
  return bytes;
}

TEST(GpuMemory, LargerBatchesOfEvaluationAreNotCertain) {
  for (const int ranks : {1, 2}) {
    for (const bool deterministic : {true, false}) {  // layers are the CPU's, or the GPU's
      ResolvedRun run = two_ranks();
      run.ranks = ranks;
      TrainOptions& train = run.options.train;
      train.deterministic = deterministic;
      run.options.data.split.by = SplitKind::fraction;
      train.batch_size = train.eval_batch_size = 100;
      const Bytes alike = bytes_of(run);
      train.eval_batch_size = 10'000;
      EXPECT_EQ(bytes_of(run).certain, alike.certain) << ranks << deterministic;
      EXPECT_GT(bytes_of(run).all, 2 * alike.all - alike.certain) << ranks << deterministic;
      run.options.data.split.by = SplitKind::file;
      EXPECT_EQ(bytes_of(run), alike) << "no rows are named";
      train.batch_size = 10'000;
      EXPECT_GT(bytes_of(run).certain, alike.certain) << ranks << deterministic;
    }
  }
}

TEST(GpuMemory, BatchesHaveNoMoreRowsThanTheDataHas) {
  ResolvedRun run = two_ranks();
  run.options.data.format = DataFormat::synthetic;
  run.options.data.synthetic.rows = run.options.train.batch_size = 10'000;
  const Bytes all = bytes_of(run);
  run.options.train.batch_size = 100'000;
  EXPECT_EQ(bytes_of(run), all);
  run.options.data.synthetic.rows = 100'000;
  EXPECT_GT(bytes_of(run).certain, all.certain);
  run.options.data.rows = 10'000;  // of which the first ones are read
  EXPECT_EQ(bytes_of(run), all);
  run.options.data.format = DataFormat::csv;
  EXPECT_EQ(bytes_of(run), all);
}

// Features with one lookup in each bag share their offsets, which those that have it on average
// may not.
TEST(GpuMemory, OffsetsOfBagsAreCertainWhereTheyCannotBeShared) {
  ResolvedRun run = two_ranks();
  run.ranks = 1;
  run.options.train.batch_size = 10'000;
  const auto offsets = [&] {
    int64_t bytes = 0;
    const auto plans = plan_gpu(run, 0, std::vector{0});
    for (const MemoryItem& item : plans[0].need.device.items)
      if (item.what.starts_with("offsets of bags")) bytes += item.certain ? -1 : item.bytes;
    return bytes;
  };
  const int64_t of_one = 10'001 * 8 * (run.options.train.queue + 2);
  EXPECT_GE(offsets(), of_one);
  EXPECT_LT(offsets(), 2 * of_one);
  run.spec.features.pop_back();
  run.spec.tables.pop_back();
  run.graph.features.pop_back();
  EXPECT_EQ(offsets(), 0);
}

TEST(GpuMemory, WhatIsOnlyScoredHasNoGradients) {
  for (const bool deterministic : {true, false}) {
    ResolvedRun run = two_ranks();
    run.ranks = 1;
    run.options.train.deterministic = deterministic;
    run.options.data.split.by = SplitKind::fraction;
    run.options.train.batch_size = run.options.train.eval_batch_size = 10'000;
    const Bytes trained = bytes_of(run);
    run.options.train.epochs = 0;
    run.options.train.batch_size = 1;
    const Bytes scored = bytes_of(run);
    run.options.train.batch_size = 20'000;
    EXPECT_EQ(bytes_of(run), scored);
    EXPECT_LT(scored.all, trained.all) << deterministic;
    EXPECT_LT(scored.certain, trained.certain) << deterministic;
    run.options.train.eval_batch_size = 20'000;
    EXPECT_EQ(bytes_of(run).certain, scored.certain) << deterministic;
    EXPECT_GT(bytes_of(run).all, scored.all) << deterministic;
  }
}

}  // namespace
}  // namespace recmill::train
