// SPDX-License-Identifier: Apache-2.0
#include "kernels/tune/among_all.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/tune/visits.h"

namespace recmill::kernels::tune {
namespace {

/// Finalists of a class: so many at most, none that takes so much longer than the best.
constexpr size_t kFinalists = 8;
constexpr double kFarBehind = 1.25;
/// After so many rounds half of those that are left go on, this many at least: the nearest are told
/// apart by the most visits.
constexpr int64_t kRoundsOfHalf = 3;
constexpr size_t kLeastLeft = 2;

/// A thread takes features that are together, as in the fused run: they share cache lines of the
/// output, which two threads would take from each other. By bytes it has so many turns.
constexpr int64_t kTurnsOfThread = 16;

/// All features in their order, with their classes.
class RunOfAll {
 public:
  RunOfAll(TuningSubject& subject, const Clock& clock, ThreadPool& pool)
      : subject_(subject), clock_(clock), pool_(pool) {
    double bytes = 0.0;
    const TuningWork& work = subject.work();
    for (size_t c = 0; c < work.classes.size(); ++c) {
      const double of_feature = work.bytes[c];
      for (const int64_t feature : work.classes[c].features) {
        tasks_.push_back({c, feature, of_feature});
        bytes += of_feature;
      }
    }
    std::ranges::sort(tasks_, {}, &Task::feature);
    const double most = bytes / static_cast<double>(kTurnsOfThread * pool.threads());
    double taken = 0.0;
    for (size_t t = 1; t < tasks_.size(); ++t) {
      taken += tasks_[t - 1].bytes;
      if (taken + tasks_[t].bytes <= most) continue;
      begins_.push_back(t);
      taken = 0.0;
    }
    begins_.push_back(tasks_.size());
  }

  /// Nanoseconds by class, all features of it together; `candidates` [classes]: of prepare().
  std::vector<double> run(const std::vector<size_t>& candidates, int64_t batch) {
    std::vector<std::atomic<int64_t>> sums(candidates.size());
    pool_.run(static_cast<int64_t>(begins_.size()) - 1, [&](int64_t taken) {
      for (size_t t = begins_[taken]; t < begins_[taken + 1]; ++t) {
        const Task& task = tasks_[t];
        const int64_t start = clock_.now_ns();
        subject_.run(task.of_class, candidates[task.of_class], task.feature, batch);
        sums[task.of_class] += clock_.now_ns() - start;
      }
    });
    return {sums.begin(), sums.end()};
  }

 private:
  struct Task {
    size_t of_class;
    int64_t feature;
    double bytes;  // ClassTimes::bytes
  };
  TuningSubject& subject_;
  const Clock& clock_;
  ThreadPool& pool_;
  std::vector<Task> tasks_;
  std::vector<size_t> begins_{0};  // of the features that a thread takes together; their end
};

/// The places of a class's finalists in its candidates.
std::vector<size_t> finalists_of(const ClassTimes& of, bool deterministic) {
  std::vector<size_t> places;
  for (size_t k = 0; k < of.candidates.size(); ++k) {
    if (may_win(of.candidates[k], deterministic)) places.push_back(k);
  }
  const auto time = [&](size_t k) { return of.candidates[k].nanoseconds; };
  std::ranges::stable_sort(places, {}, time);
  std::erase_if(places, [&](size_t k) { return time(k) > kFarBehind * time(places[0]); });
  places.resize(std::min(places.size(), kFinalists));
  return places;
}

/// One class's finalists.
struct Contest {
  std::vector<size_t> places;                           // in the class's candidates
  std::vector<std::vector<std::vector<double>>> times;  // [places][batches][visits]
  std::vector<double> alone;                            // [places], of the local stage
  std::vector<size_t> left;                             // which of the places go on
};

void leave_out_half(Contest& contest) {
  std::vector<std::pair<double, size_t>> ranked;
  for (const size_t i : contest.left) ranked.emplace_back(time_of(contest.times[i]).nanoseconds, i);
  std::ranges::sort(ranked);
  const size_t least = std::min(ranked.size(), kLeastLeft);
  contest.left.clear();
  for (size_t i = 0; i < std::max((ranked.size() + 1) / 2, least); ++i)
    contest.left.push_back(ranked[i].second);
}

/// One round: all that are left are in use on every batch once; those of classes with fewer more
/// often. From one batch to the next all change, so that all finalists meet a slow machine alike.
void run_round(RunOfAll& all, std::vector<Contest>& contests, int64_t batches, const Random& random,
               int64_t round) {
  std::vector<std::vector<size_t>> order;
  size_t most = 0;
  for (size_t c = 0; c < contests.size(); ++c) {
    order.emplace_back();
    for (const size_t i : shuffled(contests[c].left.size(), random, round * contests.size() + c))
      order.back().push_back(contests[c].left[i]);
    most = std::max(most, order.back().size());
  }
  std::vector<size_t> in_use(contests.size());
  for (size_t pass = 0; pass < most; ++pass) {
    for (int64_t batch = 0; batch < batches; ++batch) {
      for (size_t c = 0; c < contests.size(); ++c)
        in_use[c] = order[c][(pass + batch) % most % order[c].size()];
      const auto nanoseconds = all.run(in_use, batch);
      for (size_t c = 0; c < contests.size(); ++c)
        contests[c].times[in_use[c]][batch].push_back(nanoseconds[c]);
    }
  }
}

}  // namespace

Result<std::vector<double>> measure_classes(TuningSubject& subject, const Choice& choice,
                                            int64_t rounds, const Clock& clock, ThreadPool& pool,
                                            const std::atomic<bool>& stop) {
  std::vector<std::vector<Schedule>> schedules;
  for (const ChosenSchedule& chosen : choice.schedules) schedules.push_back({chosen.schedule});
  RECMILL_RETURN_IF_ERROR(subject.prepare(schedules, choice.value, nullptr));
  RunOfAll all(subject, clock, pool);
  const std::vector<size_t> only(schedules.size(), 0);
  std::vector<std::vector<double>> times(schedules.size());
  for (int64_t round = 0; round < rounds; ++round) {
    std::vector<double> sums(schedules.size(), 0.0);
    for (int64_t batch = 0; batch < subject.work().batches(); ++batch) {
      if (stop) return Status::Failed("interrupted");
      const auto nanoseconds = all.run(only, batch);
      for (size_t c = 0; c < sums.size(); ++c) sums[c] += nanoseconds[c];
    }
    for (size_t c = 0; c < sums.size(); ++c)
      times[c].push_back(sums[c] / static_cast<double>(subject.work().batches()));
  }
  std::vector<double> nanoseconds;
  nanoseconds.reserve(times.size());
  for (const auto& of : times) nanoseconds.push_back(typical(of));
  return nanoseconds;
}

Status measure_finalists(TuningSubject& subject, const FinalistsOptions& options,
                         FamilyTimes& times, size_t value, const Clock& clock, ThreadPool& pool,
                         const std::atomic<bool>& stop) {
  ValueTimes& at = times.values[value];
  const auto same = shared(times, value);
  std::vector<Contest> contests;
  std::vector<std::vector<Schedule>> schedules;
  for (size_t c = 0; c < at.classes.size(); ++c) {
    auto& candidates = at.classes[c].candidates;
    auto places = finalists_of(at.classes[c], times.deterministic);
    if (!same.empty() && std::ranges::find(places, same[c]) == places.end())
      places.push_back(same[c]);
    schedules.emplace_back();
    std::vector<double> alone;
    for (const size_t place : places) {
      schedules.back().push_back(candidates[place].schedule);
      alone.push_back(candidates[place].nanoseconds);
    }
    for (CandidateTime& candidate : candidates) candidate.among_all = 0.0;
    std::vector times_of_places(places.size(),
                                std::vector<std::vector<double>>(subject.work().batches()));
    std::vector<size_t> left(places.size());
    std::iota(left.begin(), left.end(), size_t{0});
    contests.push_back(
        {std::move(places), std::move(times_of_places), std::move(alone), std::move(left)});
  }
  RECMILL_RETURN_IF_ERROR(subject.prepare(schedules, at.value, nullptr));
  RunOfAll all(subject, clock, pool);
  const Random random(options.seed, Purpose::test, uint64_t{1} << 32);
  for (int64_t round = 0; round < options.rounds; ++round) {
    if (stop) return Status::Failed("interrupted");
    if (round > 0 && clock.now_ns() > options.until_ns) break;
    if (round > 0 && round % kRoundsOfHalf == 0) std::ranges::for_each(contests, leave_out_half);
    run_round(all, contests, subject.work().batches(), random, round);
  }
  for (size_t c = 0; c < contests.size(); ++c) {
    const auto features = static_cast<double>(times.classes[c].features.size());
    for (const size_t i : contests[c].left)
      at.classes[c].candidates[contests[c].places[i]].among_all =
          time_of(contests[c].times[i]).nanoseconds / features;
  }
  return {};
}

}  // namespace recmill::kernels::tune
