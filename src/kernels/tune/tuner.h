// SPDX-License-Identifier: Apache-2.0
// Measures what tuning.h decides from: the two-stage, interference-simulated tuner (RecFlex,
// section IV-A).
//
// Local stage, for one fused-kernel-wide value: one core goes through the classes of features again
// and again, in a new random order each time, and times one candidate of each on one feature of the
// class and one batch, right after another feature of the class, as features that are alike are
// together in the fused run; each time around another candidate, feature and batch. Every other
// core runs, all the time, tasks of the features that are not being timed. So a candidate meets its
// rows as cold and the last-level cache and memory as busy as in the fused run, and all candidates
// meet them alike. Those far behind are left out once every batch was visited. Global stage: the
// winners of every value are fused, and run in alternation. At the best value the best candidates
// of each class are then timed in the run of all features (among_all.h), where nothing is simulated
// but where only few can be compared, and take the winners' places if that makes the fused run
// faster.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "device/thread_pool.h"
#include "kernels/tune/tuning.h"

namespace recmill::kernels::tune {

/// What a subject has to be tuned, in figures. The batches of `samples` and `lookups` are those
/// that are kept.
struct TuningWork {
  std::string family;                        // "embedding_pool"
  std::vector<FeatureClass> classes;         // each feature that is tuned is in one
  std::vector<double> samples;               // [batches]
  std::vector<std::vector<double>> lookups;  // [batches][features]
  std::vector<double> bytes;                 // [classes]: ClassTimes::bytes
  bool deterministic = true;  // only schedules that keep the order of summation may win
  bool exclusive = false;     // what runs changes its feature: one thread at a time may be there

  int64_t batches() const { return std::ssize(samples); }
};

/// A schedule worth trying, and whether it keeps the one order of summation.
struct Candidate {
  Schedule schedule;
  Order order = Order::contract;
};

/// Runs a whole batch, fused.
using FusedRun = std::function<void(int64_t batch, ThreadPool& pool)>;

/// A family's kernels on a model's tables and batches of historical data.
class TuningSubject {
 public:
  virtual ~TuningSubject() = default;

  virtual const TuningWork& work() const = 0;
  /// From now on only these batches are there, each once, in this order; classes stay as they are.
  virtual void keep_batches(std::span<const int64_t> kept) = 0;

  virtual std::vector<Candidate> candidates(size_t of_class,
                                            const FusedParameters& value) const = 0;
  /// Fails, saying how, when the schedule's answer is not the reference's on the first feature of
  /// the class. Changes nothing that a later call sees.
  virtual Status check(size_t of_class, const Schedule& schedule, const FusedParameters& value) = 0;

  /// Takes the schedules into use that run() names by class and index, and those of disturb(): of a
  /// choice without schedules the default ones; null: it is not called.
  virtual Status prepare(const std::vector<std::vector<Schedule>>& candidates,
                         const FusedParameters& value, const Choice* disturbing) = 0;
  /// Runs one feature on one batch with a prepared schedule, on the calling thread; a task after
  /// the other, without interference of its own making. Several threads may run different features.
  virtual void run(size_t of_class, size_t candidate, int64_t feature, int64_t batch) = 0;
  /// Runs a feature beside what is timed, on a thread of the pool's.
  virtual void disturb(int64_t feature, int64_t batch, int thread) = 0;

  /// All features with one schedule a class; without schedules as untuned. Good until the next
  /// call.
  virtual Result<FusedRun> fuse(const Choice& choice) = 0;
};

struct TunerOptions {
  std::vector<FusedParameters> values;  // compared; one at least
  /// Visits of each candidate at each value, unless it is far behind; where the budget is short
  /// fewer, but one on every batch.
  int64_t rounds = 48;
  double budget_seconds = 0.0;  // of all that is measured; 0: no limit
  /// Of the last stage, on each batch; 0: there is none.
  int64_t finalist_rounds = 0;
  uint64_t seed = 1;
  /// The separate-combine tuning of RecFlex's first straw man: each candidate alone on the machine,
  /// right after an untimed run of the same; the winners are not compared with a shared() schedule.
  bool alone = false;
};

/// How far the tuner is.
struct TunerProgress {
  size_t value = 0;   // under way
  double done = 0.0;  // of all values, 0 to 1
  double seconds_left = 0.0;
};

/// Measures what `times` does not hold yet: values (a run that was broken off goes on), and at a
/// value classes that have no candidates; then all values fused. What disturbs are the winners of
/// the value before. Calls `kept` after each with what is there. Wrong candidates are kept with
/// their reason and not timed. `stop` ends it early with an error.
Result<FamilyTimes> measure(TuningSubject& subject, const TunerOptions& options, FamilyTimes times,
                            const Clock& clock, ThreadPool& pool,
                            const std::function<Status(const FamilyTimes&)>& kept,
                            const std::function<void(const TunerProgress&)>& progress,
                            const std::atomic<bool>& stop);

/// How many of the subject's batches the local stage visits.
int64_t local_batches(int64_t batches);

/// What measure() does again and again, in seconds with the default schedules.
struct UnitTimes {
  double pass = 0.0;   // the local stage: each class visited once, on one batch
  double fused = 0.0;  // the global stage: one batch, its part of the preparation included
};

/// `defaults`: the value of the default schedules.
Result<UnitTimes> measure_units(TuningSubject& subject, const FusedParameters& defaults,
                                const Clock& clock, ThreadPool& pool,
                                const std::atomic<bool>& stop);

/// What measure() takes at least, in seconds: each candidate visited once on each batch that the
/// local stage visits, and the fewest rounds of all that is fused.
struct LeastSeconds {
  double local = 0.0, global = 0.0;
};
LeastSeconds least_seconds(const TuningSubject& subject, const TunerOptions& options,
                           const UnitTimes& units);

/// Nanoseconds of a batch on one thread, predicted: the task times of `choice`, measured as in the
/// local stage but on all batches, summed over all features. Fails where `stop` is set.
Result<double> measure_tasks(TuningSubject& subject, const Choice& choice, const Clock& clock,
                             ThreadPool& pool, const std::atomic<bool>& stop);

/// Seconds of a batch with `choice` fused: the median over all batches, `rounds` times.
Result<double> measure_fused(TuningSubject& subject, const Choice& choice, int64_t rounds,
                             const Clock& clock, ThreadPool& pool);

}  // namespace recmill::kernels::tune
