// SPDX-License-Identifier: Apache-2.0
#include "run/lookahead/count_lookahead.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <span>
#include <utility>

#include "base/json/json.h"
#include "comm/slice_tree.h"
#include "lookahead/batch_rows.h"
#include "lookahead/known_rows.h"
#include "lookahead/other_caches.h"
#include "lookahead_plan/slot_tables.h"
#include "preprocess/run/column_statistics.h"
#include "preprocess/run/preprocessor.h"
#include "reader/open_reader.h"
#include "run/lookahead/run_cache.h"
#include "run/rank.h"
#include "step/data/reader_source.h"

namespace recmill::train {
namespace {

using lookahead::StepUses;

using lookahead::KnownRows;
using Ids = std::vector<KnownRows<int64_t>::Id>;

/// The most distinct rows of so many batches in a row.
class MostRows {
 public:
  explicit MostRows(int64_t batches) : batches_(batches) {}

  void add(const std::vector<int64_t>& rows) {
    Ids& ids = window_.emplace_back(rows.size());
    uses_.find_or_add(rows, ids, fresh_);
    for (const auto id : ids) ++uses_[id];
    if (std::ssize(window_) > batches_) {
      Ids gone;
      for (const auto id : window_.front())
        if (--uses_[id] == 0) gone.push_back(id);
      uses_.remove(gone);
      window_.pop_front();
    }
    most_ = std::max(most_, uses_.count());
  }
  int64_t most() const { return most_; }

 private:
  const int64_t batches_;
  std::deque<Ids> window_;  // distinct rows of each batch
  KnownRows<int64_t> uses_;
  std::vector<bool> fresh_;
  int64_t most_ = 0;
};

/// The batches of an epoch as the rows that each rank uses.
class UsesOfBatches {
 public:
  explicit UsesOfBatches(const ResolvedRun& run)
      : run_(run),
        tables_(run.spec),
        finder_(run.spec),
        rows_of_ranks_(static_cast<size_t>(run.ranks)) {}

  Status open(ThreadPool& pool, Files& files) {
    pool_ = &pool;
    const auto seed = static_cast<uint64_t>(run_.options.train.seed);
    RECMILL_ASSIGN_OR_RETURN(
        reader_, reader::open_reader(run_.options.data, Subset::train, seed, pool, files));
    RECMILL_ASSIGN_OR_RETURN(
        preprocessor_,
        preprocess::make_preprocessor(preprocess::without_dense(run_.graph), run_.spec, pool));
    BatchSchedule schedule = run_.schedule(0);  // one rank sees all samples
    schedule.ranks = 1;
    schedule.epochs = 1;
    schedule.evaluates = false;
    source_ = std::make_unique<ReaderSource>(schedule, *reader_, nullptr, *preprocessor_,
                                             StreamPosition{});
    return {};
  }
  Result<int64_t> samples() const { return reader_->rows(); }

  /// False: there is no further batch.
  Result<bool> next(StepUses& uses, int64_t& samples) {
    RECMILL_ASSIGN_OR_RETURN(const bool any, source_->next(batch_));
    if (!any) return false;
    for (int rank = 0; rank < run_.ranks; ++rank) {
      const SliceRange slices = slices_of_rank(rank, run_.ranks, run_.slices);
      finder_.find(batch_.sparse, batch_.cut.begin(slices.begin), batch_.cut.begin(slices.end),
                   *pool_, rows_of_ranks_[static_cast<size_t>(rank)]);
    }
    uses = lookahead::merge_uses(rows_of_ranks_);
    count_lookups(uses.rows);
    samples = batch_.cut.samples;
    return true;
  }

  /// Of the rows seen so far, by batches: those that `count` rows of most lookups are not.
  int64_t fetched_beside_hottest(int64_t count) const {
    std::vector<lookahead::RowLookups> lookups;
    int64_t fetched = 0;
    for (Ids::value_type id = 0; id < rows_.ids(); ++id) {
      lookups.push_back({rows_.row(id), rows_[id].lookups});
      fetched += rows_[id].batches;
    }
    const auto hottest = lookahead::most_looked_up(std::move(lookups), count);
    Ids ids(hottest.size());
    rows_.find(hottest, ids);
    for (const auto id : ids) fetched -= rows_[id].batches;
    return fetched;
  }
  const SlotTables& tables() const { return tables_; }

 private:
  /// `distinct`: those of the batch.
  void count_lookups(std::span<const int64_t> distinct) {
    Ids ids(distinct.size());
    rows_.find_or_add(distinct, ids, fresh_);
    for (const auto id : ids) ++rows_[id].batches;
    for (size_t f = 0; f < batch_.sparse.features.size(); ++f) {
      const auto& rows = batch_.sparse.features[f].rows;
      ids.resize(rows.size());
      rows_.find(rows, ids, tables_.begin(run_.spec.features[f].table));
      for (const auto id : ids) ++rows_[id].lookups;
    }
  }

  struct Seen {
    int64_t lookups = 0, batches = 0;
  };

  const ResolvedRun& run_;
  const SlotTables tables_;
  lookahead::BatchRows finder_;
  ThreadPool* pool_ = nullptr;
  std::unique_ptr<reader::Reader> reader_;
  std::unique_ptr<preprocess::Preprocessor> preprocessor_;
  std::unique_ptr<ReaderSource> source_;
  RankBatch batch_;
  std::vector<std::vector<int64_t>> rows_of_ranks_;
  KnownRows<Seen> rows_;
  std::vector<bool> fresh_;
};

/// One case, step after step.
class CaseCounter {
 public:
  CaseCounter(const lookahead::OracleOptions& of, int ranks, lookahead::IsFrozen is_frozen)
      : oracle_(of),
        enough_({of.lookahead, of.prefetch}),
        recent_(of.slots > 0 ? of.slots : INT64_MAX),
        most_rows_(std::min(of.prefetch, of.lookahead) + 1) {
    count_.of = of;
    count_.ranks = ranks;
    for (const auto& [design, name] : EnumNames<CacheDesign>::names)
      designs_.emplace_back(design, ranks, is_frozen);
    is_frozen_ = std::move(is_frozen);
  }

  void see(const StepUses& uses) {
    ++count_.batches;
    count_.distinct += uses.count();
    for (int64_t i = 0; i < uses.count(); ++i) count_.one_rank += uses.users(i).size() == 1 ? 1 : 0;
    count_.lru_fetched += recent_.fetch(uses.rows);
    const MovedRows moved = lookahead::moved_without_cache(uses, is_frozen_);
    count_.none.fetched += moved.fetched;
    count_.none.gradients += moved.gradients;
    if (count_.of.slots > 0) most_rows_.add(uses.rows);
    if (count_.of.slots > 0) enough_.see(uses.rows);
    oracle_.see(uses.rows);
  }
  void end() {
    oracle_.end();
    enough_.end();
  }

  /// Decides what can be decided; `uses_of` gives a step's.
  template <typename Uses, typename OnStep>
  void decide(const Uses& uses_of, const OnStep& on_step) {
    while (count_.of.slots > 0 && enough_.ready()) (void)enough_.decide();
    while (!refused_ && oracle_.ready()) {
      auto decision = oracle_.decide();
      refused_ = !decision.ok();
      if (refused_) return;
      count_.fetched += std::ssize(decision->fetch);
      count_.evicted += std::ssize(decision->evict);
      count_.critical += decision->critical;
      const StepUses& uses = uses_of(decision->step);
      for (auto& design : designs_) design.add(uses, *decision);
      ++decided_;
      on_step(*decision);
    }
  }
  /// Steps before it are not asked for any more.
  int64_t decided() const { return refused_ ? INT64_MAX : decided_; }

  Result<LookaheadCount> finish(int64_t static_fetched) {
    if (refused_) {
      const int64_t together = std::min(count_.of.prefetch, count_.of.lookahead) + 1;
      return Status::BadRequest(fmt::format(
          "--slots: {} are fewer than the {} rows of {}", count_.of.slots, most_rows_.most(),
          together == 1 ? "one batch" : fmt::format("{} batches in a row", together)));
    }
    count_.slots_needed = count_.of.slots > 0 ? enough_.most_resident() : oracle_.most_resident();
    count_.static_fetched = static_fetched;
    for (size_t d = 0; d < designs_.size(); ++d) count_.designs[d] = designs_[d].moved();
    return count_;
  }

 private:
  LookaheadCount count_;
  lookahead::Oracle oracle_, enough_;
  lookahead::LeastRecentlyUsed recent_;
  MostRows most_rows_;
  std::vector<lookahead::MovedRowsCounter> designs_;
  lookahead::IsFrozen is_frozen_;  // null: no table is
  bool refused_ = false;
  int64_t decided_ = 0;
};

}  // namespace

Result<std::vector<LookaheadCount>> count_lookahead(const ResolvedRun& run,
                                                    const LookaheadRequest& request, Files& files) {
  const auto pool = make_pool(run.threads);
  UsesOfBatches batches(run);
  RECMILL_RETURN_IF_ERROR(batches.open(*pool, files));
  std::vector<CaseCounter> cases;
  cases.reserve(request.cases.size());
  lookahead::IsFrozen is_frozen;
  if (std::ranges::any_of(run.spec.tables, &TableSpec::frozen))
    is_frozen = [&](int64_t row) { return batches.tables().is_frozen(row); };
  for (const auto& of : request.cases) cases.emplace_back(of, run.ranks, is_frozen);
  std::deque<StepUses> kept;  // of steps that some case has not decided
  int64_t first = 0, samples = 0;
  const auto decide = [&] {
    int64_t decided = INT64_MAX;
    for (size_t c = 0; c < cases.size(); ++c) {
      cases[c].decide([&](int64_t step) -> const StepUses& { return kept[step - first]; },
                      [&](const LookaheadStep& decision) {
                        if (c == 0 && request.on_step) request.on_step(decision);
                      });
      decided = std::min(decided, cases[c].decided());
    }
    for (; first < decided && !kept.empty(); ++first) kept.pop_front();
  };
  RECMILL_ASSIGN_OR_RETURN(const int64_t total, batches.samples());
  Progress progress(request.progress, "counting", "samples", total);
  while (true) {
    int64_t more = 0;
    RECMILL_ASSIGN_OR_RETURN(const bool any, batches.next(kept.emplace_back(), more));
    if (!any) break;
    for (CaseCounter& of : cases) of.see(kept.back());
    decide();
    progress.show(samples += more, "");
  }
  kept.pop_back();
  for (CaseCounter& of : cases) of.end();
  decide();
  const int64_t beside_hottest = batches.fetched_beside_hottest(batches.tables().rows() / 1000);
  std::vector<LookaheadCount> counts;
  for (CaseCounter& of : cases) {
    RECMILL_ASSIGN_OR_RETURN(counts.emplace_back(), of.finish(beside_hottest));
  }
  return counts;
}

Json to_json(const LookaheadCount& count) {
  Json sent{{"none", to_json(count.none)}};
  for (const auto& [design, name] : EnumNames<CacheDesign>::names)
    sent[std::string(name)] = to_json(count.designs[static_cast<size_t>(design)]);
  return {{"lookahead", count.of.lookahead},
          {"prefetch", count.of.prefetch},
          {"slots", count.of.slots},
          {"ranks", count.ranks},
          {"batches", count.batches},
          {"distinct", count.distinct},
          {"fetched", count.fetched},
          {"evicted", count.evicted},
          {"critical", count.critical},
          {"one_rank", count.one_rank},
          {"slots_needed", count.slots_needed},
          {"lru_fetched", count.lru_fetched},
          {"static_fetched", count.static_fetched},
          {"sent", sent}};
}

}  // namespace recmill::train
