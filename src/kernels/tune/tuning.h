// SPDX-License-Identifier: Apache-2.0
// What the tuner measured, and what follows from it: plain values and pure functions (RecFlex,
// section IV-A). On a GPU the fused-kernel-wide value is the occupancy, in blocks of a
// SM; on a CPU it is the pair of a tile and a share of the cache. A schedule tuned for
// one value is compared only at that value (local stage); the winners of each value are fused and
// measured, and the best value wins (global stage). There the best candidates are compared once
// more where they will run, among all the others.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/json/json_fwd.h"
#include "base/status.h"
#include "kernels/schedule/schedule.h"
#include "kernels/tune/feature_classes.h"

namespace recmill::kernels::tune {

struct FusedParameters {
  int64_t tile = 0;       // that a task covers of one feature, at most: samples; row_update: floats
  int64_t l2_bytes = 0;   // of a core's own cache that a schedule may count on
  bool defaults = false;  // the schedules of untuned runs are the only candidates
  int64_t blocks = 0;     // on a GPU: of an SM, that registers and shared memory allow
  bool operator==(const FusedParameters&) const = default;
};

/// What one candidate took in the local stage.
struct CandidateTime {
  Schedule schedule;
  double nanoseconds = 0.0;  // a visit of one feature of the class, over batches (equation 5)
  double spread = 0.0;       // half the distance between the quartiles, as a share of it
  std::string refused;       // why it was not timed: its answer was wrong
  Order order = Order::contract;
  double among_all = 0.0;  // nanoseconds in the run of all features; 0: it was not there to the end
  bool operator==(const CandidateTime&) const = default;
};

struct ClassTimes {
  std::vector<CandidateTime> candidates;
  double lookups = 0.0, samples = 0.0;  // of a visit
  double bytes = 0.0;  // that one feature of the class must move between memory and cores, of a
                       // batch: each row that it names once
  bool operator==(const ClassTimes&) const = default;
};

struct ValueTimes {
  FusedParameters value;
  std::vector<ClassTimes> classes;  // beside FamilyTimes::classes
  double fused_nanoseconds = 0.0;   // of a batch with the winners of this value, fused
  double shared_nanoseconds = 0.0;  // with the shared() schedule in place of them; 0: there is none
  // The last comparison, at the best value: the refined() schedules, fused, in alternation with the
  // best of the above and with the default schedules, beside_nanoseconds of their value. 0: there
  // was none.
  double refined_nanoseconds = 0.0, beside_nanoseconds = 0.0;
  int64_t spilled_bytes = 0;  // of a thread, by the fused kernels of the winners; on a GPU
  bool operator==(const ValueTimes&) const = default;
};

/// One family's measurements.
struct FamilyTimes {
  std::string family;  // "embedding_pool", "row_update"
  std::vector<FeatureClass> classes;
  std::vector<ValueTimes> values;
  bool deterministic = true;  // candidates that reorder sums are timed, but never win
  bool operator==(const FamilyTimes&) const = default;
};

/// Whether the candidate was right, and keeps the order of summation where that is asked for.
bool may_win(const CandidateTime& candidate, bool deterministic);

/// Per class the candidate of the least time at one value; the first among equals. Fails, naming
/// the class's first feature, when every candidate of a class was refused.
Result<std::vector<size_t>> winners(const FamilyTimes& times, size_t value);

/// Per class the candidate that has the same schedule in all classes, but in those that do not have
/// it, or where it is wrong, the default one (of the value of defaults, where it was measured): of
/// all schedules the one of the least time summed over all features. Empty where there is none.
std::vector<size_t> shared(const FamilyTimes& times, size_t value);

/// Per class the finalist of the least time by both stages, their geometric mean: the local one is
/// off by what it only simulates, the run of all features by what else was going on; the winner
/// where a class has no finalists. Fails as winners().
Result<std::vector<size_t>> refined(const FamilyTimes& times, size_t value);

struct ChosenSchedule {
  Schedule schedule;
  double per_lookup = 0.0, per_sample = 0.0;  // nanoseconds, for task maps
  bool operator==(const ChosenSchedule&) const = default;
};

struct Choice {
  FusedParameters value;
  std::vector<ChosenSchedule> schedules;  // beside FamilyTimes::classes
  double predicted_nanoseconds = 0.0;     // of a batch on one thread: the sum of task times
  bool operator==(const Choice&) const = default;
};

/// What keeping the order of summation costs at one value: the sum of the winners' times over what
/// it would be if candidates that reorder could win. 1: nothing.
Result<double> price_of_order(const FamilyTimes& times, size_t value);

/// Whether the fused kernels of a value spill registers and those of another one do not: it is not
/// chosen, however fast it was, as what is spilled goes through the caches that rows come by.
bool is_left_out(const FamilyTimes& times, const ValueTimes& at);

/// The value of the least fused time, of those that are not left out, with its winners, or with the
/// shared schedule where the fused run was faster with that, or with the refined schedules where it
/// was faster still; but the default schedules where the last comparison was theirs. Fails as
/// winners(), and where no value was measured to the end.
Result<Choice> choose(const FamilyTimes& times);

Json to_json(const FamilyTimes& times);
Result<FamilyTimes> family_times_from_json(const Json& json);

}  // namespace recmill::kernels::tune
