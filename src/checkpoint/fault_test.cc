// SPDX-License-Identifier: Apache-2.0
// Whatever fails, and whenever: the newest whole checkpoint loads, and nothing half-written is
// taken for whole.
#include <gtest/gtest.h>

#include "base/testing/faulty_files.h"
#include "checkpoint/folder.h"
#include "checkpoint/testing/small_checkpoint.h"

namespace recmill::checkpoint {
namespace {

constexpr int64_t kSteps = 3;

/// Writes checkpoints 1, 2, 3, keeping the last `keep`; returns the last one reported as written.
int64_t write_steps(Files& files, int64_t keep, int parts) {
  for (int64_t step = 1; step <= kSteps; ++step) {
    if (!write_small(files, "run/ck", step, parts).ok()) return step - 1;
    if (!keep_last(files, "run/ck", keep).ok()) return step;
  }
  return kSteps;
}

/// What must hold after any failure once `reported` has been reported as written.
void expect_sound(FaultyFiles& files, int64_t reported) {
  auto newest = open_newest(files, "run/ck");
  ASSERT_TRUE(newest.ok()) << newest.status().message();
  if (newest->reader == nullptr) {
    EXPECT_EQ(reported, 0) << "a checkpoint is lost";
    return;
  }
  EXPECT_GE(newest->reader->step(), reported) << "a checkpoint is lost";
  const Status status = check_small(*newest->reader);
  EXPECT_TRUE(status.ok()) << status.message();
  const auto steps = *list_steps(files, "run/ck");
  for (const int64_t step : steps) {
    auto reader = Reader::open(files, "run/ck/" + folder_name(step));
    if (reader.ok()) {
      EXPECT_TRUE(check_small(**reader).ok()) << "half of step " << step << " passes for whole";
    }
  }
}

/// The next attempt, after the fault is gone, ends with all steps written.
void expect_goes_on(FaultyFiles& files) {
  const auto newest = open_newest(files, "run/ck");
  const int64_t from = newest->reader == nullptr ? 0 : newest->reader->step();
  for (int64_t step = from + 1; step <= kSteps; ++step) {
    const Status status = write_small(files, "run/ck", step);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(keep_last(files, "run/ck", 1).ok());
  }
  ASSERT_EQ(open_newest(files, "run/ck")->reader->step(), kSteps);
}

}  // namespace

TEST(CheckpointFaults, any_operation_may_fail) {
  for (const int64_t keep : {1, 2}) {
    FaultyFiles counting;
    write_steps(counting, keep, 2);
    for (int64_t n = 1; n <= counting.operations(); ++n) {
      SCOPED_TRACE("keep " + std::to_string(keep) + ", operation " + std::to_string(n));
      FaultyFiles files;
      files.fail_from(n);
      const int64_t reported = write_steps(files, keep, 2);
      files.heal();
      expect_sound(files, reported);
      expect_goes_on(files);
    }
  }
}

TEST(CheckpointFaults, power_may_be_lost_at_any_operation) {
  for (const auto unsynced : {FaultyFiles::Unsynced::lost, FaultyFiles::Unsynced::names_kept}) {
    FaultyFiles counting;
    write_steps(counting, 1, 2);
    for (int64_t n = 1; n <= counting.operations() + 1; ++n) {
      SCOPED_TRACE("operation " + std::to_string(n));
      FaultyFiles files;
      files.fail_from(n);
      const int64_t reported = write_steps(files, 1, 2);
      files.lose_power(unsynced);
      expect_sound(files, reported);
      expect_goes_on(files);
    }
  }
}

TEST(CheckpointFaults, the_disk_may_be_full_after_any_byte) {
  int64_t bytes = 0;
  for (int64_t reported = 0; reported < kSteps; bytes += 13) {
    SCOPED_TRACE("disk full after " + std::to_string(bytes));
    FaultyFiles files;
    files.limit_bytes(bytes);
    reported = write_steps(files, 1, 2);
    expect_sound(files, reported);
    if (reported < kSteps) {
      const auto left = files.exists("run/ck") ? *files.list("run/ck") : std::vector<std::string>();
      EXPECT_EQ(left.size(), reported == 0 ? 0u : 1u) << "something half-written stays";
    }
    files.heal();
    expect_goes_on(files);
  }
  EXPECT_GT(bytes, 3000) << "the disk was never full";
}

}  // namespace recmill::checkpoint
