// SPDX-License-Identifier: Apache-2.0
#include "lookahead/oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "lookahead/testing/streams.h"

namespace recmill::lookahead {
namespace {

using testing::skewed_stream;
using testing::Stream;

/// All decisions; of a refusal none, and `refusal` is why.
std::vector<LookaheadStep> decide_all(const Stream& stream, const OracleOptions& options,
                                      std::string* refusal = nullptr) {
  std::vector<LookaheadStep> decisions;
  const Status status = testing::decide_all(
      stream, options, [&](const LookaheadStep& decision) { decisions.push_back(decision); });
  if (status.ok()) return decisions;
  EXPECT_NE(refusal, nullptr) << status.message();
  if (refusal != nullptr) *refusal = status.message();
  return {};
}

int64_t fetched(const std::vector<LookaheadStep>& decisions) {
  int64_t rows = 0;
  for (const auto& decision : decisions) rows += std::ssize(decision.fetch);
  return rows;
}

std::vector<int64_t> rows_of(const std::vector<RowInSlot>& list) {
  std::vector<int64_t> rows;
  for (const RowInSlot& one : list) rows.push_back(one.row);
  return rows;
}

/// The definition, with sets and the whole stream at hand.
class PlainOracle {
 public:
  PlainOracle(const Stream& stream, const OracleOptions& options)
      : stream_(stream),
        lookahead_(options.lookahead),
        prefetch_(std::min(options.prefetch, options.lookahead)),
        slots_(options.slots) {}

  /// None: the rows that have to be there are more than slots.
  std::optional<std::vector<LookaheadStep>> decide() {
    const auto steps = std::ssize(stream_);
    std::vector<LookaheadStep> decisions(stream_.size());
    for (int64_t x = 0; x < std::min(prefetch_ + 1, steps); ++x)
      if (!fetch(x, decisions[x])) return std::nullopt;
    for (int64_t x = 0; x < steps; ++x) {
      LookaheadStep& now = decisions[x];
      now.step = x;
      for (const int64_t row : stream_[x]) {
        int64_t last = x;
        for (int64_t later = x; later <= std::min(x + lookahead_, steps - 1); ++later)
          if (uses(later, row)) last = later;
        now.last_use.push_back(last);
        if (lookahead_ > 0 && uses(x + 1, row)) ++now.critical;
        if (last == x) evict(row, x, now);
      }
      if (x + prefetch_ + 1 >= steps) continue;
      if (slots_ > 0 && !make_room(x, now)) return std::nullopt;
      if (!fetch(x + prefetch_ + 1, decisions[x + prefetch_ + 1])) return std::nullopt;
    }
    for (auto& decision : decisions) std::ranges::sort(decision.evict);
    return decisions;
  }
  int64_t evicted_last(int64_t row) const {
    const auto found = evicted_.find(row);
    return found == evicted_.end() ? -1 : found->second;
  }

 private:
  bool uses(int64_t step, int64_t row) const {
    return step < std::ssize(stream_) && std::ranges::binary_search(stream_[step], row);
  }
  int64_t next_use(int64_t row, int64_t after) const {
    int64_t step = after + 1;
    while (!uses(step, row)) ++step;
    return step;
  }
  void evict(int64_t row, int64_t step, LookaheadStep& now) {
    slots_of_.erase(row);
    evicted_[row] = step;
    now.evict.push_back({row});
  }
  bool make_room(int64_t x, LookaheadStep& now) {
    std::set<int64_t> needed;
    for (int64_t step = x + 1; step <= x + prefetch_ + 1; ++step)
      needed.insert(stream_[step].begin(), stream_[step].end());
    std::set<int64_t> there = needed;
    there.insert(slots_of_.begin(), slots_of_.end());
    while (std::ssize(there) > slots_) {
      std::pair<int64_t, int64_t> farthest{-1, -1};
      for (const int64_t row : slots_of_)
        if (!needed.contains(row)) farthest = std::max(farthest, {next_use(row, x), row});
      if (farthest.second < 0) return false;
      evict(farthest.second, x, now);
      there.erase(farthest.second);
    }
    return true;
  }
  bool fetch(int64_t step, LookaheadStep& decision) {
    for (const int64_t row : stream_[step]) {
      if (!slots_of_.insert(row).second) continue;
      decision.fetch.push_back({row});
      decision.fence = std::max(decision.fence, evicted_last(row));
    }
    return slots_ == 0 || std::ssize(slots_of_) <= slots_;
  }

  const Stream& stream_;
  const int64_t lookahead_, prefetch_, slots_;
  std::set<int64_t> slots_of_;
  std::map<int64_t, int64_t> evicted_;
};

/// Carries decisions out: a slot holds one row at a time, a row has one slot, and the rows of a
/// step and of those that are fetched ahead are there.
void check_slots(const Stream& stream, const OracleOptions& options,
                 const std::vector<LookaheadStep>& decisions) {
  const int64_t prefetch = std::min(options.prefetch, options.lookahead);
  std::map<int64_t, int32_t> slot_of;
  std::set<int32_t> taken;
  size_t filled = 0;
  for (size_t x = 0; x < decisions.size(); ++x) {
    for (; filled < decisions.size() && filled <= x + static_cast<size_t>(prefetch); ++filled) {
      for (const RowInSlot& fill : decisions[filled].fetch) {
        EXPECT_TRUE(slot_of.emplace(fill.row, fill.slot).second);
        EXPECT_TRUE(taken.insert(fill.slot).second) << "slot " << fill.slot << " is taken";
      }
      for (const int64_t row : stream[filled]) EXPECT_TRUE(slot_of.contains(row));
    }
    EXPECT_LE(std::ssize(taken), options.slots > 0 ? options.slots : std::ssize(taken));
    EXPECT_EQ(rows_of(decisions[x].uses), stream[x]);
    for (const RowInSlot& use : decisions[x].uses) EXPECT_EQ(slot_of.at(use.row), use.slot);
    for (const RowInSlot& evicted : decisions[x].evict) {
      ASSERT_TRUE(slot_of.contains(evicted.row));
      EXPECT_EQ(slot_of[evicted.row], evicted.slot);
      taken.erase(evicted.slot);
      slot_of.erase(evicted.row);
    }
  }
}

TEST(Oracle, decides_as_figure_6_of_bagpipe) {
  const Stream stream{{3, 9}, {3, 4}, {3, 6}, {1, 6}};
  const auto decisions = decide_all(stream, {.lookahead = 1});
  const std::vector<std::vector<int64_t>> fetch{{3, 9}, {4}, {6}, {1}},
      last_use{{1, 0}, {2, 1}, {2, 3}, {3, 3}}, evict{{9}, {4}, {3}, {1, 6}};
  for (size_t x = 0; x < stream.size(); ++x) {
    EXPECT_EQ(rows_of(decisions[x].fetch), fetch[x]);
    EXPECT_EQ(decisions[x].last_use, last_use[x]);
    EXPECT_EQ(rows_of(decisions[x].evict), evict[x]);
  }
  const auto further = decide_all(stream, {.lookahead = 2});
  EXPECT_EQ(further[0].last_use, (std::vector<int64_t>{2, 0}));
  for (size_t x = 1; x < stream.size(); ++x) EXPECT_EQ(further[x].last_use, last_use[x]);
}

TEST(Oracle, fetches_as_many_rows_of_a_skewed_stream_as_were_counted_otherwise) {
  const Stream stream = skewed_stream();
  int64_t distinct = 0;
  for (const auto& rows : stream) distinct += std::ssize(rows);
  EXPECT_EQ(distinct, 21'371);
  const auto count = [&](OracleOptions options) { return fetched(decide_all(stream, options)); };
  for (const auto& [lookahead, expected] :
       {std::pair{0, 21'371}, {1, 15'296}, {4, 10'210}, {16, 6'135}, {59, 4'375}})
    EXPECT_EQ(count({.lookahead = lookahead}), expected) << lookahead;
  for (const auto& [slots, expected] : {std::pair{375, 14'199}, {500, 10'453}, {1000, 6'588}})
    EXPECT_EQ(count({.lookahead = 59, .slots = slots}), expected) << slots;
  EXPECT_EQ(count({.lookahead = 59, .prefetch = 2, .slots = 1000}), 7'750);
  EXPECT_EQ(count({.lookahead = 59, .prefetch = 4, .slots = 1202}), 8'316);
  int64_t critical = 0;
  for (const auto& decision : decide_all(stream, {.lookahead = 1})) critical += decision.critical;
  EXPECT_EQ(critical, 6'075);
}

/// The rows of one table of a production-shaped trace, in batches of 1,024 lookups; empty: it is
/// not there.
Stream production_stream() {
  const char* const data = std::getenv("RECMILL_DATA");
  std::ifstream file(std::string(data == nullptr ? "" : data) +
                     "/embedding_trace/reuse_low.table_500K.txt");
  Stream stream;
  std::set<int64_t> rows;
  int64_t lookups = 0;
  for (int64_t row = 0; file >> row;) {
    rows.insert(row);
    if (++lookups % 1024 != 0) continue;
    stream.emplace_back(rows.begin(), rows.end());
    rows.clear();
  }
  if (!rows.empty()) stream.emplace_back(rows.begin(), rows.end());
  return stream;
}

TEST(Oracle, fetches_as_many_rows_of_a_production_shaped_trace_as_were_counted_otherwise) {
  const Stream stream = production_stream();
  if (stream.empty()) GTEST_SKIP() << "RECMILL_DATA has no embedding_trace";
  for (const auto& [lookahead, expected] :
       {std::pair{0, 364'314}, {8, 328'919}, {32, 302'562}, {64, 286'280}})
    EXPECT_EQ(fetched(decide_all(stream, {.lookahead = lookahead})), expected) << lookahead;
  EXPECT_EQ(fetched(decide_all(stream, {.lookahead = 371, .slots = 4096})), 293'325);
}

TEST(Oracle, refuses_slots_that_are_too_few_and_names_how_many_rows_there_are) {
  std::string why;
  EXPECT_TRUE(decide_all(skewed_stream(), {.lookahead = 59, .slots = 374}, &why).empty());
  EXPECT_EQ(why, "375 rows have to be in slots for step 13, and there are 374 slots");
  decide_all(skewed_stream(), {.lookahead = 59, .prefetch = 4, .slots = 1201}, &why);
  EXPECT_EQ(why, "1202 rows have to be in slots for steps 50 to 54, and there are 1201 slots");
}

Stream random_stream(std::mt19937_64& random) {
  Stream stream(1 + random() % 30);
  const int64_t rows = 1 + static_cast<int64_t>(random() % 40);
  for (auto& step : stream) {
    std::set<int64_t> named;
    for (size_t lookup = random() % 12; lookup-- > 0;)
      named.insert(std::min(random() % rows, random() % rows));  // empty steps too
    step.assign(named.begin(), named.end());
  }
  return stream;
}

TEST(Oracle, decides_as_the_plain_one_on_random_streams) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 random(seed);
    const Stream stream = random_stream(random);
    const OracleOptions options{.lookahead = static_cast<int64_t>(random() % 12),
                                .prefetch = static_cast<int64_t>(random() % 6),
                                .slots = static_cast<int64_t>(random() % 3 * (random() % 30))};
    const auto expected = PlainOracle(stream, options).decide();
    std::string why;
    auto found = decide_all(stream, options, &why);
    ASSERT_EQ(why.empty(), expected.has_value()) << "seed " << seed << ": " << why;
    if (!expected) continue;
    check_slots(stream, options, found);
    for (size_t x = 0; x < found.size(); ++x) {
      EXPECT_EQ(rows_of(found[x].fetch), rows_of((*expected)[x].fetch)) << "seed " << seed;
      EXPECT_EQ(found[x].last_use, (*expected)[x].last_use) << "seed " << seed;
      EXPECT_EQ(rows_of(found[x].evict), rows_of((*expected)[x].evict)) << "seed " << seed;
      EXPECT_EQ(found[x].critical, (*expected)[x].critical) << "seed " << seed;
      // A fence is no earlier than needed, and no later than the step after which rows are fetched.
      EXPECT_GE(found[x].fence, (*expected)[x].fence) << "seed " << seed;
      EXPECT_LT(found[x].fence,
                std::max<int64_t>(
                    0, static_cast<int64_t>(x) - std::min(options.prefetch, options.lookahead)))
          << "seed " << seed;
    }
  }
}

/// The fewest fetches of all caches that have the rows of each step in slots while it runs.
int64_t fewest_fetches(const Stream& stream, size_t step, const std::set<int64_t>& there,
                       int64_t slots) {
  if (step == stream.size()) return 0;
  std::set<int64_t> needed(stream[step].begin(), stream[step].end()), others;
  int64_t fetches = 0;
  for (const int64_t row : needed) fetches += there.contains(row) ? 0 : 1;
  for (const int64_t row : there)
    if (!needed.contains(row)) others.insert(row);
  const std::vector<int64_t> kept(others.begin(), others.end());
  std::optional<int64_t> fewest;
  for (uint64_t subset = 0; subset < uint64_t{1} << kept.size(); ++subset) {
    std::set<int64_t> after = needed;
    for (size_t i = 0; i < kept.size(); ++i)
      if (subset >> i & 1) after.insert(kept[i]);
    if (std::ssize(after) > slots) continue;
    const int64_t rest = fewest_fetches(stream, step + 1, after, slots);
    fewest = std::min(fewest.value_or(rest), rest);
  }
  return fetches + *fewest;
}

TEST(Oracle, that_sees_all_steps_fetches_as_seldom_as_any_cache_can) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    Stream stream(6);
    size_t most = 0;
    for (auto& step : stream) {
      std::set<int64_t> rows;
      for (size_t lookup = random() % 4; lookup-- > 0;) rows.insert(random() % 6);
      step.assign(rows.begin(), rows.end());
      most = std::max(most, step.size());
    }
    const auto slots = static_cast<int64_t>(std::max<size_t>(1, most) + random() % 2);
    EXPECT_EQ(fetched(decide_all(stream, {.lookahead = 6, .slots = slots})),
              fewest_fetches(stream, 0, {}, slots))
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace recmill::lookahead
