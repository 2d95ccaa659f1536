// SPDX-License-Identifier: Apache-2.0
#include "store/sharded/row_updates.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "store/sharded/choose_reduce.h"
#include "table/row_map.h"
#include "table/table_update.h"

namespace recmill::store {
namespace {

/// Of a row of a table in a message: its floats, and its number.
int64_t words_of_row(const table::EmbeddingTable& table) {
  return table.spec().dim + 2;
}

/// What a rank tells the others of a batch.
struct Note {
  float copied_words = 0;  // of rows with copies that it names
  // Words of such rows whose home it is, over those that all ranks named, in the last update.
  float distinct_share = 0;
};
static_assert(sizeof(Note) == sizeof(int64_t));

bool updates_copies(const table::EmbeddingTable& table) {
  return !table.spec().frozen && table.share().has_copies();
}

}  // namespace

RowUpdates::RowUpdates(Communicator& communicator, RankTables& of, ShardedOptions options,
                       bool shared)
    : communicator_(communicator),
      of_(of),
      tables_(of.tables),
      pool_(of.pool),
      options_(options),
      unit_(options.dedup_fetch ? SentUnit::subtree_sum : SentUnit::lookup),
      exchange_(communicator, of.tables, of.pool, shared),
      mean_squares_(communicator, of.tables, of.pool),
      finished_(communicator, of.tables, of.pool, shared),
      located_(of.tables.size()) {
  int64_t held = 0;  // words of copies, over all ranks
  for (const auto& table : of.tables) {
    if (!updates_copies(table)) continue;
    const table::RowMap& map = *table.share().map();
    all_copied_words_ += map.copied_rows() * words_of_row(table);
    int64_t slots = -(map.rows() - map.copied_rows());
    for (int rank = 0; rank < map.devices(); ++rank) slots += map.slots(rank);
    held += slots * words_of_row(table);
  }
  if (all_copied_words_ > 0)
    copies_ = static_cast<double>(held) / static_cast<double>(all_copied_words_);
}

// Until it is known how much ranks look up, sparse.
Recipients RowUpdates::recipients(CopyReduce way) const {
  const auto copied = way == CopyReduce::dense        ? Recipients::nobody
                      : way == CopyReduce::all_gather ? Recipients::holders
                                                      : Recipients::home;
  return {true, unit_ == SentUnit::lookup ? Recipients::nobody : copied};
}

void RowUpdates::plan(std::span<const DistinctRows> distinct,
                      std::span<const std::vector<table::RowPlace>> places, int slices,
                      std::vector<SentSums>& sent) const {
  const SliceRange own = slices_of_rank(communicator_.rank(), communicator_.ranks(), slices);
  sent.resize(tables_.size());
  pool_.run(static_cast<int64_t>(tables_.size()), [&](int64_t t) {
    if (!tables_[t].spec().frozen)
      sent[t].plan(distinct[t], places[t], tables_[t], own, unit_, recipients(options_.reduce));
  });
}

int64_t RowUpdates::copied_words(std::span<const std::vector<table::RowPlace>> places) const {
  int64_t words = 0;
  if (options_.reduce != CopyReduce::automatic) return words;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (!updates_copies(tables_[t])) continue;
    const table::RowMap& map = *tables_[t].share().map();
    words += words_of_row(tables_[t]) *
             std::ranges::count_if(places[t], [&](auto place) { return map.is_copied(place); });
  }
  return words;
}

int64_t RowUpdates::note(int64_t copied_words) const {
  const double share = touched_ > 0 ? static_cast<double>(distinct_words_) / touched_ : 0;
  return std::bit_cast<int64_t>(Note{static_cast<float>(copied_words), static_cast<float>(share)});
}

// Begins to count distinct rows anew.
CopyReduce RowUpdates::choose(std::span<const std::span<const int64_t>> notes, int slices) {
  if (options_.reduce != CopyReduce::automatic) return options_.reduce;
  std::vector<double> touched(communicator_.ranks());
  std::vector<int> sums;
  double distinct_share = 0;
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    for (const auto& of_batch : notes)
      touched[rank] += std::bit_cast<Note>(of_batch[rank]).copied_words;
    distinct_share += std::bit_cast<Note>(notes[0][rank]).distinct_share;
    sums.push_back(
        static_cast<int>(subtrees(slices_of_rank(rank, communicator_.ranks(), slices)).size()));
  }
  touched_ = std::accumulate(touched.begin(), touched.end(), 0.0);
  distinct_words_ = 0;
  return choose_reduce({touched, sums, static_cast<double>(all_copied_words_),
                        static_cast<double>(DenseReduce::elements(tables_)), copies_,
                        distinct_share});
}

Result<int64_t> RowUpdates::update(std::span<const TableGradients> sources,
                                   std::span<const SentSums> planned,
                                   std::span<const std::span<const int64_t>> notes, int slices,
                                   const table::RowStep& step, std::span<const TableSums> pooled) {
  const CopyReduce way = choose(notes, slices);
  RECMILL_ASSIGN_OR_RETURN(const auto sums,
                           exchange(sources, planned, recipients(way), unit_, slices));
  std::vector<TableSums> gradients;
  for (size_t t = 0; t < tables_.size(); ++t) {
    const bool is_pooled = !pooled.empty() && !pooled[t].parts.begins.empty();
    gradients.push_back(is_pooled ? pooled[t] : sums[t]);
  }
  RECMILL_RETURN_IF_ERROR(mean_squares_.exchange(gradients));
  int64_t rows = pooled.empty() ? 0 : apply(pooled, step);
  rows += apply(sums, step);
  if (all_copied_words_ == 0) return rows;
  RECMILL_ASSIGN_OR_RETURN(const int64_t copied, update_copies(sources, sums, way, slices, step));
  return rows + copied;
}

Result<std::vector<TableSums>> RowUpdates::exchange(std::span<const TableGradients> sources,
                                                    std::span<const SentSums> planned,
                                                    Recipients recipients, SentUnit unit,
                                                    int slices) {
  const SliceRange own = slices_of_rank(communicator_.rank(), communicator_.ranks(), slices);
  const bool as_planned = !planned.empty() && recipients == this->recipients(options_.reduce);
  std::vector<SentSums> made(tables_.size());
  std::vector<const SentSums*> sent(tables_.size());
  pool_.run(static_cast<int64_t>(tables_.size()), [&](int64_t t) {
    if (tables_[t].spec().frozen) return;
    const bool copies_alone = !tables_[t].share().has_copies() && recipients.single;
    if (as_planned || (copies_alone && !planned.empty())) {
      sent[t] = &planned[t];
    } else {
      made[t].plan(*sources[t].distinct, sources[t].places, tables_[t], own, unit, recipients);
      sent[t] = &made[t];
    }
  });
  return exchange_.exchange(sources, sent, slices, unit);
}

// What is left of rows with copies once those without are updated.
Result<int64_t> RowUpdates::update_copies(std::span<const TableGradients> sources,
                                          std::span<const TableSums> sums, CopyReduce way,
                                          int slices, const table::RowStep& step) {
  if (way == CopyReduce::dense) {
    if (dense_ == nullptr) dense_ = std::make_unique<DenseReduce>(communicator_, tables_, pool_);
    RECMILL_ASSIGN_OR_RETURN(const auto added, dense_->reduce(sources, slices));
    return apply(added, step);
  }
  int64_t rows = 0;
  std::vector<TableSums> own(sums.begin(), sums.end());
  if (unit_ == SentUnit::lookup) {  // those with copies have not been sent yet
    const auto copied = way == CopyReduce::all_gather ? Recipients::holders : Recipients::home;
    RECMILL_ASSIGN_OR_RETURN(own,
                             exchange(sources, {}, {false, copied}, SentUnit::subtree_sum, slices));
    rows += apply(own, step);
  }
  if (way == CopyReduce::all_gather) return rows;
  std::vector<std::span<const table::RowPlace>> places;  // of those that were applied last
  for (const Located& located : located_) places.push_back(located.places);
  RECMILL_ASSIGN_OR_RETURN(const auto passed_on, finished_.pass_on(own, places));
  return rows + apply(passed_on, step);
}

void RowUpdates::Located::find(std::span<const int64_t> rows, const table::EmbeddingTable& table) {
  const table::RowShare& share = table.share();
  find_places(rows, table, places);
  slots.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i)
    slots[i] =
        share.map() == nullptr ? share.slot(rows[i]) : share.map()->slot(places[i], share.rank());
  owned = table.columns().first > 0 ? 0 : std::ssize(rows);
  owned_copied = 0;
  if (!share.has_copies()) return;
  owned = 0;
  for (const table::RowPlace place : places) {
    if (share.map()->home(place).device != share.rank()) continue;
    ++owned;
    owned_copied += share.map()->is_copied(place) ? 1 : 0;
  }
}

int64_t RowUpdates::apply(std::span<const TableSums> sums, const table::RowStep& step) {
  std::vector<table::TableParts> updates;
  std::vector<std::span<const int64_t>> changed(tables_.size());
  for (size_t t = 0; t < tables_.size(); ++t)
    if (tables_[t].columns().count > 0) changed[t] = sums[t].rows;
  pool_.run(std::ssize(tables_), [&](int64_t t) { located_[t].find(changed[t], tables_[t]); });
  int64_t owned = 0;
  for (size_t t = 0; t < tables_.size(); ++t) {
    owned += located_[t].owned;
    distinct_words_ += located_[t].owned_copied * words_of_row(tables_[t]);
    if (!changed[t].empty())
      updates.push_back({&tables_[t], changed[t], located_[t].slots, sums[t].parts,
                         mean_squares_.of(t), of_.names.empty() ? nullptr : of_.names[t]});
  }
  const auto change = of_.snapshots.before(changed, pool_);
  table::update_tables_from_parts(updates, step, pool_);
  return owned;
}

}  // namespace recmill::store
