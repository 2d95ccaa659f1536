// SPDX-License-Identifier: Apache-2.0
#include "run/placement/replanner.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>

#include "base/json/json.h"
#include "comm/threads.h"

namespace recmill::train {
namespace {

constexpr int kRanks = 4, kTables = 3;
constexpr int64_t kRows = 20'000, kDim = 16, kSamples = 256;  // of a rank
constexpr int64_t kEvery = 12, kDrift = 24, kIterations = 60;

ModelSpec model() {
  ModelSpec model;
  for (int t = 0; t < kTables; ++t) {
    const std::string name = "t" + std::to_string(t);
    model.tables.push_back({.name = name, .rows = kRows, .dim = kDim, .optimizer = {}});
    model.tables.back().optimizer.kind = OptimizerKind::rowwise_adagrad;
    model.features.push_back({.name = name, .table = t});
  }
  return model;
}

/// One row of each table a sample, by Zipf's law; `shift` says which ranks rows have.
SparseBatch draw(uint64_t seed, int64_t shift) {
  static const std::vector<double> weights = [] {
    std::vector<double> of_rank;
    for (int64_t k = 0; k < kRows; ++k)
      of_rank.push_back(std::pow(static_cast<double>(k + 1), -1.1));
    return of_rank;
  }();
  std::discrete_distribution<int64_t> law(weights.begin(), weights.end());
  std::mt19937_64 random(seed);
  SparseBatch batch;
  batch.samples = kSamples;
  for (int t = 0; t < kTables; ++t) {
    SparseFeature feature{{}, {}, {}, true};
    feature.offsets.resize(kSamples + 1);
    std::iota(feature.offsets.begin(), feature.offsets.end(), 0);
    for (int64_t i = 0; i < kSamples; ++i)
      feature.rows.push_back((law(random) * 7919 + shift) % kRows);
    batch.features.push_back(std::move(feature));
  }
  return batch;
}

ReplanSetting setting_of(ThreadPool& pool) {
  ReplanSetting setting;
  const ModelSpec spec = model();
  auto counter = *stats::AccessCounter::create(spec, "");
  for (uint64_t i = 0; i < 40; ++i) counter.add(draw(1'000'000 + i, 0), pool);
  for (const TableSpec& table : spec.tables)
    setting.problem.tables.push_back({table, kDim * 4 + 4});
  setting.problem.counts = counter.finish(pool);
  setting.problem.cluster = placement::equal_devices(kRanks, int64_t{1} << 30);
  for (LinkSpec& link : setting.problem.cluster.links) link.byte_seconds *= 1e-9;
  setting.problem.samples = kSamples;
  setting.problem.dedup_fetch = false;
  setting.every = kEvery;
  setting.end = 10 * kIterations;
  return setting;
}

struct Seen {
  std::vector<Replanner::Command> commands;  // of looks
  std::vector<double> sent;                  // [iterations], bytes of rank 0
  int64_t adopted = -1;                      // before this iteration
};

/// Trains on rows that are looked up otherwise from iteration `drift` on; each look ends before the
/// next iteration. The first plan is OPER's; `planner` makes others, for devices of `memory` bytes.
Seen train(uint64_t seed, int64_t drift,
           placement::PlannerKind planner = placement::PlannerKind::oper,
           int64_t memory = int64_t{1} << 30) {
  Seen seen;
  const ModelSpec spec = model();
  const Status status = run_ranks(kRanks, [&](Communicator& communicator) -> Status {
    ThreadPool pool(1);
    ReplanSetting setting = setting_of(pool);
    RECMILL_ASSIGN_OR_RETURN(auto proposal,
                             plan_placement(setting.problem, setting.planner, setting.options));
    setting.planner = planner;
    for (DeviceSpec& device : setting.problem.cluster.devices) device.memory_bytes = memory;
    RECMILL_ASSIGN_OR_RETURN(auto placed,
                             table::PlacedTables::create(proposal.plan, spec.tables, kRanks));
    store::ShardedOptions placing;
    placing.dedup_fetch = placing.share_rows = false;
    RECMILL_ASSIGN_OR_RETURN(
        const auto store, store::PlacedStore::create(spec, 1, communicator, pool, placed, placing));
    RECMILL_ASSIGN_OR_RETURN(
        const auto replanner,
        Replanner::create(
            std::move(setting), proposal.plan, spec, *store, communicator, pool,
            [](int64_t, const Json&, const std::string&) { return Status(); }, 0));
    std::vector<float> rows(kSamples * kTables * kDim);
    std::vector<store::FeatureOutput> output;
    std::vector<store::FeatureGradient> gradient;
    for (int t = 0; t < kTables; ++t) {
      output.push_back({rows.data() + t * kDim, kTables * kDim});
      gradient.push_back({rows.data() + t * kDim, kTables * kDim});
    }
    Stream stream(pool);
    for (int64_t i = 0; i < kIterations; ++i) {
      const uint64_t number = (seed * kIterations + static_cast<uint64_t>(i)) * kRanks +
                              static_cast<uint64_t>(communicator.rank());
      const SparseBatch sparse = draw(number, i < drift ? 0 : kRows / 2);
      store::Batch batch;
      batch.iteration = i;
      batch.cut = {kSamples * kRanks, kRanks};
      batch.first_slice = communicator.rank();
      batch.end_slice = communicator.rank() + 1;
      batch.sparse = &sparse;
      batch.plan = std::make_shared<const StepPlan>(StepPlan{i, i});
      RECMILL_ASSIGN_OR_RETURN(const auto prepared, store->prepare(batch));
      const uint64_t before = communicator.traffic().sent;
      RECMILL_RETURN_IF_ERROR(store->lookup(*prepared, output, stream));
      const store::Update update{prepared.get(), gradient};
      RECMILL_RETURN_IF_ERROR(store->update({&update, 1}, {i, 1.0}, stream));
      if (communicator.rank() == 0)
        seen.sent.push_back(static_cast<double>(communicator.traffic().sent - before));
      RECMILL_RETURN_IF_ERROR(replanner->see(sparse, i));
      auto command = Replanner::Command::look;
      for (bool looked = false; command == Replanner::Command::look; looked = true) {
        if (communicator.rank() == 0) {
          do {
            RECMILL_ASSIGN_OR_RETURN(const auto proposal, replanner->propose(i + 1));
            command = static_cast<Replanner::Command>(proposal);
            std::this_thread::sleep_for(std::chrono::milliseconds(looked ? 1 : 0));
          } while (looked && command == Replanner::Command::go_on);
          if (looked) seen.commands.push_back(command);
          if (command == Replanner::Command::adopt) seen.adopted = i + 1;
        }
        RECMILL_RETURN_IF_ERROR(
            communicator.broadcast(std::as_writable_bytes(std::span(&command, 1)), 0));
        RECMILL_RETURN_IF_ERROR(replanner->adopt(static_cast<LoopHook::Proposal>(command), i + 1));
      }
    }
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return seen;
}

double mean(const std::vector<double>& values, int64_t begin, int64_t end) {
  return std::accumulate(values.begin() + begin, values.begin() + end, 0.0) /
         static_cast<double>(end - begin);
}

TEST(Replanner, places_rows_anew_once_after_they_are_looked_up_otherwise) {
  const Seen seen = train(1, kDrift);
  EXPECT_EQ(std::ranges::count(seen.commands, Replanner::Command::adopt), 1);
  ASSERT_EQ(seen.adopted, kDrift + kEvery);
  const double before = mean(seen.sent, 0, kDrift);
  const double drifted = mean(seen.sent, kDrift, seen.adopted);
  const double after = mean(seen.sent, seen.adopted + 2, kIterations);
  EXPECT_GT(drifted, 1.3 * before);
  EXPECT_LE(after, 1.2 * before);
}

TEST(Replanner, leaves_rows_where_they_are_while_nothing_changes) {
  for (const uint64_t seed : {2, 3, 4}) {
    const Seen seen = train(seed, kIterations);
    EXPECT_EQ(std::ssize(seen.commands), kIterations / kEvery);
    EXPECT_EQ(std::ranges::count(seen.commands, Replanner::Command::keep), kIterations / kEvery);
  }
}

TEST(Replanner, takes_no_plan_that_does_not_fit) {
  constexpr int64_t kAll = kTables * kRows * (kDim * 4 + 4);
  const auto by_accesses = placement::PlannerKind::access_greedy;  // whatever the memory
  EXPECT_EQ(train(5, kDrift, by_accesses).adopted, kDrift + kEvery);
  EXPECT_EQ(train(5, kDrift, by_accesses, kAll / kRanks / 2).adopted, -1);
}

}  // namespace
}  // namespace recmill::train
