// SPDX-License-Identifier: Apache-2.0
// Stores that train one stream of batches in turns, lookups and row updates alone, on ranks.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/bench.h"
#include "bench/cached/cached_stream.h"
#include "bench/looked_up_rows.h"
#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "lookahead_plan/cache_design.h"
#include "step/data/batch_window.h"
#include "step/data/data_stage.h"
#include "store/embedding_store.h"

namespace recmill::bench {

/// One store and its data stage.
struct CachedWay {
  std::string label;
  std::unique_ptr<Communicator> planning = nullptr;
  std::unique_ptr<store::EmbeddingStore> store = nullptr;
  std::unique_ptr<train::DataStage> stage = nullptr;  // goes before what it uses
  int64_t trained = 0;                                // batches
  std::vector<double> seconds = {};                   // a batch, by repetition
  double moved = 0;                                   // rows of a cache in a batch, over all ranks
};

/// Ranks that go through a stream with each of several ways. All calls are collective.
class CachedWays {
 public:
  static constexpr int64_t kLookahead = 60, kPrefetch = 4, kDim = 64;
  static constexpr int64_t kCache = int64_t{1} << 27;  // bytes of slots at a rank
  static constexpr double kZipf = 1.2;

  /// Criteo Kaggle's tables of dimension kDim, with batches for so many repetitions. `all` outlives
  /// it.
  static Result<std::unique_ptr<CachedWays>> make(const BenchOptions& options, Communicator& all);

  const CachedStream& stream() const { return stream_; }
  ThreadPool& pool() { return pool_; }
  Communicator& ranks() { return all_; }
  std::deque<CachedWay>& ways() { return ways_; }
  CachedWay& add(std::string label);
  /// Once its store is there: the batches come, as `window` keeps them.
  void begin(CachedWay& way, train::BatchWindow window);
  /// The same with plans of a cache for its store.
  Status begin_planned(CachedWay& way, CacheDesign design, int64_t lookahead, int64_t prefetch);

  /// Checks that all look up the same rows, and times them in turns.
  Status run();
  double foreign_load() const { return load_; }

 private:
  CachedWays(const BenchOptions& options, Communicator& all);
  Status go(CachedWay& way);
  Status check_rows(const CachedWay& way);
  Status check_answers();
  Status time(CachedWay& way, bool counts);
  Status count_moved(CachedWay& way);

  const BenchOptions& options_;
  Communicator& all_;
  ThreadPool pool_;
  CachedStream stream_;
  LookedUpRows rows_;
  std::vector<uint32_t> checksums_;  // by batches trained
  double load_ = 0.0;
  std::deque<CachedWay> ways_;  // end before what they use
};

}  // namespace recmill::bench
