// SPDX-License-Identifier: Apache-2.0
#include "store/cached/mover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "lookahead/oracle.h"

namespace recmill::store {
namespace {

using Stream = std::vector<std::vector<int64_t>>;

struct Simulation {
  uint64_t seed = 0;
  MoverWaits waits = {};
  bool lookups_wait = true;
  bool fences = true;
};

/// A mover, its slots, a home and training in one thread, in an order that a seed draws. A row is
/// the number of its updates. The home carries puts out in order, some time after they are called,
/// and fetches at any time once the fence is reached.
class Schedule {
 public:
  explicit Schedule(const Simulation& of) : of_(of), random_(of.seed), mover_(of.waits) {
    prefetch_ = below(4);
    lookahead_ = below(10);
    make_plans();
  }

  /// "" or what went wrong first.
  std::string run() {
    const auto steps = std::ssize(plans_);
    for (int turns = 0; wrong_.empty() && (trained_ < steps || mover_.left() + 1 < steps);
         ++turns) {
      if (turns == 100'000) return "nothing moves";
      switch (below(6)) {
        case 0:
          if (planned_ < steps && planned_ < trained_ + 6) mover_.plan(plans_[planned_++]);
          break;
        case 1:
          train();
          break;
        case 2:
        case 3:
          move();
          break;
        case 4:
          carry_put_out();
          break;
        case 5:
          answer_fetch();
          break;
      }
      const auto under_way = static_cast<int64_t>(fetches_.size() + came_.size());
      if (under_way > prefetch() + 1) fail("more steps are fetched ahead than P + 1");
    }
    while (!puts_.empty()) carry_put_out();
    for (const auto& [row, updates] : updates_)
      if (home_[row] != updates) fail("an update is lost or double at the end");
    return wrong_;
  }

 private:
  struct Fetch {
    Mover::Plan plan;
    int64_t fence = -1;
  };
  struct Put {
    int64_t step = 0;
    std::map<int64_t, int64_t> rows;
  };

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t prefetch() const { return std::min(prefetch_, lookahead_); }
  void fail(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

  void make_plans() {
    Stream stream(static_cast<size_t>(8 + below(20)));
    size_t most = 1;
    for (auto& step : stream) {
      std::set<int64_t> rows;
      for (auto lookups = below(5); lookups > 0; --lookups) rows.insert(below(9) * below(3));
      step.assign(rows.begin(), rows.end());
    }
    for (size_t x = 0; x < stream.size(); ++x) {
      std::set<int64_t> rows;
      for (size_t y = x; y <= x + static_cast<size_t>(prefetch()) && y < stream.size(); ++y)
        rows.insert(stream[y].begin(), stream[y].end());
      most = std::max(most, rows.size());
    }
    lookahead::Oracle oracle({lookahead_, prefetch_, static_cast<int64_t>(most) + below(3)});
    for (const auto& rows : stream) oracle.see(rows);
    oracle.end();
    while (oracle.ready())
      plans_.push_back(std::make_shared<const LookaheadStep>(*oracle.decide()));
  }

  void train() {
    if (trained_ >= planned_ || (of_.lookups_wait && !mover_.is_ready(trained_))) return;
    for (const RowInSlot& use : plans_[trained_]->uses) {
      if (slots_[use.slot] != std::pair{use.row, updates_[use.row]}) fail("a stale read");
      slots_[use.slot] = {use.row, ++updates_[use.row]};
    }
    mover_.done(trained_++);
  }

  void move() {
    const auto action = mover_.next();
    if (!action) return;
    const LookaheadStep& plan = *action->plan;
    switch (action->act) {
      case Mover::Act::fetch:
        fetches_.push_back({action->plan, of_.fences ? plan.fence : -1});
        break;
      case Mover::Act::fill:
        for (const RowInSlot& row : plan.fetch)
          slots_[row.slot] = {row.row, came_[plan.step][row.row]};
        came_.erase(plan.step);
        break;
      case Mover::Act::leave:
        Put put{plan.step, {}};
        for (const RowInSlot& row : plan.evict) put.rows[row.row] = slots_[row.slot].second;
        puts_.push_back(std::move(put));
        break;
    }
    mover_.carried_out(*action);
  }

  void carry_put_out() {
    if (puts_.empty()) return;
    for (const auto& [row, updates] : puts_.front().rows) home_[row] = updates;
    mark_ = puts_.front().step;
    puts_.erase(puts_.begin());
  }

  void answer_fetch() {
    if (fetches_.empty()) return;
    const auto which = fetches_.begin() + below(std::ssize(fetches_));
    if (which->fence > mark_) return;
    auto& rows = came_[which->plan->step];
    for (const RowInSlot& row : which->plan->fetch) rows[row.row] = home_[row.row];
    // Where a fill did not wait for them, it is over.
    if (!mover_.is_ready(which->plan->step)) mover_.came(which->plan->step);
    fetches_.erase(which);
  }

  const Simulation of_;
  std::mt19937_64 random_;
  int64_t lookahead_ = 0, prefetch_ = 0;
  std::vector<Mover::Plan> plans_;
  Mover mover_;
  int64_t planned_ = 0, trained_ = 0;
  std::map<int32_t, std::pair<int64_t, int64_t>> slots_;  // row, updates
  std::map<int64_t, int64_t> updates_, home_;             // by row
  std::map<int64_t, std::map<int64_t, int64_t>> came_;    // by step
  std::vector<Fetch> fetches_;
  std::vector<Put> puts_;
  int64_t mark_ = -1;
  std::string wrong_;
};

TEST(Mover, loses_no_update_and_reads_no_stale_row_in_ten_thousand_schedules) {
  for (uint64_t seed = 0; seed < 10'000; ++seed)
    ASSERT_EQ(Schedule({.seed = seed}).run(), "") << "seed " << seed;
}

/// In how many of some schedules something goes wrong.
int failures(Simulation of) {
  int failed = 0;
  for (of.seed = 0; of.seed < 1000; ++of.seed) failed += Schedule(of).run().empty() ? 0 : 1;
  return failed;
}

TEST(Mover, needs_each_of_its_waits_and_the_fences) {
  EXPECT_EQ(failures({}), 0);
  EXPECT_GT(failures({.lookups_wait = false}), 0);
  EXPECT_GT(failures({.fences = false}), 0);
  EXPECT_GT(failures({.waits = {.fetch_for_room = false}}), 0);
  EXPECT_GT(failures({.waits = {.fill_for_rows = false}}), 0);
  EXPECT_GT(failures({.waits = {.fill_for_slots = false}}), 0);
  EXPECT_GT(failures({.waits = {.leave_for_end = false}}), 0);
}

}  // namespace
}  // namespace recmill::store
