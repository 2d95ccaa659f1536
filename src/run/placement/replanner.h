// SPDX-License-Identifier: Apache-2.0
// Has rows placed anew while training goes on, when they are no longer looked up as they were.
//
// Training is cut into windows of some iterations. Each rank counts the rows of every few batches
// of a window. At its end the counts come together at rank 0, which has the plan in force priced by
// them; if lookups have drifted, it makes a plan by them and, if the plan pays, every rank gets it
// ready. All of that happens on a thread of each rank and by a communicator of their own while
// training goes on. Rank 0 then says from which iteration on the new plan holds. Which plan is in
// force when depends on the machine; answers do not.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/json/json_fwd.h"
#include "base/status.h"
#include "batch/sparse_batch.h"
#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "device/wait_gate.h"
#include "placement/planners.h"
#include "placement/replan.h"
#include "stats/access_counter.h"
#include "step/loop_hook.h"
#include "store/placed/placed_store.h"

namespace recmill::train {

struct ReplanSetting {
  placement::Problem problem;  // with counts of anything
  placement::PlannerKind planner = placement::PlannerKind::oper;
  placement::PlannerOptions options = {};
  int64_t every = 0;  // iterations of a window
  double gain = 0.1;  // placement::ReplanCase::gain
  int64_t ahead = 0;  // iterations that may have been prepared, beyond the next one
  int64_t end = 0;    // the iteration with which training ends
  // Open when training waits: rank 0's pool then helps to sum its counts up.
  std::shared_ptr<WaitGate> waits = std::make_shared<WaitGate>();
};

class Replanner final : public LoopHook {
 public:
  /// What rank 0 proposes, as a number.
  enum class Command : int64_t {
    go_on,
    look,   // the window has ended
    keep,   // the plan in force stays
    adopt,  // the new plan
  };
  /// Of what happened: figures, and in words. Called on rank 0, by the thread that trains.
  using Tell =
      std::function<Status(int64_t iteration, const Json& figures, const std::string& words)>;

  /// Collective. `plan`: that of the store. `iteration`: the next to be trained. What is referred
  /// to outlives this.
  static Result<std::unique_ptr<Replanner>> create(ReplanSetting setting, PlacementPlan plan,
                                                   const ModelSpec& model,
                                                   store::PlacedStore& store,
                                                   Communicator& communicator, ThreadPool& pool,
                                                   Tell tell, int64_t iteration);
  ~Replanner() override;  // waits for what goes on beside training

  Status see(const SparseBatch& batch, int64_t iteration) override;
  Result<Proposal> propose(int64_t iteration) override;
  Status adopt(Proposal proposal, int64_t iteration) override;
  bool moves_rows(int64_t iteration) const override {
    return store_.is_moving() && iteration >= begin_;
  }

  /// Bytes for counts, of a rank.
  static int64_t bytes(const ModelSpec& model);

 private:
  /// What rank 0 found.
  struct Look {
    placement::ReplanCase rated;
    bool drifted = false;
    double planned = 0;  // seconds, by the new plan; 0: none was made
    placement::PlanMove move;
    std::string refusal;  // why there is no new plan
    double sent = 0;      // bytes of an iteration, by all ranks
  };
  struct Outcome {
    Look look;
    PlacementPlan plan;                                 // rank 0: where one came
    std::shared_ptr<const table::PlacedTables> placed;  // null: the plan in force stays
    std::optional<stats::AccessCounter> counter;        // for the next window
  };

  Replanner(ReplanSetting setting, PlacementPlan plan, const ModelSpec& model,
            store::PlacedStore& store, Communicator& communicator,
            std::unique_ptr<Communicator> beside, ThreadPool& pool, Tell tell, int64_t iteration);
  Result<Command> next(int64_t iteration);
  void begin_look(int64_t iteration);
  Status end_look(int64_t iteration);
  Result<Outcome> look_together(int64_t iteration, double sent);
  AccessCounts finish_counts() const;
  void decide(int64_t iteration, AccessCounts counts, Outcome& outcome);
  Status hand_out(Outcome& outcome);
  Status tell_look(int64_t iteration);
  Status tell_move(int64_t iteration);

  const ReplanSetting setting_;
  PlacementPlan plan_;  // rank 0: in force
  const ModelSpec& model_;
  store::PlacedStore& store_;
  Communicator& communicator_;
  const std::unique_ptr<Communicator> beside_;
  ThreadPool& pool_;
  const Tell tell_;

  int64_t begin_;                                // of the window; of a new plan, until it is there
  std::optional<stats::AccessCounter> counter_;  // the look's while it goes on
  std::optional<double> expected_;               // rank 0; none: no window of the plan has ended
  bool is_moving_ = false;                       // rows had not moved yet when last seen
  uint64_t sent_before_ = 0;                     // by the first iteration of the window
  double counting_ = 0;                          // seconds
  Stopwatch since_begin_;
  std::optional<Outcome> outcome_;
  std::future<Result<Outcome>> look_;  // last: waits for its thread when it goes
};

}  // namespace recmill::train
