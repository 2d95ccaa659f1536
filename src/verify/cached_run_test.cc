// SPDX-License-Identifier: Apache-2.0
// Runs with embedding.store = "cached" beside the plain way and beside other stores.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/temporary_folder.h"
#include "base/testing/faulty_files.h"
#include "base/testing/shared_files.h"
#include "checkpoint/digest.h"
#include "checkpoint/folder.h"
#include "run/testing/bags_run.h"
#include "run/testing/small_run.h"
#include "verify/verification.h"

namespace recmill::train {
namespace {

RunOptions cached(RunOptions options, int64_t lookahead, int64_t prefetch) {
  options.embedding.store = StoreKind::cached;
  options.lookahead.batches = lookahead;
  options.lookahead.prefetch = prefetch;
  return options;
}

/// "" or the first difference from the plain way.
std::string difference_from_plain(const RunOptions& options, std::vector<int64_t> ranks = {1}) {
  ThreadsWorld world;
  const auto verified =
      verify(options, {.identity = {}, .ranks = std::move(ranks)}, world, posix_files());
  return verified.ok() ? "" : verified.status().message();
}

/// Growing dictionaries, Adam, a 16-bit table and bags; an evaluation after each second iteration.
RunOptions small_evaluated_run() {
  RunOptions options = small_run();
  options.data.synthetic.rows = 400;
  options.train.evaluate_every = 2;
  return options;
}

TEST(CachedRun, gives_the_bits_of_the_plain_way_however_far_it_looks_and_fetches_ahead) {
  for (const int64_t lookahead : {0, 1, 7, 200})
    for (const int64_t prefetch : {0, 1, 4})
      EXPECT_EQ(difference_from_plain(cached(small_evaluated_run(), lookahead, prefetch), {1, 3}),
                "")
          << "L " << lookahead << ", P " << prefetch;
}

TEST(CachedRun, gives_the_bits_of_the_plain_way_in_every_design_of_ranks) {
  for (const auto& [design, name] : EnumNames<CacheDesign>::names) {
    for (RunOptions options : {small_evaluated_run(), bags_run(400)}) {
      options = cached(options, 4, 1);
      options.lookahead.design = design;
      EXPECT_EQ(difference_from_plain(options, {2, 4}), "") << name;
    }
  }
}

TEST(CachedRun, gives_the_bits_of_the_plain_way_by_default_and_with_every_row_optimizer) {
  for (const auto& [optimizer, name] : EnumNames<OptimizerKind>::names) {
    for (RunOptions options : {small_evaluated_run(), bags_run(400)}) {
      options.embedding.store = StoreKind::cached;
      options.embedding.optimizer.kind = optimizer;
      options.embedding.optimizer.l2 = 0.01;
      EXPECT_EQ(difference_from_plain(options, {1, 2}), "") << name;
    }
  }
}

TEST(CachedRun, gives_the_bits_of_the_plain_way_with_rows_on_a_disk) {
  const TemporaryFolder folder;
  RunOptions options = cached(small_evaluated_run(), 3, 2);
  options.embedding.optimizer.kind = OptimizerKind::adam;
  options.embedding.precision = RowPrecision::bfloat16;
  options.lookahead.home = CacheHome::disk;
  options.lookahead.disk_path = folder.path() + "/rows";
  options.lookahead.disk_memory = 1 << 20;
  EXPECT_EQ(difference_from_plain(options, {1, 2, 4}), "");
  EXPECT_TRUE(posix_files().list(options.lookahead.disk_path)->empty());  // nothing is kept
}

TEST(CachedRun, gives_the_bits_of_the_plain_way_where_unseen_ids_have_the_mean_of_rows) {
  RunOptions options = cached(small_evaluated_run(), 3, 2);
  options.embedding.unseen = preprocess::Unseen::mean;
  EXPECT_EQ(difference_from_plain(options, {1, 2, 4}), "");
}

/// Asks for more and more, as refusals say, and goes on from what was trained.
void train_with_the_least_cache(int64_t ranks, CacheDesign design) {
  RunOptions options = cached(generated_run(400), 2, 1);
  options.train.ranks = ranks;
  options.lookahead.design = design;
  options.train.slices = 4;
  options.train.batch_size = 24;
  options.train.checkpoint.every = 0;
  options.lookahead.cache = 1;
  std::vector<int64_t> sizes;
  FaultyFiles disk;
  SharedFiles files{disk, [](const std::string&) { return Status(); }};
  ExistingRun existing = ExistingRun::refuse;
  int64_t trained = 0;
  while (true) {
    const auto run = train(options, files, existing);
    if (run.ok()) break;
    const std::string message = run.status().message();
    const auto at = message.find("needs at least ");
    ASSERT_NE(at, std::string::npos) << message;
    ASSERT_NE(message.find("lookahead.cache: "), std::string::npos) << message;
    const int64_t needed = std::stoll(message.substr(at + 15));
    EXPECT_GT(needed, *options.lookahead.cache);
    options.lookahead.cache = needed;
    const auto steps = checkpoint::list_steps(disk, small_checkpoints());
    if (!steps.ok() || steps->empty()) continue;
    EXPECT_NE(message.find("(a checkpoint after iteration " + std::to_string(steps->back()) +
                           " is kept)"),
              std::string::npos)
        << message;
    EXPECT_GT(steps->back(), trained);
    trained = steps->back();
    existing = ExistingRun::resume;
  }
  EXPECT_GT(*options.lookahead.cache, 1);
}

TEST(CachedRun, says_how_large_its_cache_has_to_be_and_keeps_what_it_has_trained) {
  for (const int64_t ranks : {1, 2, 4}) train_with_the_least_cache(ranks, CacheDesign::forward);
  train_with_the_least_cache(4, CacheDesign::lrpp);
}

/// The checkpoint at the end of a run that one store begins and another one goes on with.
std::string end_of(StoreKind first, StoreKind second, FaultyFiles& disk, int64_t ranks = 1) {
  SharedFiles files{disk, [](const std::string&) { return Status(); }};
  RunOptions options = cached(small_run(), 3, 2);
  options.train.ranks = ranks;
  options.embedding.store = first;
  const int64_t epochs = options.train.epochs;
  options.train.epochs = 1;
  auto run = train(options, files);
  EXPECT_TRUE(run.ok()) << run.status().message();
  options.embedding.store = second;
  options.train.epochs = epochs;
  run = train(options, files, ExistingRun::resume);
  EXPECT_TRUE(run.ok()) << run.status().message();
  const auto steps = checkpoint::list_steps(disk, small_checkpoints());
  return small_checkpoints() + "/" + checkpoint::folder_name(steps->back());
}

TEST(CachedRun, goes_on_from_other_stores_and_they_from_it) {
  FaultyFiles plain;
  const auto expected =
      checkpoint::Reader::open(plain, end_of(StoreKind::local, StoreKind::local, plain));
  ASSERT_TRUE(expected.ok());
  using Stores = std::pair<StoreKind, StoreKind>;
  for (const auto& [first, second] :
       {Stores{StoreKind::cached, StoreKind::local}, Stores{StoreKind::local, StoreKind::cached},
        Stores{StoreKind::cached, StoreKind::cached}}) {
    for (const int64_t ranks : {1, 3}) {
      FaultyFiles disk;
      const auto end = checkpoint::Reader::open(disk, end_of(first, second, disk, ranks));
      ASSERT_TRUE(end.ok());
      const auto differences = checkpoint::compare(**expected, **end);
      ASSERT_TRUE(differences.ok()) << differences.status().message();
      EXPECT_TRUE(differences->empty()) << differences->front().text;
    }
  }
}

}  // namespace
}  // namespace recmill::train
