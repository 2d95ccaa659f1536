// SPDX-License-Identifier: Apache-2.0
#include "run/lookahead/count_lookahead.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/json/json.h"
#include "comm/slice_tree.h"
#include "lookahead/batch_rows.h"
#include "lookahead/known_rows.h"
#include "lookahead/other_caches.h"
#include "lookahead/shared_oracle.h"
#include "lookahead_plan/slot_tables.h"
#include "preprocess/run/column_statistics.h"
#include "run/hotset/hot_folder.h"
#include "run/lookahead/run_cache.h"
#include "run/rank.h"
#include "run/training_ids.h"
#include "step/data/hot_cold_source.h"
#include "step/data/reader_source.h"
#include "store/cached/ranks/home_ranks.h"

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
  int64_t batches_;
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
    if (run_.hot_folder != nullptr) return open_hot_and_cold(pool, files);
    RECMILL_ASSIGN_OR_RETURN(data_, open_training_ids(run_, pool, files));
    samples_ = data_.rows;
    source_ = std::make_unique<ReaderSource>(one_epoch(), *data_.reader, nullptr,
                                             *data_.preprocessor, StreamPosition{});
    return {};
  }
  int64_t samples() const { return samples_; }

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
  BatchSchedule one_epoch() const {
    BatchSchedule schedule = run_.schedule(0);  // one rank sees all samples
    schedule.ranks = 1;
    schedule.epochs = 1;
    schedule.evaluates = false;
    return schedule;
  }
  /// By rates that are known.
  Status open_hot_and_cold(ThreadPool& pool, Files& files) {
    const HotColdRules& rules = run_.hot_folder->rules;
    if (rules.policy.adapts())
      return Status::BadRequest(
          "hotset.replay: rates follow losses, which are not known here; name the schedule.jsonl "
          "of "
          "a run, or fix hotset.rate");
    RECMILL_ASSIGN_OR_RETURN(apart_, open_hot_cold_rows(run_, pool, files));
    RECMILL_ASSIGN_OR_RETURN(samples_, apart_->rows());
    RECMILL_ASSIGN_OR_RETURN(
        data_.preprocessor,
        preprocess::make_preprocessor(preprocess::without_dense(run_.graph), run_.spec, pool));
    RECMILL_RETURN_IF_ERROR(fill_dictionaries(*run_.hot_folder, *data_.preprocessor));
    source_ = std::make_unique<HotColdSource>(one_epoch(), *apart_, nullptr, *data_.preprocessor,
                                              rules, StreamPosition{}, rules.policy.first(),
                                              std::make_shared<ScheduleLosses>());
    return {};
  }

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
  TrainingIds data_;
  std::unique_ptr<HotColdRows> apart_;  // null: batches are mixed
  std::unique_ptr<BatchSource> source_;
  int64_t samples_ = 0;
  RankBatch batch_;
  std::vector<std::vector<int64_t>> rows_of_ranks_;
  KnownRows<Seen> rows_;
  std::vector<bool> fresh_;
};

/// The most distinct rows that one rank decides for and one rank has in slots, in so many batches
/// in a row.
class MostRowsOfRank {
 public:
  MostRowsOfRank(const store::HomeRanks& homes, int64_t batches) : homes_(homes) {
    const auto ranks = static_cast<size_t>(homes.ranks());
    most_.assign(ranks * ranks, MostRows(batches));
    rows_.resize(most_.size());
  }

  void add(const LookaheadStep& step) {
    for (auto& rows : rows_) rows.clear();
    for (const RowInSlot& row : step.uses)
      rows_[homes_.of(row.row) * homes_.ranks() + row.holder].push_back(row.row);
    for (size_t i = 0; i < rows_.size(); ++i) most_[i].add(rows_[i]);
  }
  int64_t most() const { return std::ranges::max_element(most_, {}, &MostRows::most)->most(); }

 private:
  const store::HomeRanks& homes_;
  std::vector<MostRows> most_;              // [deciders][holders]
  std::vector<std::vector<int64_t>> rows_;  // beside; kept memory
};

/// What ranks send by a design, step after step, until its slots are too few.
class DesignCounter {
 public:
  DesignCounter(const lookahead::OracleOptions& of, const store::HomeRanks& homes,
                lookahead::IsFrozen is_frozen)
      : oracle_(of, [&homes](int64_t row) { return homes.of(row); }),
        counter_(
            of.ranks, [&homes](int64_t row) { return homes.of(row); }, std::move(is_frozen)) {}

  void see(const StepUses& uses) { oracle_.see(uses); }
  void end() { oracle_.end(); }
  bool ready() const { return !refused_ && oracle_.ready(); }
  /// Null: slots are too few.
  std::optional<LookaheadStep> decide(const StepUses& uses) {
    auto decision = oracle_.decide();
    refused_ = !decision.ok();
    if (refused_) return std::nullopt;
    counter_.add(uses, *decision);
    ++decided_;
    return *std::move(decision);
  }
  bool refused() const { return refused_; }
  /// Steps before it are not asked for any more.
  int64_t decided() const { return refused_ ? INT64_MAX : decided_; }
  const MovedRows& moved() const { return counter_.moved(); }

 private:
  lookahead::SharedOracle oracle_;
  lookahead::MovedRowsCounter counter_;
  bool refused_ = false;
  int64_t decided_ = 0;
};

/// One case, step after step.
class CaseCounter {
 public:
  CaseCounter(lookahead::OracleOptions of, const store::HomeRanks& homes,
              const lookahead::IsFrozen& is_frozen)
      : enough_({of.lookahead, of.prefetch}),
        recent_(of.slots > 0 ? of.slots * homes.ranks() : INT64_MAX),
        most_rows_(homes, std::min(of.prefetch, of.lookahead) + 1),
        is_frozen_(is_frozen) {
    of.ranks = homes.ranks();
    count_.of = of;
    count_.ranks = of.ranks;
    designs_.emplace_back(of, homes, is_frozen);  // forward, first
    if (of.ranks == 1) return;
    for (const CacheDesign design :
         {CacheDesign::replicated, CacheDesign::lrpp, CacheDesign::partitioned}) {
      of.design = design;
      designs_.emplace_back(of, homes, is_frozen);
    }
    if (of.slots == 0) return;
    of.design = CacheDesign::forward;
    of.slots = 0;
    unlimited_.emplace(of, [&homes](int64_t row) { return homes.of(row); });
  }

  void see(const StepUses& uses) {
    ++count_.batches;
    count_.distinct += uses.count();
    for (int64_t i = 0; i < uses.count(); ++i) count_.one_rank += uses.users(i).size() == 1 ? 1 : 0;
    count_.lru_fetched += recent_.fetch(uses.rows);
    const MovedRows moved = lookahead::moved_without_cache(uses, is_frozen_);
    count_.none.fetched += moved.fetched;
    count_.none.gradients += moved.gradients;
    enough_.see(uses.rows);
    if (unlimited_) unlimited_->see(uses);
    for (DesignCounter& design : designs_) design.see(uses);
  }
  void end() {
    enough_.end();
    if (unlimited_) unlimited_->end();
    for (DesignCounter& design : designs_) design.end();
  }

  /// Decides what can be decided; `uses_of` gives a step's.
  template <typename Uses, typename OnStep>
  void decide(const Uses& uses_of, const OnStep& on_step) {
    while (enough_.ready()) {
      const auto decision = enough_.decide();
      if (count_.ranks == 1 && count_.of.slots > 0) most_rows_.add(*decision);
    }
    while (unlimited_ && unlimited_->ready()) most_rows_.add(*unlimited_->decide());
    for (size_t d = 0; d < designs_.size(); ++d) {
      while (designs_[d].ready()) {
        const auto decision = designs_[d].decide(uses_of(designs_[d].decided()));
        if (!decision || d > 0) continue;
        count_.fetched += std::ssize(decision->fetch);
        count_.evicted += std::ssize(decision->evict);
        count_.critical += decision->critical;
        on_step(*decision);
      }
    }
  }
  int64_t decided() const {
    return std::ranges::min_element(designs_, {}, &DesignCounter::decided)->decided();
  }

  Result<LookaheadCount> finish(int64_t static_fetched) {
    if (designs_[0].refused()) return refusal();
    count_.slots_needed = enough_.most_resident();
    count_.static_fetched = static_fetched;
    for (size_t d = 0; d < kOrder.size(); ++d) {
      const DesignCounter& design = designs_[count_.ranks == 1 ? 0 : d];
      auto& moved = count_.designs[static_cast<size_t>(kOrder[d])];
      moved = design.refused() ? std::nullopt : std::optional(design.moved());
    }
    return count_;
  }

 private:
  static constexpr std::array kOrder{CacheDesign::forward, CacheDesign::replicated,
                                     CacheDesign::lrpp, CacheDesign::partitioned};

  Status refusal() const {
    const int64_t together = std::min(count_.of.prefetch, count_.of.lookahead) + 1;
    const auto batches =
        together == 1 ? std::string("one batch") : fmt::format("{} batches in a row", together);
    if (count_.ranks == 1)
      return Status::BadRequest(fmt::format("--slots: {} are fewer than the {} rows of {}",
                                            count_.of.slots, most_rows_.most(), batches));
    return Status::BadRequest(fmt::format(
        "--slots: {} are fewer than {}: {} ranks decide for the rows of each rank's slots, and one "
        "has {} rows of {} at one rank",
        count_.of.slots, count_.ranks * most_rows_.most(), count_.ranks, most_rows_.most(),
        batches));
  }

  LookaheadCount count_;
  lookahead::Oracle enough_;                          // one rank, with slots for all rows
  std::optional<lookahead::SharedOracle> unlimited_;  // `forward` with slots for all rows
  lookahead::LeastRecentlyUsed recent_;
  MostRowsOfRank most_rows_;
  std::vector<DesignCounter> designs_;  // by kOrder; of one rank all are the same
  lookahead::IsFrozen is_frozen_;       // null: no table is
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
  const store::HomeRanks homes(run.spec, run.ranks);
  for (const auto& of : request.cases) cases.emplace_back(of, homes, is_frozen);
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
  Progress progress(request.progress, "counting", "samples", batches.samples());
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
  for (const auto& [design, name] : EnumNames<CacheDesign>::names) {
    const auto& moved = count.designs[static_cast<size_t>(design)];
    sent[std::string(name)] = moved ? to_json(*moved) : Json();
  }
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
