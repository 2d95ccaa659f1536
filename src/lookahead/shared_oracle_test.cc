// SPDX-License-Identifier: Apache-2.0
#include "lookahead/shared_oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "lookahead/testing/streams.h"

namespace recmill::lookahead {
namespace {

using Uses = std::vector<StepUses>;

/// All decisions; of a refusal none, and `refusal` is why.
template <typename AnyOracle>
std::vector<LookaheadStep> decide_all(const Uses& stream, AnyOracle oracle, std::string& refusal) {
  std::vector<LookaheadStep> decisions;
  size_t seen = 0;
  while (decisions.size() < stream.size()) {
    while (!oracle.ready()) {
      if (seen < stream.size()) {
        oracle.see(stream[seen++]);
      } else {
        oracle.end();
      }
    }
    auto decision = oracle.decide();
    if (!decision.ok()) {
      refusal = decision.status().message();
      return {};
    }
    decisions.push_back(*std::move(decision));
  }
  return decisions;
}

/// The definition for one decider, with sets and the whole stream at hand.
class PlainDecider {
 public:
  PlainDecider(const Uses& stream, const OracleOptions& options)
      : stream_(stream),
        of_(options),
        prefetch_(std::min(options.prefetch, options.lookahead)),
        steps_(std::ssize(stream)),
        sent_(static_cast<size_t>(options.ranks)) {
    find_holders();
  }

  /// None: the rows that have to be at one place are more than its slots.
  std::optional<std::vector<LookaheadStep>> decide() {
    std::vector<LookaheadStep> decisions(stream_.size());
    for (int64_t x = 0; x < std::min(prefetch_ + 1, steps_); ++x) fetch(x, decisions[x]);
    if (steps_ > 0 && !fits(-1)) return std::nullopt;
    for (int64_t e = 0; e < steps_; ++e) {
      LookaheadStep& now = decisions[e];
      now.step = e;
      for (const auto& [row, holder] : holders_[e])
        if (next_use(row, e) > std::min(e + of_.lookahead, steps_ - 1)) evict(row, holder, now);
      if (e + prefetch_ + 1 < steps_) {
        for (const int32_t holder : places()) make_room(e, holder, now);
        if (!fits(e)) return std::nullopt;
        fetch(e + prefetch_ + 1, decisions[e + prefetch_ + 1]);
      }
      std::ranges::sort(now.evict);
    }
    for (const auto& [y, handed] : handed_over_)
      for (const HandOver& row : handed) decisions[y].hand_over.push_back(row);
    for (LookaheadStep& decision : decisions) std::ranges::sort(decision.hand_over);
    return decisions;
  }
  int32_t holder(int64_t step, int64_t row) const { return holders_[step].at(row); }

 private:
  std::vector<int32_t> places() const {
    std::vector<int32_t> all{kEverywhere};
    for (int32_t rank = 0; rank < of_.ranks; ++rank) all.push_back(rank);
    return all;
  }
  int64_t next_use(int64_t row, int64_t after) const {
    int64_t step = after + 1;
    while (step < steps_ && !holders_[step].contains(row)) ++step;
    return step;
  }
  int64_t last_use(int64_t row, int64_t until) const {
    while (until >= 0 && !holders_[until].contains(row)) --until;
    return until;
  }
  void find_holders() {
    for (int64_t x = 0; x < steps_; ++x) {
      auto& now = holders_.emplace_back();
      for (int64_t i = 0; i < stream_[x].count(); ++i) {
        const int64_t row = stream_[x].rows[i];
        const int64_t before = last_use(row, x - 1);
        const bool known = before >= 0 && x - before <= of_.lookahead;
        now[row] = choose(known ? std::optional(holders_[before].at(row)) : std::nullopt,
                          stream_[x].users(i));
      }
    }
  }
  int32_t choose(std::optional<int32_t> before, std::span<const int32_t> users) {
    if (of_.design == CacheDesign::replicated) return kEverywhere;
    if (of_.design == CacheDesign::partitioned) return of_.rank;
    if (of_.design == CacheDesign::lrpp) {
      const bool alone = users.size() == 1 && before.value_or(users[0]) == users[0];
      return alone ? users[0] : kEverywhere;
    }
    int32_t holder = before.value_or(-5);
    if (std::ranges::count(users, holder) == 0) {
      holder = users[0];
      for (const int32_t user : users)
        if (sent_[user] < sent_[holder]) holder = user;
      if (before) ++sent_[*before];
    }
    for (const int32_t user : users) {
      if (user == holder) continue;
      ++sent_[user];    // its sum
      ++sent_[holder];  // the weights
    }
    return holder;
  }
  void evict(int64_t row, int32_t holder, LookaheadStep& now) {
    resident_.erase(row);
    now.evict.push_back({row, 0, holder});
  }
  /// Whether a row in a slot is at `holder` after step e, with those of step e + P + 1.
  bool is_at(int32_t holder, int64_t row, int64_t e) const {
    bool used = false;
    for (int64_t x = e + 1; x <= std::min(e + prefetch_ + 1, steps_ - 1); ++x) {
      const auto found = holders_[x].find(row);
      if (found == holders_[x].end()) continue;
      if (found->second == holder) return true;
      used = true;
    }
    return !used && holders_[last_use(row, e)].at(row) == holder;
  }
  std::set<int64_t> rows_at(int32_t holder, int64_t e) const {
    std::set<int64_t> rows;
    std::set<int64_t> there = resident_;
    for (int64_t x = e + 1; x <= std::min(e + prefetch_ + 1, steps_ - 1); ++x)
      for (const auto& [row, of] : holders_[x]) there.insert(row);
    for (const int64_t row : there)
      if (is_at(holder, row, e)) rows.insert(row);
    return rows;
  }
  int64_t slots(int32_t holder) const {
    return holder == kEverywhere ? of_.copied_slots : of_.slots;
  }
  bool fits(int64_t e) const {
    return std::ranges::all_of(places(), [&](int32_t holder) {
      return slots(holder) == 0 || std::ssize(rows_at(holder, e)) <= slots(holder);
    });
  }
  void make_room(int64_t e, int32_t holder, LookaheadStep& now) {
    if (slots(holder) == 0) return;
    while (std::ssize(rows_at(holder, e)) > slots(holder)) {
      std::pair<int64_t, int64_t> farthest{-1, -1};
      for (const int64_t row : resident_)
        if (is_at(holder, row, e) && next_use(row, e) > e + prefetch_ + 1)
          farthest = std::max(farthest, {next_use(row, e), row});
      if (farthest.second < 0) return;
      evict(farthest.second, holder, now);
    }
  }
  void fetch(int64_t x, LookaheadStep& decision) {
    for (const auto& [row, holder] : holders_[x]) {
      if (resident_.insert(row).second) {
        decision.fetch.push_back({row, 0, holder});
        continue;
      }
      const int64_t before = last_use(row, x - 1);
      const int32_t from = holders_[before].at(row);
      if (from == holder) continue;
      const HandOver handed{{row, 0, from}, {row, 0, holder}, x};
      handed_over_[std::max(before, x - prefetch_ - 1)].push_back(handed);
    }
  }

  const Uses& stream_;
  const OracleOptions of_;
  const int64_t prefetch_, steps_;
  std::vector<int64_t> sent_;
  std::vector<std::map<int64_t, int32_t>> holders_;  // [steps], of rows
  std::set<int64_t> resident_;
  std::map<int64_t, std::vector<HandOver>> handed_over_;  // by step
};

Uses random_uses(std::mt19937_64& random, int ranks) {
  Uses stream(1 + random() % 30);
  const int64_t rows = 1 + static_cast<int64_t>(random() % 40);
  for (auto& step : stream) {
    std::vector<std::vector<int64_t>> of_ranks;
    for (int rank = 0; rank < ranks; ++rank) {
      std::set<int64_t> named;
      for (size_t lookup = random() % 6; lookup-- > 0;)
        named.insert(std::min(random() % rows, random() % rows));
      of_ranks.emplace_back(named.begin(), named.end());
    }
    step = merge_uses(of_ranks);
  }
  return stream;
}

auto without_slots(std::vector<RowInSlot> rows) {
  for (RowInSlot& row : rows) row.slot = 0;
  return rows;
}
auto without_slots(std::vector<HandOver> rows) {
  for (HandOver& row : rows) row.from.slot = row.to.slot = 0;
  return rows;
}

/// Carries decisions out in the order of rounds: after each step what leaves goes out of its slots
/// before what comes goes in. A slot has one row at a time, and a step finds its rows.
void check_slots(const Uses& stream, const OracleOptions& options,
                 const std::vector<LookaheadStep>& decisions) {
  const int64_t prefetch = std::min(options.prefetch, options.lookahead);
  std::map<std::pair<int32_t, int32_t>, int64_t> rows;  // by holder and slot
  const auto put = [&](const RowInSlot& row) {
    EXPECT_TRUE(rows.emplace(std::pair(row.holder, row.slot), row.row).second)
        << "slot " << row.slot << " of " << row.holder << " is taken";
    const int64_t slots = row.holder == kEverywhere ? options.copied_slots : options.slots;
    EXPECT_TRUE(slots == 0 || row.slot < slots) << row.slot;
  };
  const auto take = [&](const RowInSlot& row) {
    const auto found = rows.find({row.holder, row.slot});
    ASSERT_TRUE(found != rows.end() && found->second == row.row) << row.row;
    rows.erase(found);
  };
  const auto steps = std::ssize(stream);
  for (int64_t x = 0; x < std::min(prefetch + 1, steps); ++x)
    std::ranges::for_each(decisions[x].fetch, put);
  for (int64_t e = 0; e < steps; ++e) {
    ASSERT_EQ(std::ssize(decisions[e].uses), stream[e].count());
    for (int64_t i = 0; i < stream[e].count(); ++i) {
      const RowInSlot& use = decisions[e].uses[i];
      EXPECT_EQ(use.row, stream[e].rows[i]);
      const auto found = rows.find({use.holder, use.slot});
      EXPECT_TRUE(found != rows.end() && found->second == use.row)
          << "step " << e << ", row " << use.row;
    }
    std::ranges::for_each(decisions[e].evict, take);
    for (const HandOver& row : decisions[e].hand_over) take(row.from);
    for (const HandOver& row : decisions[e].hand_over) put(row.to);
    if (e + prefetch + 1 < steps) std::ranges::for_each(decisions[e + prefetch + 1].fetch, put);
  }
  EXPECT_TRUE(rows.empty());
}

TEST(OracleOfRanks, decides_as_the_plain_one_on_random_streams_in_each_design) {
  int refusals = 0, evicted_early = 0, handed_over = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    std::mt19937_64 random(seed);
    const int ranks = 2 + static_cast<int>(random() % 3);
    const Uses stream = random_uses(random, ranks);
    OracleOptions options{.lookahead = static_cast<int64_t>(random() % 12),
                          .prefetch = static_cast<int64_t>(random() % 6),
                          .slots = static_cast<int64_t>(random() % 3 * (1 + random() % 12)),
                          .ranks = ranks,
                          .design = static_cast<CacheDesign>(seed % 4),
                          .rank = static_cast<int>(random() % ranks)};
    if (options.slots > 0) options.copied_slots = 1 + static_cast<int64_t>(random() % 20);
    const auto expected = PlainDecider(stream, options).decide();
    std::string why;
    const auto found = decide_all(stream, Oracle(options), why);
    ASSERT_EQ(why.empty(), expected.has_value()) << "seed " << seed << ": " << why;
    if (!expected) {
      ++refusals;
      continue;
    }
    for (size_t x = 0; x < found.size(); ++x) {
      ASSERT_EQ(without_slots(found[x].fetch), (*expected)[x].fetch) << "seed " << seed << " " << x;
      ASSERT_EQ(without_slots(found[x].evict), (*expected)[x].evict) << "seed " << seed << " " << x;
      ASSERT_EQ(without_slots(found[x].hand_over), (*expected)[x].hand_over)
          << "seed " << seed << " " << x;
      for (size_t i = 0; i < found[x].evict.size(); ++i)
        evicted_early += found[x].last_use.size() > 0 && options.slots > 0 ? 1 : 0;
      handed_over += static_cast<int>(found[x].hand_over.size());
      EXPECT_LT(found[x].fence,
                std::max<int64_t>(
                    0, static_cast<int64_t>(x) - std::min(options.prefetch, options.lookahead)))
          << "seed " << seed;
    }
    check_slots(stream, options, found);
    if (HasFatalFailure() || HasNonfatalFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(refusals, 100);
  EXPECT_GT(evicted_early, 1000);
  EXPECT_GT(handed_over, 1000);
}

TEST(SharedOracle, is_each_deciders_oracle_of_its_rows) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    const int ranks = 2 + static_cast<int>(random() % 3);
    const Uses stream = random_uses(random, ranks);
    const OracleOptions options{.lookahead = static_cast<int64_t>(random() % 8),
                                .prefetch = static_cast<int64_t>(random() % 4),
                                .slots = static_cast<int64_t>(random() % 2 * (60 + random() % 40)),
                                .ranks = ranks,
                                .design = static_cast<CacheDesign>(seed % 4)};
    const DeciderOf decider_of = [&](int64_t row) { return static_cast<int32_t>(row % ranks); };
    std::string why;
    const auto all = decide_all(stream, SharedOracle(options, decider_of), why);
    if (!why.empty()) continue;
    OracleOptions checked = options;
    checked.copied_slots = options.slots;
    check_slots(stream, checked, all);
    for (int rank = 0; rank < ranks && options.design != CacheDesign::lrpp; ++rank) {
      Uses part;
      for (const StepUses& uses : stream) part.push_back(split_uses(uses, decider_of, ranks)[rank]);
      OracleOptions of = options;
      of.slots = of.copied_slots = options.slots / ranks;
      of.rank = rank;
      const auto alone = decide_all(part, Oracle(of), why);
      ASSERT_EQ(why, "");
      for (size_t x = 0; x < alone.size(); ++x) {
        std::vector<RowInSlot> fetched;
        for (const RowInSlot& row : all[x].fetch)
          if (decider_of(row.row) == rank) fetched.push_back(row);
        EXPECT_EQ(without_slots(fetched), without_slots(alone[x].fetch)) << "seed " << seed;
      }
    }
  }
}

TEST(SharedOracle, divides_slots_between_rows_that_all_have_and_rows_of_one_rank) {
  const std::vector<std::vector<int64_t>> one{{1, 2, 3, 4}, {4, 5, 6}}, two{{1}, {2}};
  const Uses window{merge_uses(one), merge_uses(two)};
  // Rows 2 and 4 have two users; 1, 3, 5 and 6 have one each.
  EXPECT_EQ(copied_part(window, 2, 100), 50);
  EXPECT_EQ(copied_part(window, 4, 90), 60);
  EXPECT_EQ(copied_part({}, 2, 10), 5);
  EXPECT_EQ(copied_part(std::span(window).subspan(1), 2, 10), 1);
}

}  // namespace
}  // namespace recmill::lookahead
