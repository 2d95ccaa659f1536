// SPDX-License-Identifier: Apache-2.0
#include "score/scoring.h"

#include <gtest/gtest.h>

#include "base/json/json.h"
#include "base/temporary_folder.h"
#include "run/testing/bags_run.h"
#include "run/testing/small_run.h"

namespace recmill::train {
namespace {

class Scoring : public testing::Test {
 protected:
  Scoring() : options_(bags_run(400)) {
    options_.name = "scored";
    options_.data.synthetic.eval_rows = 150;
    for (WorkloadLine& line : options_.workload.lines) {
      line.law = reader::IdLaw::zipf;
      line.zipf = 1.2;
      line.dims = {40};
    }
    options_.embedding.optimizer.kind = OptimizerKind::adam;
    options_.optimizer.kind = DenseOptimizerKind::adam;
    options_.train.runs = folder_.path();
    options_.train.iterations = 4;
    options_.train.eval_batch_size = 64;
    options_.train.slices = 8;
    options_.train.threads = 2;
    options_.placement.count_samples = 300;
  }
  void SetUp() override {
    const auto trained = train(options_, posix_files());
    ASSERT_TRUE(trained.ok()) << trained.status().message();
    local_ = predictions(options_);
    ASSERT_GT(local_.size(), 1000u);
  }

  Result<Json> score(const RunOptions& options,
                     const std::optional<RequestOptions>& latency = std::nullopt) {
    ThreadsWorld world;
    const JobIdentity identity{.build = "", .config = "# small\n"};
    const ScoringRequest request{.checkpoint = "",
                                 .predictions = folder_.path() + "/predictions.parquet",
                                 .latency = latency};
    return run_scoring(
        options, request,
        {.files = posix_files(), .world = world, .commit = "", .identity = identity});
  }
  /// The bytes of their file.
  std::string predictions(const RunOptions& options,
                          const std::optional<RequestOptions>& latency = std::nullopt) {
    const auto metrics = score(options, latency);
    EXPECT_TRUE(metrics.ok()) << metrics.status().message();
    return *read_text(posix_files(), folder_.path() + "/predictions.parquet");
  }

  TemporaryFolder folder_;
  RunOptions options_;
  std::string local_;  // of the local store at one rank
};

TEST_F(Scoring, gives_the_same_bits_wherever_a_planner_puts_rows) {
  options_.embedding.store = StoreKind::placed;
  for (const auto& [planner, name] : EnumNames<placement::PlannerKind>::names) {
    // Of few partitions and devices a program is soon solved.
    const bool milp = planner == placement::PlannerKind::milp;
    options_.placement.access_threshold = options_.placement.memory_threshold = milp ? 0.3 : 0.05;
    for (int ranks = 1; ranks <= (milp ? 2 : 4); ++ranks) {
      for (const bool dedup : {false, true}) {
        options_.placement.planner = planner;
        options_.train.ranks = ranks;
        options_.placement.dedup_fetch = dedup;
        EXPECT_TRUE(predictions(options_) == local_) << name << " at " << ranks << ", " << dedup;
      }
    }
  }
}

TEST_F(Scoring, answers_requests_with_the_bits_of_evaluation_batches_as_large) {
  for (const int64_t samples : {1, 7, 150}) {
    options_.train.eval_batch_size = samples;
    RunOptions placed = options_;
    placed.embedding.store = StoreKind::placed;
    placed.placement.planner = placement::PlannerKind::oper;
    const std::string expected = predictions(options_);
    for (const int ranks : {1, 3}) {
      for (const double rate : {0.0, 5000.0}) {
        placed.train.ranks = ranks;
        EXPECT_TRUE(predictions(placed, RequestOptions{.rate = rate}) == expected)
            << samples << " at " << ranks << ", " << rate;
      }
    }
  }
}

TEST_F(Scoring, answers_several_requests_at_once_with_the_bits_of_one_after_the_other) {
  options_.train.eval_batch_size = 7;
  const std::string expected = predictions(options_);
  for (const StoreKind store : {StoreKind::plain, StoreKind::local, StoreKind::placed}) {
    RunOptions of_store = options_;
    of_store.embedding.store = store;
    of_store.placement.planner = placement::PlannerKind::oper;
    for (const double rate : {0.0, 5000.0}) {
      for (const int64_t concurrency : {1, 2, 8, 100}) {
        EXPECT_TRUE(predictions(of_store, RequestOptions{.rate = rate,
                                                         .concurrency = concurrency}) == expected)
            << name_of(store) << ", " << concurrency << " at " << rate;
      }
    }
  }
}

TEST_F(Scoring, refuses_requests_at_once_where_ranks_or_a_gpu_take_one_after_the_other) {
  const auto refusal = [&](const RunOptions& options) {
    return score(options, RequestOptions{.concurrency = 4}).status().message();
  };
  RunOptions ranks = options_;
  ranks.train.ranks = 3;
  EXPECT_EQ(refusal(ranks),
            "--concurrency: is 4, but train.ranks is 3: several ranks look up the rows of one "
            "request at a time, together; use 1 of either");
  RunOptions gpu = options_;
  gpu.device = DeviceKind::emulated;
  EXPECT_EQ(refusal(gpu),
            "--concurrency: is 4, but device is \"emulated\": a GPU computes one request at a "
            "time; use 1, or device = \"cpu\"");
  EXPECT_TRUE(score(options_, RequestOptions{.concurrency = 4}).ok());
}

TEST_F(Scoring, reports_the_requests_that_count) {
  options_.train.ranks = 2;
  options_.train.eval_batch_size = 7;
  const auto closed = score(options_, RequestOptions{.warmup = 3});
  ASSERT_TRUE(closed.ok()) << closed.status().message();
  const Json& report = closed->at("latency");
  EXPECT_EQ(report["loop"], "closed");
  EXPECT_EQ(report["requests"], 19);  // of 22
  EXPECT_EQ(report["warmup"], 3);
  EXPECT_EQ(report["request_samples"], 7);
  EXPECT_EQ(report["ranks"], 2);
  EXPECT_EQ(report["concurrency"], 1);
  EXPECT_GT(report["received_bytes"].get<double>(), 0.0);
  EXPECT_EQ(report["stages"]["queue"]["largest"], 0.0);
  EXPECT_GE(report["milliseconds"]["largest"], report["milliseconds"]["p50"]);
  EXPECT_GT(report["requests_per_second"].get<double>(), 0.0);

  const auto open = score(options_, RequestOptions{.rate = 1e9});  // all due at once
  ASSERT_TRUE(open.ok()) << open.status().message();
  EXPECT_EQ(open->at("latency")["loop"], "open");
  EXPECT_EQ(open->at("latency")["warmup"], 2);
  EXPECT_GT(open->at("latency")["stages"]["queue"]["largest"].get<double>(), 0.0);
  EXPECT_EQ(open->at("log_loss"), closed->at("log_loss"));

  options_.train.ranks = 1;
  const auto at_once = score(options_, RequestOptions{.warmup = 3, .concurrency = 4});
  ASSERT_TRUE(at_once.ok()) << at_once.status().message();
  EXPECT_EQ(at_once->at("latency")["concurrency"], 4);
  EXPECT_EQ(at_once->at("latency")["requests"], 19);
  EXPECT_EQ(at_once->at("latency")["received_bytes"], 0.0);
  EXPECT_EQ(at_once->at("log_loss"), closed->at("log_loss"));
  const auto none = score(options_, RequestOptions{.warmup = 22});
  EXPECT_TRUE(none.status().code() == Status::Code::bad_request);
  EXPECT_EQ(none.status().message(), "--warmup: is 22, which leaves none of 22 requests");
}

TEST_F(Scoring, is_refused_before_memory_is_taken_that_is_not_there) {
  options_.embedding.store = StoreKind::placed;
  RunOptions rows = options_;
  rows.workload.lines[0].law = reader::IdLaw::uniform;
  rows.workload.lines[0].zipf = 0.0;
  rows.workload.lines[0].rows = int64_t{1} << 31;
  rows.workload.lines[0].dims = {4096};
  const auto tables = score(rows);
  EXPECT_TRUE(tables.status().code() == Status::Code::bad_request);
  EXPECT_NE(tables.status().message().find("embedding.rows: this run needs "), std::string::npos)
      << tables.status().message();
  RunOptions many = options_;
  many.data.synthetic.eval_rows = int64_t{1} << 40;
  const auto requests = score(many, RequestOptions());
  EXPECT_TRUE(requests.status().code() == Status::Code::bad_request);
  EXPECT_NE(requests.status().message().find("data.eval: this run needs "), std::string::npos)
      << requests.status().message();
}

TEST_F(Scoring, asks_for_no_memory_of_rows_that_are_not_scored) {
  options_.name = "wide";
  for (WorkloadLine& line : options_.workload.lines) line.dims = {4096};
  options_.train.eval_batch_size = 150;
  ASSERT_TRUE(train(options_, posix_files()).ok());
  const std::string expected = predictions(options_);
  options_.train.eval_batch_size = 1 << 24;  // whose rows would take more than 256 GiB
  EXPECT_TRUE(predictions(options_) == expected);
}

TEST_F(Scoring, counts_no_gradients_before_memory_of_a_gpu_is_taken) {
  options_.device = DeviceKind::emulated;
  options_.kernels.cache = folder_.path();
  options_.gpu.memory_gib = 1e-6;
  options_.train.eval_batch_size = 1 << 20;  // of which there are 150 rows
  const auto refused = score(options_);
  EXPECT_TRUE(refused.status().code() == Status::Code::bad_request);
  const std::string& why = refused.status().message();
  EXPECT_NE(why.find("gpu.rows = \"device\": the run takes "), std::string::npos) << why;
  EXPECT_NE(why.find("; largest: table "), std::string::npos) << why;
  EXPECT_EQ(why.find("looked-up rows"), std::string::npos) << why;
}

}  // namespace
}  // namespace recmill::train
