// SPDX-License-Identifier: Apache-2.0
// Ranks, their rounds, homes and training in one thread, by seeded schedules.
#include "store/cached/ranks/rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "lookahead/cache_decider.h"
#include "lookahead/shared_oracle.h"

namespace recmill::store {
namespace {

using lookahead::StepUses;
using Kind = Rounds::Kind;

/// A stream of ranks and what is planned for it. A row's value is how many steps have updated it.
struct World {
  int ranks = 2;
  std::vector<StepUses> uses;
  std::vector<bool> trains;  // [steps]; false: an evaluation
  CacheSize size;
  std::vector<std::vector<Rounds::Plan>> plans;  // [ranks][steps]
};

int32_t home_of(int64_t row, int ranks) {
  return static_cast<int32_t>(row % ranks);
}

/// False: slots are too few for the stream.
bool plan_all(World& world, CacheDesign design) {
  static const ModelSpec model = [] {
    ModelSpec one;
    one.tables.emplace_back().rows = 40;
    return one;
  }();
  static const SlotTables tables(model);
  std::vector<lookahead::CacheDecider> deciders;
  for (int rank = 0; rank < world.ranks; ++rank)
    deciders.emplace_back(tables, rank, world.ranks, design);
  for (const StepUses& uses : world.uses) {
    const auto parts = lookahead::split_uses(
        uses, [&](int64_t row) { return home_of(row, world.ranks); }, world.ranks);
    for (int rank = 0; rank < world.ranks; ++rank) deciders[rank].see(parts[rank]);
  }
  for (auto& decider : deciders) {
    decider.choose(world.size);
    decider.end();
  }
  world.plans.resize(static_cast<size_t>(world.ranks));
  for (size_t step = 0; step < world.uses.size(); ++step) {
    std::vector<std::vector<RankStep>> parts(static_cast<size_t>(world.ranks));
    for (auto& decider : deciders) {
      const auto of_ranks = decider.next();
      if (!of_ranks.ok()) return false;
      for (int rank = 0; rank < world.ranks; ++rank) parts[rank].push_back((*of_ranks)[rank]);
    }
    for (int rank = 0; rank < world.ranks; ++rank)
      world.plans[rank].push_back(std::make_shared<const RankStep>(lookahead::merged(parts[rank])));
  }
  return true;
}

World random_world(std::mt19937_64& random) {
  World world;
  world.ranks = 2 + static_cast<int>(random() % 3);
  world.size.lookahead = static_cast<int64_t>(random() % 6);
  world.size.prefetch = std::min<int64_t>(world.size.lookahead, static_cast<int64_t>(random() % 4));
  const int64_t slots = world.ranks * static_cast<int64_t>(3 + random() % 12);
  world.size.slots = world.size.copied_slots = {slots};
  world.uses.resize(1 + random() % 12);
  for (StepUses& step : world.uses) {
    std::vector<std::vector<int64_t>> of_ranks;
    for (int rank = 0; rank < world.ranks; ++rank) {
      std::set<int64_t> rows;
      for (size_t lookup = random() % 6; lookup-- > 0;)
        rows.insert(static_cast<int64_t>(std::min(random() % 40, random() % 40)));
      of_ranks.emplace_back(rows.begin(), rows.end());
    }
    step = lookahead::merge_uses(of_ranks);
    world.trains.push_back(random() % 5 != 0);
  }
  return world;
}

/// One rank: its slots and its home by value, what it sends, and how far it is.
struct SimulatedRank {
  explicit SimulatedRank(const RoundWaits& waits) : rounds(waits) {}

  struct Value {
    int64_t row = -1, updates = 0;
    bool updated = false;  // since its fetch
  };
  using Messages = std::vector<std::vector<std::pair<int64_t, Value>>>;  // [ranks], rows sent

  Rounds rounds;
  std::map<std::pair<bool, int32_t>, Value> slots;  // by whether all have it, and slot
  std::map<int64_t, int64_t> home;                  // updates by row
  size_t planned = 0, looked_up = 0, done = 0;      // steps
  size_t begun = 0, delivered = 0;                  // rounds
  std::vector<Rounds::Round> history;               // [begun]
  std::vector<Messages> sent;                       // [begun]
  Messages of_rest;                                 // from slots, copied out before the first round
  std::vector<std::map<int64_t, int64_t>> early;    // [begun], sent early: updates by row
  std::map<std::pair<int64_t, int64_t>, int64_t> came_early;  // by step that looks up, and row
};

/// Carries a world out, an event at a time; "" or what went wrong.
class Simulation {
 public:
  Simulation(const World& world, uint64_t seed, const RoundWaits& waits)
      : world_(world), random_(seed) {
    for (int rank = 0; rank < world.ranks; ++rank) ranks_.emplace_back(waits);
    updates_.resize(40);
  }

  int64_t early_reads() const { return early_reads_; }

  std::string run() {
    std::vector<std::function<bool(int)>> events{
        [&](int rank) { return plan(rank); }, [&](int rank) { return enter(rank); },
        [&](int rank) { return finish(rank); }, [&](int rank) { return begin_round(rank); },
        [&](int rank) { return deliver(rank); }};
    for (int idle = 0; wrong_.empty() && idle < 400;) {
      const bool happened = events[random_() % events.size()](
          static_cast<int>(random_() % static_cast<uint64_t>(world_.ranks)));
      idle = happened ? 0 : idle + 1;
    }
    if (!wrong_.empty()) return wrong_;
    for (int rank = 0; rank < world_.ranks; ++rank) {
      if (ranks_[rank].done != world_.uses.size()) return "rank " + std::to_string(rank) + " waits";
      for (int64_t row = rank; row < 40; row += world_.ranks)
        if (ranks_[rank].home[row] != updates_[row]) return "an update is lost";
    }
    return "";
  }

 private:
  bool plan(int rank) {
    SimulatedRank& of = ranks_[rank];
    if (of.planned == world_.uses.size()) return false;
    of.rounds.plan(world_.plans[rank][of.planned++]);
    return true;
  }

  /// Lookups and updates of a step are carried out once all ranks have come to it.
  bool enter(int rank) {
    SimulatedRank& of = ranks_[rank];
    const size_t step = of.looked_up;
    if (step == world_.uses.size() || of.done < step || of.planned <= step) return false;
    if (step == 0) of.rounds.begin(world_.size.prefetch);
    if (!of.rounds.is_ready(static_cast<int64_t>(step))) return false;
    ++of.looked_up;
    if (std::ranges::all_of(ranks_, [&](const auto& one) { return one.looked_up > step; }))
      train(step);
    return true;
  }
  void train(size_t step) {
    for (int rank = 0; rank < world_.ranks; ++rank) {
      for (const RowInSlot& use : world_.plans[rank][step]->uses) {
        const auto& slot = slot_of(use.holder == kEverywhere ? rank : use.holder, use);
        if (slot.row != use.row || slot.updates != updates_[use.row])
          wrong_ = "step " + std::to_string(step) + " reads a stale row";
        if (step < 2 || !std::ranges::binary_search(world_.plans[rank][step - 2]->early_in, use))
          continue;
        const auto came = ranks_[rank].came_early.find({static_cast<int64_t>(step), use.row});
        if (came == ranks_[rank].came_early.end() || came->second != updates_[use.row])
          wrong_ = "step " + std::to_string(step) + " reads stale weights that came early";
        ++early_reads_;
      }
    }
    if (!world_.trains[step]) return;
    for (const int64_t row : world_.uses[step].rows) ++updates_[row];
    for (int rank = 0; rank < world_.ranks; ++rank) {
      for (const RowInSlot& held : world_.plans[rank][step]->held) {
        ++slot_of(rank, held).updates;
        slot_of(rank, held).updated = true;
      }
    }
  }
  bool finish(int rank) {
    SimulatedRank& of = ranks_[rank];
    const size_t step = of.done;
    if (std::ranges::any_of(ranks_, [&](const auto& one) { return one.looked_up <= step; }))
      return false;
    of.rounds.done(static_cast<int64_t>(of.done++));
    return true;
  }

  bool begin_round(int rank) {
    SimulatedRank& of = ranks_[rank];
    const auto round = of.rounds.next();
    if (!round || of.begun > of.delivered) return false;
    const RankStep& plan = *round->plan;
    if (round->kind == Kind::critical || (round->kind == Kind::rest && !plan.any_critical)) {
      of.sent.push_back(copy_out(rank, plan.critical));
      of.of_rest = copy_out(rank, plan.rest);
      for (const RowInSlot& row : plan.leave) slot_of(rank, row) = {};
      if (round->kind == Kind::rest) of.sent.back() = of.of_rest;
    } else {
      of.sent.push_back(round->kind == Kind::rest ? of.of_rest
                                                  : SimulatedRank::Messages(ranks_.size()));
    }
    of.early.emplace_back();
    if (round->kind == Kind::rest)
      for (const RowLent& lent : plan.early_out)
        of.early.back()[lent.row.row] = slot_of(rank, lent.row).updates;
    for (const RowMove& move : moves_of(*round).out)
      if (move.kind == RowMove::Kind::fetch)
        of.sent.back()[move.peer].push_back({move.at.row, {move.at.row, of.home[move.at.row]}});
    of.history.push_back(*round);
    ++of.begun;
    return true;
  }
  SimulatedRank::Messages copy_out(int rank, const RowMoves& moves) {
    SimulatedRank::Messages out(ranks_.size());
    for (const RowMove& move : moves.out)
      if (move.kind != RowMove::Kind::fetch)
        out[move.peer].push_back({move.at.row, slot_of(rank, move.at)});
    return out;
  }

  /// A round comes to an end at a rank once all have begun it.
  bool deliver(int rank) {
    SimulatedRank& of = ranks_[rank];
    const size_t number = of.delivered;
    if (of.begun == number) return false;
    for (const SimulatedRank& other : ranks_)
      if (other.begun <= number) return false;
    for (const RowMove& move : moves_of(of.history[number]).in) {
      const auto& message = ranks_[move.peer].sent[number][rank];
      const auto found =
          std::ranges::find(message, move.at.row, &std::pair<int64_t, SimulatedRank::Value>::first);
      if (found == message.end()) {
        wrong_ = "a row does not come";
        return true;
      }
      if (move.kind == RowMove::Kind::evict) {
        if (found->second.updated) of.home[move.at.row] = found->second.updates;
        continue;
      }
      auto& slot = slot_of(rank, move.at);
      if (slot.row >= 0) wrong_ = "a slot is taken";
      slot = found->second;
    }
    const Rounds::Round& round = of.history[number];
    if (round.kind == Kind::rest)
      for (const RowInSlot& row : round.plan->early_in)
        of.came_early[{round.plan->step + 2, row.row}] =
            ranks_[row.holder].early[number].at(row.row);
    of.rounds.carried_out(of.history[number]);
    ++of.delivered;
    return true;
  }
  static const RowMoves& moves_of(const Rounds::Round& round) {
    if (round.kind == Kind::before) return round.plan->before;
    return round.kind == Kind::critical ? round.plan->critical : round.plan->rest;
  }
  SimulatedRank::Value& slot_of(int rank, const RowInSlot& row) {
    return ranks_[rank].slots[{row.holder == kEverywhere, row.slot}];
  }

  const World& world_;
  std::mt19937_64 random_;
  std::vector<SimulatedRank> ranks_;
  std::vector<int64_t> updates_;  // [rows], as plain training has them
  int64_t early_reads_ = 0;
  std::string wrong_;
};

/// How many of `count` seeded schedules end wrong; the first says why.
int wrong_schedules(int count, const RoundWaits& waits, std::string& why,
                    int64_t* early_reads = nullptr) {
  int wrong = 0, carried_out = 0;
  for (uint64_t seed = 0; carried_out < count; ++seed) {
    std::mt19937_64 random(seed);
    World world = random_world(random);
    if (!plan_all(world, static_cast<CacheDesign>(seed % 4))) continue;
    ++carried_out;
    Simulation simulation(world, seed, waits);
    const std::string outcome = simulation.run();
    if (early_reads != nullptr) *early_reads += simulation.early_reads();
    if (outcome.empty()) continue;
    if (wrong++ == 0) why = "seed " + std::to_string(seed) + ": " + outcome;
  }
  return wrong;
}

TEST(Rounds, read_no_stale_row_and_lose_no_update_in_ten_thousand_schedules) {
  std::string why;
  int64_t early_reads = 0;
  EXPECT_EQ(wrong_schedules(10'000, {}, why, &early_reads), 0) << why;
  EXPECT_GT(early_reads, 5000);
}

TEST(Rounds, need_each_of_their_waits) {
  std::string why;
  EXPECT_GT(wrong_schedules(1000, {.round_for_end = false}, why), 0);
  EXPECT_GT(wrong_schedules(1000, {.step_for_first = false}, why), 0);
  EXPECT_GT(wrong_schedules(1000, {.step_for_rest = false}, why), 0);
}

}  // namespace
}  // namespace recmill::store
