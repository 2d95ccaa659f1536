// SPDX-License-Identifier: Apache-2.0
#include "lookahead/cache_decider.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

#include "lookahead/rank_messages.h"
#include "lookahead/shared_oracle.h"

namespace recmill::lookahead {
namespace {

ModelSpec three_tables() {
  ModelSpec model;
  for (const auto& [name, rows, dim] : {std::tuple{"a", 30, 4}, {"b", 20, 8}, {"c", 10, 4}}) {
    TableSpec& table = model.tables.emplace_back();
    table.name = name;
    table.rows = rows;
    table.dim = dim;
  }
  return model;
}

std::vector<StepUses> random_uses(std::mt19937_64& random, int ranks) {
  std::vector<StepUses> stream(1 + random() % 20);
  for (auto& step : stream) {
    std::vector<std::vector<int64_t>> of_ranks;
    for (int rank = 0; rank < ranks; ++rank) {
      std::set<int64_t> named;
      for (size_t lookup = random() % 12; lookup-- > 0;)
        named.insert(std::min(random() % 60, random() % 60));
      of_ranks.emplace_back(named.begin(), named.end());
    }
    step = merge_uses(of_ranks);
  }
  return stream;
}

/// Where rows are, as ranks carry the parts out: memory of homes and slots, of which each place has
/// one row, and messages between each two ranks.
class PlainRanks {
 public:
  PlainRanks(const SlotTables& tables, const DeciderOf& home_of, int ranks)
      : tables_(tables), home_of_(home_of), ranks_(ranks) {}

  void carry_out(const std::vector<RankStep>& steps, RowMoves RankStep::*moves) {
    std::map<std::pair<int32_t, int32_t>, std::vector<int64_t>> messages;  // from, to
    for (int32_t rank = 0; rank < ranks_; ++rank)
      for (const RowMove& move : (steps[rank].*moves).out) {
        const bool is_home = move.kind == RowMove::Kind::fetch;
        EXPECT_TRUE(is_home ? home_of_(move.at.row) == rank && !away_.contains(move.at.row)
                            : has(rank, move.at) || left_.contains({rank, move.at.row}))
            << "rank " << rank << " sends row " << move.at.row;
        messages[{rank, move.peer}].push_back(move.at.row);
      }
    if (moves == (steps[0].any_critical ? &RankStep::critical : &RankStep::rest)) leave(steps);
    std::map<std::pair<int32_t, int32_t>, size_t> read;
    for (int32_t rank = 0; rank < ranks_; ++rank)
      for (const RowMove& move : (steps[rank].*moves).in) {
        auto& message = messages[{move.peer, rank}];
        size_t& at = read[{move.peer, rank}];
        ASSERT_LT(at, message.size());
        EXPECT_EQ(message[at++], move.at.row);
        if (move.kind == RowMove::Kind::evict) {
          away_.erase(move.at.row);
          EXPECT_EQ(home_of_(move.at.row), rank);
          continue;
        }
        EXPECT_TRUE(slots_.emplace(place(rank, move.at), move.at.row).second)
            << "slot " << move.at.slot << " of rank " << rank << " is taken";
      }
    for (const auto& [between, message] : messages) EXPECT_EQ(read[between], message.size());
    for (int32_t rank = 0; rank < ranks_; ++rank)
      for (const RowMove& move : (steps[rank].*moves).out)
        if (move.kind == RowMove::Kind::fetch) away_.insert(move.at.row);
    if (moves == &RankStep::rest) left_.clear();
  }
  bool has(int32_t rank, const RowInSlot& row) const {
    const auto found = slots_.find(place(rank, row));
    return found != slots_.end() && found->second == row.row;
  }
  bool is_empty() const { return slots_.empty(); }

 private:
  using Place = std::tuple<int32_t, int, bool, int32_t>;
  Place place(int32_t rank, const RowInSlot& row) const {
    EXPECT_TRUE(row.holder == kEverywhere || row.holder == rank);
    return {rank, tables_.slot_table_of_row(row.row), row.holder == kEverywhere, row.slot};
  }
  /// In the first round, once everything that leaves in either was copied out.
  void leave(const std::vector<RankStep>& steps) {
    for (int32_t rank = 0; rank < ranks_; ++rank) {
      for (const RowMove& move : steps[rank].rest.out)
        EXPECT_TRUE(move.kind == RowMove::Kind::fetch || has(rank, move.at));
      for (const RowInSlot& row : steps[rank].leave) {
        EXPECT_TRUE(has(rank, row)) << row.row;
        slots_.erase(place(rank, row));
        left_.insert({rank, row.row});
      }
    }
  }

  const SlotTables& tables_;
  const DeciderOf& home_of_;
  const int32_t ranks_;
  std::map<Place, int64_t> slots_;
  std::set<int64_t> away_;                      // from their homes
  std::set<std::pair<int32_t, int64_t>> left_;  // since the last step
};

/// What went early is not used in the step between, and lent in the one after it.
void expect_early(const std::vector<std::vector<RankStep>>& history, int rank,
                  const RankStep& step) {
  const size_t before = history.size();
  if (before >= 1) {
    for (const RowLent& of : history[before - 1][rank].early_out)
      EXPECT_FALSE(std::ranges::binary_search(step.held, of.row)) << "row " << of.row.row;
  }
  if (before < 2) return;
  const RankStep& sent = history[before - 2][rank];
  EXPECT_TRUE(std::ranges::includes(step.lent, sent.early_out));
  EXPECT_TRUE(std::ranges::includes(step.uses, sent.early_in));
}

TEST(CacheDecider, gives_parts_that_ranks_can_carry_out_in_each_design) {
  const SlotTables tables(three_tables());
  ASSERT_EQ(tables.count(), 2);
  int critical = 0;
  int64_t lent = 0, borrowed = 0, early = 0;
  for (uint64_t seed = 0; seed < 800; ++seed) {
    std::mt19937_64 random(seed);
    const int ranks = 2 + static_cast<int>(random() % 3);
    const DeciderOf home_of = [&](int64_t row) { return static_cast<int32_t>(row % ranks); };
    const auto stream = random_uses(random, ranks);
    CacheSize size{.lookahead = static_cast<int64_t>(random() % 8)};
    size.prefetch = std::min<int64_t>(size.lookahead, static_cast<int64_t>(random() % 4));
    const int64_t slots = ranks * static_cast<int64_t>(5 + random() % 40);
    size.slots = size.copied_slots = {slots, slots};
    std::vector<CacheDecider> deciders;
    for (int rank = 0; rank < ranks; ++rank)
      deciders.emplace_back(tables, rank, ranks, static_cast<CacheDesign>(seed % 4));
    PlainRanks plain(tables, home_of, ranks);
    const size_t chosen_after = random() % (stream.size() + 1);
    bool refused = false;
    size_t decided = 0;
    std::vector<std::vector<RankStep>> history;  // [steps][ranks]
    const auto decide = [&] {
      while (!refused && decided < stream.size() && deciders[0].ready()) {
        std::vector<std::vector<RankStep>> parts(static_cast<size_t>(ranks));
        for (auto& decider : deciders) {
          const auto of_ranks = decider.next();
          refused = refused || !of_ranks.ok();
          if (refused) break;
          for (int rank = 0; rank < ranks; ++rank) {
            std::vector<std::byte> bytes;
            append_part((*of_ranks)[rank], rank, bytes);
            parts[rank].push_back(*read_part(bytes, rank));
            EXPECT_EQ(parts[rank].back(), (*of_ranks)[rank]);
            EXPECT_FALSE(read_part(std::span(bytes).first(bytes.size() - 1), rank).ok());
          }
        }
        if (refused) return;
        std::vector<RankStep> steps;
        for (const auto& of_rank : parts) steps.push_back(merged(of_rank));
        if (decided == 0) plain.carry_out(steps, &RankStep::before);
        for (int rank = 0; rank < ranks; ++rank) {
          size_t at = 0;
          for (int64_t i = 0; i < stream[decided].count(); ++i) {
            const auto users = stream[decided].users(i);
            if (std::ranges::count(users, rank) == 0) continue;
            const RowInSlot& use = steps[rank].uses.at(at++);
            EXPECT_EQ(use.row, stream[decided].rows[i]);
            EXPECT_TRUE(plain.has(use.holder == kEverywhere ? rank : use.holder, use));
          }
          EXPECT_EQ(at, steps[rank].uses.size());
          for (const RowInSlot& held : steps[rank].held) EXPECT_TRUE(plain.has(rank, held));
          for (const auto& [user, row] : steps[rank].lent) {
            EXPECT_EQ(row.holder, rank);
            EXPECT_EQ(std::ranges::count(steps[user].uses, row), 1);
          }
          lent += std::ssize(steps[rank].lent);
          for (const RowLent& of : steps[rank].early_out) {
            EXPECT_TRUE(plain.has(rank, of.row)) << "row " << of.row.row;
            EXPECT_EQ(std::ranges::count(steps[of.user].early_in, of.row), 1);
            ++early;
          }
          expect_early(history, rank, steps[rank]);
          for (const RowInSlot& use : steps[rank].uses)
            borrowed += use.holder != rank && use.holder != kEverywhere ? 1 : 0;
        }
        critical += steps[0].any_critical ? 1 : 0;
        if (steps[0].any_critical) plain.carry_out(steps, &RankStep::critical);
        plain.carry_out(steps, &RankStep::rest);
        history.push_back(steps);
        ++decided;
      }
    };
    for (size_t x = 0; x <= stream.size(); ++x) {
      if (x == chosen_after)
        for (auto& decider : deciders) decider.choose(size);
      if (x == stream.size()) break;
      const auto parts = split_uses(stream[x], home_of, ranks);
      for (int rank = 0; rank < ranks; ++rank) deciders[rank].see(parts[rank]);
      decide();
    }
    for (auto& decider : deciders) decider.end();
    decide();
    if (HasFatalFailure() || HasNonfatalFailure()) FAIL() << "seed " << seed;
    if (refused) continue;
    EXPECT_EQ(decided, stream.size());
    EXPECT_TRUE(plain.is_empty());
  }
  EXPECT_GT(critical, 500);
  EXPECT_EQ(lent, borrowed);
  EXPECT_GT(early, 500);
}

TEST(RankMessages, have_rows_in_few_bytes) {
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < 1000; ++row) rows.push_back(row * 100 + (int64_t{1} << 40));
  std::vector<std::byte> message;
  append_rows(rows, message);
  EXPECT_LT(message.size(), 1020u);
  EXPECT_EQ(*read_rows(message), rows);
  EXPECT_FALSE(read_rows(std::span(message).first(message.size() - 1)).ok());
  message.push_back(std::byte{1});
  EXPECT_FALSE(read_rows(message).ok());
}

}  // namespace
}  // namespace recmill::lookahead
