// SPDX-License-Identifier: Apache-2.0
#include "kernels/tune/tuner.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <numeric>
#include <utility>

#include "kernels/tune/among_all.h"
#include "kernels/tune/race.h"
#include "kernels/tune/visits.h"

namespace recmill::kernels::tune {
namespace {

/// Up to where in a budget the local stage and the race of the values go; the rest is the last
/// stage's.
constexpr double kLocalShare = 0.7, kRaceShare = 0.9;
constexpr int64_t kFusedRounds = 11, kRefinedRounds = 31;
/// RaceOptions::far_behind and, of all batches, RaceOptions::seconds.
constexpr double kFarBehindFused = 1.08, kFusedSeconds = 0.3;
/// The most time for finalists and for their last comparison: there are rounds enough for small
/// models, and large ones need few.
constexpr double kFinalistSeconds = 15.0, kRefinedSeconds = 10.0;
/// Batches that the local stage visits, at most: they come in kinds of sizes by turns, and an equal
/// number of each kind is like all of them.
constexpr int64_t kMostVisited = 16, kKindsOfBatches = 8;
constexpr int64_t kTaskVisits = 32;  // of each class, or one on each batch
/// A candidate that takes so much longer than the best is visited no more, nor one that is not
/// among so many best: as many once every batch was visited, half of them after each further time,
/// and so few in the end.
constexpr double kFarBehind = 1.25;
constexpr size_t kMostLeft = 24, kLeastLeft = 6;

/// How much longer `times` [batches][visits] are than `best`: the median over batches, each with
/// the weight of its time, so that neither hiccups nor the smallest batches decide.
double behind(const std::vector<std::vector<double>>& times,
              const std::vector<std::vector<double>>& best) {
  std::vector<std::pair<double, double>> ratios;  // with weights
  double all = 0.0;
  for (size_t b = 0; b < times.size(); ++b) {
    if (times[b].empty() || best[b].empty()) continue;
    const double weight = typical(best[b]);
    if (weight <= 0.0) continue;
    ratios.emplace_back(typical(times[b]) / weight, weight);
    all += weight;
  }
  std::sort(ratios.begin(), ratios.end());
  double below = 0.0;
  for (const auto& [ratio, weight] : ratios) {
    below += weight;
    if (2.0 * below >= all) return ratio;
  }
  return 1.0;
}

bool is_measured(const ClassTimes& of) {
  return !of.candidates.empty();
}
bool is_measured(const ValueTimes& at) {
  return std::ranges::all_of(at.classes, [](const ClassTimes& of) { return is_measured(of); });
}

/// One value's local stage.
class LocalStage {
 public:
  /// `known` [classes]: what was measured before. `disturbing`: the schedules of what is not timed.
  /// `only`: its schedules are the only candidates, and all batches are visited.
  LocalStage(TuningSubject& subject, const TunerOptions& options, size_t value,
             std::vector<ClassTimes> known, Choice disturbing, const Clock& clock,
             const std::atomic<bool>& stop, const Choice* only = nullptr)
      : subject_(subject),
        work_(subject.work()),
        options_(options),
        known_(std::move(known)),
        disturbing_(std::move(disturbing)),
        value_(options.values[value]),
        clock_(clock),
        stop_(stop),
        only_(only),
        random_(options.seed, Purpose::test, value),
        batches_(only != nullptr ? work_.batches() : local_batches(work_.batches())) {
    int64_t last = -1;
    for (size_t c = 0; c < work_.classes.size(); ++c) {
      for (const int64_t feature : work_.classes[c].features) {
        features_.push_back({feature, c});
        last = std::max(last, feature);
      }
    }
    std::ranges::sort(features_, {}, &Feature::number);
    if (work_.exclusive) busy_ = std::vector<std::mutex>(last + 1);
  }

  Result<ValueTimes> run(ThreadPool& pool, int64_t until_ns,
                         const std::function<void(double done)>& progress) {
    RECMILL_RETURN_IF_ERROR(find_candidates());
    std::atomic<bool> finished{false};
    std::atomic<size_t> timed{0};
    pool.run(options_.alone ? 1 : pool.threads(), [&](int64_t task) {
      if (task == 0) {
        visit_all(until_ns, timed, progress);
        finished = true;
        return;
      }
      for (int64_t turn = 0; !finished.load(std::memory_order_relaxed); ++turn)
        disturb(timed.load(std::memory_order_relaxed), static_cast<int>(task), turn,
                pool.threads());
    });
    if (stop_) return Status::Failed("interrupted");
    return result();
  }

 private:
  Status find_candidates() {
    for (size_t c = 0; c < work_.classes.size(); ++c) {
      all_.push_back({});
      right_.push_back({});
      for (const auto& [schedule, order] : candidates(c)) {
        if (stop_) return Status::Failed("interrupted");
        const Status status = subject_.check(c, schedule, value_);
        if (status.ok()) right_.back().push_back(schedule);
        all_.back().push_back({schedule, 0.0, 0.0, status.ok() ? "" : status.message(), order});
      }
      times_.emplace_back(right_.back().size(), std::vector<std::vector<double>>(work_.batches()));
      done_.push_back({0.0, 0.0, 0});
      visited_.emplace_back(right_.back().size());
      std::iota(visited_.back().begin(), visited_.back().end(), size_t{0});
    }
    return subject_.prepare(right_, value_, options_.alone ? nullptr : &disturbing_);
  }

  /// The visits of some rounds: in each, every candidate that is left of every class is visited, in
  /// passes; those of classes with fewer of them more often, so that between two visits of a class
  /// there is always one of each other class, and what it needs is cold again.
  struct Passes {
    std::vector<std::vector<size_t>> order;  // [classes]: the candidates, pass by pass
    size_t count = 0;                        // of a round
    size_t step = 1;                         // in batches, from round to round
  };

  /// Of as many rounds as there are batches: a candidate is visited on another batch in each. One
  /// pass after the other is on another batch too, whose rows no pass has just left in a cache.
  Passes passes_of_cycle(int64_t cycle) const {
    Passes made;
    const size_t classes = visited_.size();
    for (size_t c = 0; c < classes; ++c) {
      made.order.emplace_back();
      for (const size_t place : shuffled(visited_[c].size(), random_, cycle * classes + c))
        made.order.back().push_back(visited_[c][place]);
      made.count = std::max(made.count, made.order.back().size());
    }
    made.step = std::max<size_t>(1, made.count);
    while (std::gcd(made.step, batches_) != 1) ++made.step;
    return made;
  }

  void visit_all(int64_t until_ns, std::atomic<size_t>& timed,
                 const std::function<void(double)>& progress) {
    Passes passes;
    int64_t visit = 0;
    for (int64_t round = 0; round < options_.rounds; ++round) {
      if (round % batches_ == 0) {
        // Every batch as often as the others, once at least.
        if (round > 0 && clock_.now_ns() > until_ns) break;
        if (round > 0) leave_out_far_behind(static_cast<size_t>(round / batches_));
        passes = passes_of_cycle(round / batches_);
      }
      for (size_t pass = 0; pass < passes.count; ++pass, ++visit) {
        const auto batch = static_cast<int64_t>((round * passes.step + pass) % batches_);
        for (size_t c : shuffled(passes.order.size(), random_, visit + (uint64_t{1} << 40))) {
          if (stop_) return;
          const auto& order = passes.order[c];
          if (order.empty()) continue;
          timed.store(c, std::memory_order_relaxed);
          visit_class(c, order[pass % order.size()], batch, visit);
        }
      }
      progress(static_cast<double>(round + 1) / static_cast<double>(options_.rounds));
    }
  }

  std::vector<Candidate> candidates(size_t c) const {
    if (is_measured(known_[c])) return {};
    if (only_ != nullptr) return {{only_->schedules[c].schedule}};
    return subject_.candidates(c, value_);
  }

  /// After so many visits of each on each batch.
  void leave_out_far_behind(size_t visits) {
    const size_t limit = std::max(kMostLeft >> std::min<size_t>(visits - 1, 8), kLeastLeft);
    for (size_t c = 0; c < visited_.size(); ++c) leave_out_far_behind(c, limit);
  }

  void leave_out_far_behind(size_t c, size_t limit) {
    auto& left = visited_[c];
    if (left.empty()) return;
    std::vector<double> nanoseconds(times_[c].size());
    for (const size_t candidate : left) {
      nanoseconds[candidate] = time_of(times_[c][candidate]).nanoseconds;
    }
    std::ranges::stable_sort(left, {}, [&](size_t candidate) { return nanoseconds[candidate]; });
    left.resize(std::min(left.size(), limit));
    const auto& best = times_[c][left[0]];
    std::erase_if(
        left, [&](size_t candidate) { return behind(times_[c][candidate], best) > kFarBehind; });
  }

  void visit_class(size_t c, size_t candidate, int64_t batch, int64_t visit) {
    const auto& features = work_.classes[c].features;
    // Every second feature, then the others, so that each is cold whether it is timed or comes
    // before one that is.
    const auto count = static_cast<int64_t>(features.size());
    const int64_t place = (2 * visit + 2 * visit / count) % count;
    const int64_t feature = features[place];
    // Untimed: the same feature, or as in the fused run, where features that are alike are
    // together, the one before it with the same schedule.
    const int64_t before = options_.alone ? feature : features[(place + count - 1) % count];
    if (options_.alone || count > 1) {
      const auto reserved = reserve(before);
      subject_.run(c, candidate, before, batch);
    }
    const auto reserved = reserve(feature);
    const int64_t start = clock_.now_ns();
    subject_.run(c, candidate, feature, batch);
    const auto nanoseconds = static_cast<double>(clock_.now_ns() - start);
    times_[c][candidate][batch].push_back(nanoseconds);
    done_[c].lookups += work_.lookups[batch][feature];
    done_[c].samples += work_.samples[batch];
    ++done_[c].visits;
  }

  /// Where features are exclusive: as long as this is held, nothing disturbs at the feature.
  std::unique_lock<std::mutex> reserve(int64_t feature) {
    return work_.exclusive ? std::unique_lock(busy_[feature]) : std::unique_lock<std::mutex>();
  }

  /// Some hundred features apart from what other threads are at, going round, but for those of the
  /// class that is timed. `turn` counts calls.
  void disturb(size_t of_class, int thread, int64_t turn, int threads) {
    const int64_t count = std::ssize(features_);
    const int64_t place = turn + thread * (count / threads + 1);
    const auto& [feature, in] = features_[place % count];
    if (in == of_class) return;
    std::unique_lock<std::mutex> lock;
    if (work_.exclusive) {
      lock = std::unique_lock(busy_[feature], std::try_to_lock);
      if (!lock.owns_lock()) return;
    }
    subject_.disturb(feature, place / count % work_.batches(), thread);
  }

  ValueTimes result() const {
    ValueTimes made{value_, {}, 0.0};
    for (size_t c = 0; c < all_.size(); ++c) {
      if (is_measured(known_[c])) {
        made.classes.push_back(known_[c]);
        continue;
      }
      ClassTimes times{all_[c], 0.0, 0.0};
      size_t at = 0;
      for (CandidateTime& candidate : times.candidates) {
        if (!candidate.refused.empty()) continue;
        const VisitTime time = time_of(times_[c][at++]);
        candidate.nanoseconds = time.nanoseconds;
        candidate.spread = time.spread;
      }
      const double visits = std::max<double>(1.0, static_cast<double>(done_[c].visits));
      times.lookups = done_[c].lookups / visits;
      times.samples = done_[c].samples / visits;
      times.bytes = work_.bytes[c];
      made.classes.push_back(std::move(times));
    }
    return made;
  }

  struct Done {
    double lookups, samples;
    int64_t visits;
  };
  struct Feature {
    int64_t number;
    size_t of_class;
  };

  TuningSubject& subject_;
  const TuningWork& work_;
  const TunerOptions& options_;
  const std::vector<ClassTimes> known_;
  const Choice disturbing_;
  const FusedParameters value_;
  const Clock& clock_;
  const std::atomic<bool>& stop_;
  const Choice* const only_;
  const Random random_;
  const int64_t batches_;                        // the first so many are visited
  std::vector<std::vector<CandidateTime>> all_;  // [classes][candidates]
  std::vector<std::vector<Schedule>> right_;     // [classes]: those that are not refused
  // [classes][right][batches][visits], nanoseconds
  std::vector<std::vector<std::vector<std::vector<double>>>> times_;
  std::vector<Done> done_;                    // [classes]
  std::vector<std::vector<size_t>> visited_;  // [classes]: which of the right are still visited
  std::vector<Feature> features_;             // of all classes, ascending
  std::vector<std::mutex> busy_;              // [features] by number, where they are exclusive
};

enum class Way { winners, shared, refined };

/// The choice that one value alone would lead to.
Result<Choice> choice_at(const FamilyTimes& times, size_t value, Way way) {
  FamilyTimes alone{times.family, times.classes, {times.values[value]}, times.deterministic};
  ValueTimes& at = alone.values[0];
  at.fused_nanoseconds = way == Way::shared ? 2.0 : 1.0;
  at.shared_nanoseconds = way == Way::shared ? 1.0 : 2.0;
  at.refined_nanoseconds = way == Way::refined ? 1.0 : 2.0;
  at.beside_nanoseconds = way == Way::refined ? 2.0 : 1.0;
  return choose(alone);
}

/// The choices of the global stage, and where their times go.
struct Entrants {
  std::vector<Choice> choices;
  std::vector<double*> nanoseconds;  // beside them
};

/// Every value's winners and, but where the defaults are all that there is or each feature is tuned
/// `alone`, its shared schedule.
Result<Entrants> entrants(FamilyTimes& times, bool alone) {
  Entrants made;
  const auto enter = [&](size_t value, Way way, double& nanoseconds) -> Status {
    RECMILL_ASSIGN_OR_RETURN(auto choice, choice_at(times, value, way));
    made.choices.push_back(std::move(choice));
    made.nanoseconds.push_back(&nanoseconds);
    return {};
  };
  for (size_t v = 0; v < times.values.size(); ++v) {
    ValueTimes& at = times.values[v];
    RECMILL_RETURN_IF_ERROR(enter(v, Way::winners, at.fused_nanoseconds));
    at.shared_nanoseconds = 0.0;
    if (!alone && !at.value.defaults && !shared(times, v).empty())
      RECMILL_RETURN_IF_ERROR(enter(v, Way::shared, at.shared_nanoseconds));
  }
  return made;
}

int64_t after(int64_t begin_ns, double seconds) {
  return begin_ns + static_cast<int64_t>(seconds * 1e9);
}

/// When such a share of the budget is spent, by the clock.
int64_t end_of(const TunerOptions& options, int64_t begin_ns, double share = 1.0) {
  return options.budget_seconds > 0.0 ? after(begin_ns, share * options.budget_seconds)
                                      : std::numeric_limits<int64_t>::max();
}

/// Nanoseconds of a batch with each of the choices fused, in one race.
Result<std::vector<double>> race_fused(TuningSubject& subject, std::span<const Choice> choices,
                                       int64_t rounds, int64_t until_ns, const Clock& clock,
                                       ThreadPool& pool, const std::atomic<bool>& stop) {
  std::vector<Entrant> entrants;
  entrants.reserve(choices.size());
  for (const Choice& choice : choices)
    entrants.emplace_back([&] { return measure_fused(subject, choice, 1, clock, pool); });
  const RaceOptions options{rounds, kFusedSeconds / static_cast<double>(subject.work().batches()),
                            kFarBehindFused, until_ns};
  RECMILL_ASSIGN_OR_RETURN(auto times, race(entrants, options, clock, stop));
  for (double& time : times) time *= 1e9;
  return times;
}

/// The last stage, at the value that won: its finalists among all others, then the best of them
/// fused beside what won so far and, so that no fluke of the race before makes a run slower than
/// untuned, the default schedules.
Status refine(TuningSubject& subject, const TunerOptions& options, int64_t begin_ns,
              FamilyTimes& times, const Clock& clock, ThreadPool& pool,
              const std::atomic<bool>& stop) {
  const int64_t end = end_of(options, begin_ns);
  RECMILL_ASSIGN_OR_RETURN(const Choice best, choose(times));
  if (best.value.defaults || clock.now_ns() > end) return {};
  const size_t value =
      std::ranges::find(times.values, best.value, &ValueTimes::value) - times.values.begin();
  const FinalistsOptions finalists{options.finalist_rounds, options.seed,
                                   std::min(end, after(clock.now_ns(), kFinalistSeconds))};
  RECMILL_RETURN_IF_ERROR(measure_finalists(subject, finalists, times, value, clock, pool, stop));
  RECMILL_ASSIGN_OR_RETURN(Choice refined, choice_at(times, value, Way::refined));
  std::vector choices{best, std::move(refined)};
  std::vector<double*> to{&times.values[value].beside_nanoseconds,
                          &times.values[value].refined_nanoseconds};
  for (size_t v = 0; v < times.values.size(); ++v) {
    if (!times.values[v].value.defaults) continue;
    RECMILL_ASSIGN_OR_RETURN(Choice defaults, choice_at(times, v, Way::winners));
    choices.push_back(std::move(defaults));
    to.push_back(&times.values[v].beside_nanoseconds);
  }
  const int64_t until = std::min(end, after(clock.now_ns(), kRefinedSeconds));
  RECMILL_ASSIGN_OR_RETURN(const auto nanoseconds,
                           race_fused(subject, choices, kRefinedRounds, until, clock, pool, stop));
  for (size_t e = 0; e < nanoseconds.size(); ++e) *to[e] = nanoseconds[e];
  return {};
}

}  // namespace

int64_t local_batches(int64_t batches) {
  if (batches < kKindsOfBatches) return batches;
  return std::min(batches - batches % kKindsOfBatches, kMostVisited);
}

Result<double> measure_fused(TuningSubject& subject, const Choice& choice, int64_t rounds,
                             const Clock& clock, ThreadPool& pool) {
  RECMILL_ASSIGN_OR_RETURN(const FusedRun run, subject.fuse(choice));
  const int64_t batches = subject.work().batches();
  run(0, pool);
  std::vector<double> seconds;
  for (int64_t round = 0; round < rounds; ++round) {
    double sum = 0.0;
    for (int64_t batch = 0; batch < batches; ++batch) {
      const int64_t start = clock.now_ns();
      run(batch, pool);
      sum += static_cast<double>(clock.now_ns() - start) * 1e-9;
    }
    seconds.push_back(sum / static_cast<double>(batches));
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

Result<UnitTimes> measure_units(TuningSubject& subject, const FusedParameters& defaults,
                                const Clock& clock, ThreadPool& pool,
                                const std::atomic<bool>& stop) {
  const TuningWork& work = subject.work();
  const size_t classes = work.classes.size();
  Choice choice{defaults, {}, 0.0};
  for (size_t c = 0; c < classes; ++c)
    choice.schedules.push_back({subject.candidates(c, defaults).front().schedule});
  RECMILL_ASSIGN_OR_RETURN(const auto nanoseconds,
                           measure_classes(subject, choice, /*rounds=*/1, clock, pool, stop));
  UnitTimes units;
  for (size_t c = 0; c < classes; ++c)  // a visit is of two features, one of them untimed
    units.pass += 2e-9 * nanoseconds[c] / static_cast<double>(work.classes[c].features.size());
  const int64_t start = clock.now_ns();
  RECMILL_RETURN_IF_ERROR(measure_fused(subject, choice, /*rounds=*/1, clock, pool).status());
  units.fused =
      static_cast<double>(clock.now_ns() - start) * 1e-9 / static_cast<double>(1 + work.batches());
  return units;
}

LeastSeconds least_seconds(const TuningSubject& subject, const TunerOptions& options,
                           const UnitTimes& units) {
  size_t passes = 0, fused = 0;
  for (const FusedParameters& value : options.values) {
    size_t most = 0;
    for (size_t c = 0; c < subject.work().classes.size(); ++c)
      most = std::max(most, subject.candidates(c, value).size());
    passes += most;
    fused += value.defaults ? 1 : 2;
  }
  const int64_t batches = subject.work().batches(), visited = local_batches(batches);
  const int64_t runs = kLeastRounds * (1 + batches);
  return {units.pass * static_cast<double>(passes) * static_cast<double>(visited),
          units.fused * static_cast<double>(fused) * static_cast<double>(runs)};
}

Result<double> measure_tasks(TuningSubject& subject, const Choice& choice, const Clock& clock,
                             ThreadPool& pool, const std::atomic<bool>& stop) {
  TunerOptions options;
  options.values = {choice.value};
  const TuningWork& work = subject.work();
  options.rounds = std::max<int64_t>(1, kTaskVisits / work.batches()) * work.batches();
  LocalStage stage(subject, options, 0, std::vector<ClassTimes>(work.classes.size()), choice, clock,
                   stop, &choice);
  RECMILL_ASSIGN_OR_RETURN(const ValueTimes times,
                           stage.run(pool, std::numeric_limits<int64_t>::max(), [](double) {}));
  double sum = 0.0;
  for (size_t c = 0; c < times.classes.size(); ++c) {
    sum += times.classes[c].candidates[0].nanoseconds *
           static_cast<double>(work.classes[c].features.size());
  }
  return sum;
}

Result<FamilyTimes> measure(TuningSubject& subject, const TunerOptions& options, FamilyTimes times,
                            const Clock& clock, ThreadPool& pool,
                            const std::function<Status(const FamilyTimes&)>& kept,
                            const std::function<void(const TunerProgress&)>& progress,
                            const std::atomic<bool>& stop) {
  times.family = subject.work().family;
  times.deterministic = subject.work().deterministic;
  times.classes = subject.work().classes;
  const int64_t begin = clock.now_ns();
  const size_t count = options.values.size(), classes = times.classes.size();
  std::vector<size_t> missing;
  for (size_t v = 0; v < count; ++v) {
    if (v >= times.values.size() || !is_measured(times.values[v])) missing.push_back(v);
  }
  for (size_t m = 0; m < missing.size(); ++m) {
    const size_t v = missing[m];
    const auto parts = static_cast<double>(missing.size());
    const double share = static_cast<double>(m + 1) / parts;
    const int64_t until = end_of(options, begin, kLocalShare * share);
    const auto show = [&](double done) {
      const double all = (static_cast<double>(m) + done) / parts;
      const double spent = static_cast<double>(clock.now_ns() - begin) * 1e-9;
      progress({v, all, spent / all * (1.0 - all)});
    };
    Choice before;  // the default schedules
    if (v > 0) {
      RECMILL_ASSIGN_OR_RETURN(before, choice_at(times, v - 1, Way::winners));
    }
    auto known = v < times.values.size() ? times.values[v].classes : std::vector<ClassTimes>{};
    known.resize(classes);
    LocalStage stage(subject, options, v, std::move(known), std::move(before), clock, stop);
    RECMILL_ASSIGN_OR_RETURN(auto value, stage.run(pool, until, show));
    if (v == times.values.size()) times.values.emplace_back();
    times.values[v] = std::move(value);
    RECMILL_RETURN_IF_ERROR(kept(times));
  }
  for (ValueTimes& at : times.values) at.refined_nanoseconds = at.beside_nanoseconds = 0.0;
  RECMILL_ASSIGN_OR_RETURN(const auto all, entrants(times, options.alone));
  RECMILL_ASSIGN_OR_RETURN(const auto nanoseconds,
                           race_fused(subject, all.choices, kFusedRounds,
                                      end_of(options, begin, kRaceShare), clock, pool, stop));
  for (size_t e = 0; e < nanoseconds.size(); ++e) *all.nanoseconds[e] = nanoseconds[e];
  if (options.finalist_rounds > 0)
    RECMILL_RETURN_IF_ERROR(refine(subject, options, begin, times, clock, pool, stop));
  RECMILL_RETURN_IF_ERROR(kept(times));
  return times;
}

}  // namespace recmill::kernels::tune
