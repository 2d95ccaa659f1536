// SPDX-License-Identifier: Apache-2.0
#include "bench/cached/cached_ways.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "bench/placed/placed_shape.h"
#include "bench/start_together.h"
#include "comm/gather_values.h"
#include "step/data/sharded_step_planner.h"
#include "store/cached/host_slot_store.h"

namespace recmill::bench {
namespace {

constexpr int64_t kBatches = 4;  // of a repetition
constexpr int64_t kChecked = 2;  // batches before the first
constexpr int64_t kQueue = 4;    // batches that are ready before they are needed

}  // namespace

CachedWays::CachedWays(const BenchOptions& options, Communicator& all)
    : options_(options),
      all_(all),
      pool_(std::max<int>(1, static_cast<int>(options.threads) / all.ranks())) {}

Result<std::unique_ptr<CachedWays>> CachedWays::make(const BenchOptions& options,
                                                     Communicator& all) {
  std::unique_ptr<CachedWays> ways(new CachedWays(options, all));
  const int64_t batches = kChecked + (options.pairs + 1) * kBatches + kLookahead + kPrefetch;
  ways->stream_ = CachedStream::make(small_shape("kaggle", kDim), kZipf, batches, kRankSamples,
                                     all.rank(), all.ranks(), ways->pool_);
  RECMILL_ASSIGN_OR_RETURN(
      ways->rows_,
      LookedUpRows::make(kRankSamples, std::ssize(ways->stream_.model.features), kDim));
  return ways;
}

CachedWay& CachedWays::add(std::string label) {
  return ways_.emplace_back(CachedWay{std::move(label)});
}

void CachedWays::begin(CachedWay& way, train::BatchWindow window) {
  way.stage = std::make_unique<train::DataStage>(std::make_unique<CachedStreamSource>(stream_),
                                                 std::move(window), *way.store, nullptr, kQueue);
}

Status CachedWays::begin_planned(CachedWay& way, CacheDesign design, int64_t lookahead,
                                 int64_t prefetch) {
  RECMILL_ASSIGN_OR_RETURN(way.planning, all_.duplicate());
  const lookahead::CacheOptions options{lookahead, prefetch, kCache, kCache, all_.ranks(), design};
  begin(way, train::BatchWindow(std::make_unique<train::ShardedStepPlanner>(
                 stream_.model,
                 store::HostSlotStore::slot_bytes(stream_.model, SlotTables(stream_.model)),
                 options, pool_, *way.planning)));
  return {};
}

Status CachedWays::run() {
  RECMILL_RETURN_IF_ERROR(check_answers());
  RECMILL_ASSIGN_OR_RETURN(StartTogether together, StartTogether::make(all_));
  RECMILL_RETURN_IF_ERROR(
      together.take_turns(ways_.size(), options_.pairs,
                          [&](size_t way, bool counts) { return time(ways_[way], counts); }));
  for (CachedWay& way : ways_) RECMILL_RETURN_IF_ERROR(count_moved(way));
  load_ = together.foreign_load();
  return {};
}

/// Rows looked up are the gradient as well.
Status CachedWays::go(CachedWay& way) {
  RECMILL_ASSIGN_OR_RETURN(auto batch, way.stage->next());
  if (batch == nullptr) return Status::Failed(way.label + ": the stream has ended");
  recmill::Stream stream(pool_);
  RECMILL_RETURN_IF_ERROR(way.store->lookup(*batch->prepared, rows_.output(), stream));
  const store::Update update{batch->prepared.get(), rows_.gradient()};
  RECMILL_RETURN_IF_ERROR(way.store->update({&update, 1}, {way.trained, 1.0}, stream));
  way.stage->recycle(std::move(batch));
  ++way.trained;
  return {};
}

/// What the last batch looked up is the same in every way.
Status CachedWays::check_rows(const CachedWay& way) {
  const auto last = static_cast<size_t>(way.trained);
  if (checksums_.size() <= last) checksums_.resize(last + 1);
  const uint32_t now = rows_.checksum();
  if (checksums_[last] == 0) checksums_[last] = now;
  if (checksums_[last] == now) return {};
  return Status::Failed(fmt::format("{}: batch {} looks up other rows", way.label, way.trained));
}

Status CachedWays::check_answers() {
  for (CachedWay& way : ways_) {
    for (int64_t b = 0; b < kChecked; ++b) {
      RECMILL_RETURN_IF_ERROR(go(way));
      RECMILL_RETURN_IF_ERROR(check_rows(way));
    }
  }
  return {};
}

Status CachedWays::time(CachedWay& way, bool counts) {
  RECMILL_RETURN_IF_ERROR(all_.barrier());
  const Stopwatch watch;
  for (int64_t b = 0; b < kBatches; ++b) RECMILL_RETURN_IF_ERROR(go(way));
  RECMILL_RETURN_IF_ERROR(all_.barrier());
  const double seconds = watch.seconds();
  if (counts) way.seconds.push_back(seconds / kBatches);
  return check_rows(way);
}

Status CachedWays::count_moved(CachedWay& way) {
  RECMILL_ASSIGN_OR_RETURN(const auto of_all,
                           gather_values(way.store->stats().moved.total(), all_));
  for (const int64_t rows : of_all) way.moved += static_cast<double>(rows);
  way.moved /= static_cast<double>(way.trained);
  return {};
}

}  // namespace recmill::bench
