// SPDX-License-Identifier: Apache-2.0
// Statistics of the training rows: exact, the same for every number of ranks, kept in checkpoints.
#include "run/fit_columns.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/json/json.h"
#include "base/testing/faulty_files.h"
#include "base/testing/shared_files.h"
#include "checkpoint/folder.h"
#include "reader/open_reader.h"
#include "run/testing/small_run.h"
#include "verify/verification.h"

namespace recmill::train {
namespace {

RunOptions standardized_run() {
  RunOptions options = small_run();
  options.data.synthetic.dense[0].missing_share = 0.2;
  options.preprocess.dense = {"standardize", "fill_null"};
  return options;
}

/// Of the op of the newest checkpoint's one dense column.
Result<Json> kept_statistics(Files& files) {
  RECMILL_ASSIGN_OR_RETURN(const auto newest, checkpoint::open_newest(files, small_checkpoints()));
  if (newest.reader == nullptr) return Status::Failed("no checkpoint");
  return Json(newest.reader->properties()["graph"]["dense"][0]["ops"][0]["parameters"]);
}

}  // namespace

TEST(FitColumns, the_checkpoint_keeps_mean_and_deviation_of_the_training_rows_at_any_ranks) {
  const RunOptions options = standardized_run();
  ThreadPool pool(1);
  auto rows = reader::open_reader(options.data, Subset::train, 0, pool, posix_files());
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  ColumnBatch batch;
  ASSERT_TRUE((*rows)->read(0, 0, 70, batch).ok());
  double sum = 0, squares = 0, count = 0;
  for (const float x : batch.dense[0]) {
    if (std::isnan(x)) continue;
    sum += x;
    ++count;
  }
  for (const float x : batch.dense[0])
    if (!std::isnan(x)) squares += (x - sum / count) * (x - sum / count);
  ASSERT_LT(count, 70);
  Json one_rank, loss;
  for (const int64_t ranks : {1, 2, 4}) {
    FaultyFiles disk;
    SharedFiles files(disk, [](const std::string&) { return Status(); });
    RunOptions run = options;
    run.train.ranks = ranks;
    run.train.threads = ranks == 2 ? 3 : 1;
    const auto summary = train(run, files);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    const auto kept = kept_statistics(files);
    ASSERT_TRUE(kept.ok()) << kept.status().message();
    EXPECT_NEAR((*kept)["mean"].get<double>(), sum / count, 1e-13 * std::fabs(sum));
    EXPECT_NEAR((*kept)["deviation"].get<double>(), std::sqrt(squares / count), 1e-13 * squares);
    if (ranks == 1) one_rank = *kept, loss = (*summary)["log_loss"];
    EXPECT_EQ(*kept, one_rank);
    EXPECT_EQ((*summary)["log_loss"], loss);
  }
}

TEST(FitColumns, evaluation_and_resuming_take_the_checkpoints) {
  FaultyFiles disk;
  SharedFiles files(disk, [](const std::string&) { return Status(); });
  RunOptions options = standardized_run();
  const auto whole = train(options, files);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  const auto kept = kept_statistics(files);
  ASSERT_TRUE(kept.ok()) << kept.status().message();
  const auto scored = score(options, files);
  ASSERT_TRUE(scored.ok()) << scored.status().message();
  EXPECT_EQ((*scored)["log_loss"], (*whole)["log_loss"]);
  options.data.synthetic.rows = 60;  // other training rows
  options.train.epochs = 4;
  ASSERT_TRUE(train(options, files, ExistingRun::resume).ok());
  EXPECT_EQ(*kept_statistics(files), *kept);
  options.preprocess.dense = {"fill_null", "standardize"};
  for (const Status& status :
       {train(options, files, ExistingRun::resume).status(), score(options, files).status()}) {
    EXPECT_NE(status.message().find("preprocess.dense: is [\"fill_null\",\"standardize\"]"),
              std::string::npos)
        << status.message();
  }
}

TEST(FitColumns, the_plain_way_finds_and_trains_the_same) {
  RunOptions options = standardized_run();
  options.preprocess.dense = {"log", "standardize", "fill_null", "standardize"};
  ThreadsWorld world;
  VerificationRequest request;
  request.ranks = {1, 4};
  const auto verified = verify(options, request, world, posix_files());
  EXPECT_TRUE(verified.ok()) << verified.status().message();
}

}  // namespace recmill::train
