// SPDX-License-Identifier: Apache-2.0
// Which batch comes next, as far as the losses that are known say. State machines of plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "hotset/hot_schedule.h"

namespace recmill::hotset {

/// Where rates come from: from losses, or they are fixed, or those of another run.
struct RatePolicy {
  std::optional<Percent> fixed = std::nullopt;
  /// Of schedules that are repeated, by number, those without a batch left out; empty: none are.
  std::map<int64_t, Percent> repeated = {};
  bool hot_first = false;

  bool adapts() const { return !fixed && repeated.empty(); }
  ScheduleState first() const;
  /// The schedule after one that was judged or has no batch; none: repeated ones end before it.
  std::optional<ScheduleState> next(const ScheduleState& state) const;
};

enum class BatchKind { cold, hot };

/// Where training is: a schedule, and how many batches of the epoch are trained.
struct OrderPlace {
  ScheduleState state;
  HotBatches trained;

  bool is_over(const HotBatches& epoch) const {
    const HotBatches end = state.end(epoch);
    return trained.cold >= end.cold && trained.hot >= end.hot;
  }
  /// The next batch of the schedule; none: it is over.
  std::optional<BatchKind> kind(const HotBatches& epoch, bool hot_first) const;
};

/// What a source hands out.
class HotColdOrder {
 public:
  enum class Step {
    cold,     // the next cold batch of the epoch
    hot,      // the next hot one
    judge,    // the schedule is over: an evaluation, whose loss says the rate of the next
    unknown,  // what follows depends on that loss
    missing   // schedules are repeated, and there are no more
  };

  /// `place`: that of the batch before, or of a start the first schedule. `epoch` has a batch.
  HotColdOrder(const HotBatches& epoch, RatePolicy policy, const OrderPlace& place);

  /// What comes next. It goes on with each call, but after `unknown` and `missing`. Behind `judge`
  /// come the batches that all rates which the loss may make share.
  Step next();
  /// The state after the loss of the schedule that was last to be judged.
  void judge(const ScheduleState& judged);

  /// Whether the batch that next() gave last ends an epoch.
  bool ends_epoch() const;
  /// Beyond this none is asked for.
  const ScheduleState& state() const { return place_.state; }

 private:
  Step take(BatchKind kind, HotBatches& count);
  /// To the next schedule with a batch; false: there is none.
  bool go_on(OrderPlace& place) const;
  Step next_of_any_rate();

  const HotBatches epoch_;
  const RatePolicy policy_;
  OrderPlace place_;
  bool waits_ = false;                  // for a loss
  std::vector<OrderPlace> may_follow_;  // while it waits: the next schedule by each rate
  HotBatches ahead_;                    // of it, handed out
};

/// Follows the batches that are trained and their losses: what a checkpoint holds of the order.
class ScheduleFollower {
 public:
  /// `begun`: batches of the epoch that were trained before the schedule of `place`.
  ScheduleFollower(const HotBatches& epoch, RatePolicy policy, const OrderPlace& place,
                   const HotBatches& begun = {})
      : epoch_(epoch), policy_(std::move(policy)), place_(place), begun_(begun) {}

  /// Of the batches of HotColdOrder, in order.
  void trained(BatchKind kind);
  void judge(double loss) { place_.state = judged(place_.state, loss); }
  /// The schedule is over, and no loss judges it.
  void finish() { place_.state.judged = true; }
  bool is_over() const { return place_.is_over(epoch_); }
  const ScheduleState& state() const { return place_.state; }
  const HotBatches& begun() const { return begun_; }
  const HotBatches& trained() const { return place_.trained; }

 private:
  const HotBatches epoch_;
  const RatePolicy policy_;
  OrderPlace place_;
  HotBatches begun_;  // trained of the epoch before this schedule
};

}  // namespace recmill::hotset
