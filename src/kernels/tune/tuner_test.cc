// SPDX-License-Identifier: Apache-2.0
#include "kernels/tune/tuner.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <thread>
#include <utility>

#include "base/testing/standing_clock.h"
#include "kernels/testing/random_bags.h"
#include "kernels/tune/among_all.h"
#include "kernels/tune/pool_subject.h"
#include "kernels/tune/race.h"

namespace recmill::kernels::tune {
namespace {

/// A family whose times are known: candidate k of class c takes (c + 1) * cost[k] at a batch of
/// size 1, with a hiccup at every eleventh run. Every run is counted, timed or not.
class KnownSubject : public TuningSubject {
 public:
  KnownSubject(StandingClock& clock, std::vector<double> costs, bool hiccups = true)
      : clock_(clock), costs_(std::move(costs)), hiccups_(hiccups) {
    work_.family = "known";
    for (int64_t c = 0; c < 3; ++c) {
      work_.classes.push_back({{}, {2 * c, 2 * c + 1}});
      work_.bytes.push_back(100.0 * static_cast<double>(c + 1));
    }
    KnownSubject::keep_batches(std::vector<int64_t>{0, 1, 2, 3});
  }
  const TuningWork& work() const override { return work_; }
  void keep_batches(std::span<const int64_t> kept) override {
    kept_.assign(kept.begin(), kept.end());
    work_.samples.assign(kept.size(), 2.0);
    work_.lookups.clear();
    for (const int64_t batch : kept)
      work_.lookups.emplace_back(6, 10.0 * static_cast<double>(batch + 1));
  }
  std::vector<Candidate> candidates(size_t, const FusedParameters&) const override {
    std::vector<Candidate> all;
    for (size_t k = 0; k < costs_.size(); ++k)
      all.push_back({{"k", {{"number", static_cast<int64_t>(k)}}}});
    return all;
  }
  Status check(size_t, const Schedule& schedule, const FusedParameters&) override {
    return schedule.parameters[0].value == wrong ? Status::Failed("it is wrong") : Status{};
  }
  Status prepare(const std::vector<std::vector<Schedule>>& candidates, const FusedParameters& value,
                 const Choice* disturbing_with) override {
    prepared_ = candidates;
    value_ = value;
    timed_alone_ = disturbing_with != nullptr;
    if (timed_alone_) disturbing.push_back(*disturbing_with);
    return {};
  }
  void run(size_t c, size_t candidate, int64_t feature, int64_t batch) override {
    EXPECT_EQ(static_cast<size_t>(feature) / 2, c);
    while (awaits_disturbance && disturbed == 0) std::this_thread::yield();
    const auto k = static_cast<size_t>(prepared_[c][candidate].parameters[0].value);
    const bool hiccup = ++runs_ % 11 == 0 && hiccups_;
    const int64_t kept = kept_[batch];
    clock_.pass(double(c + 1) * costs_[k] * double(kept + 1) * (hiccup ? 50.0 : 1.0));
    ++visits[{c, k, kept}];
    batches_of_class[c].push_back(kept);
  }
  void disturb(int64_t feature, int64_t, int thread) override {
    EXPECT_TRUE(feature >= 0 && feature < 6);
    EXPECT_GT(thread, 0);
    ++disturbed;
  }
  Result<FusedRun> fuse(const Choice& choice) override {
    fused_ = choice;
    return FusedRun([this](int64_t, ThreadPool&) { run_fused(); });
  }

  int64_t wrong = -1;
  bool awaits_disturbance = false;
  std::map<std::tuple<size_t, size_t, int64_t>, int> visits;
  std::map<size_t, std::vector<int64_t>> batches_of_class;  // run by run
  std::atomic<int64_t> disturbed{0};
  std::vector<Choice> disturbing;  // of each local stage

 protected:
  virtual void run_fused() { clock_.pass(fused_.value.tile == 64 ? 5000.0 : 9000.0); }

  StandingClock& clock_;
  std::vector<double> costs_;
  const bool hiccups_;
  std::vector<int64_t> kept_;
  TuningWork work_;
  bool timed_alone_ = false;  // in the local stage
  std::vector<std::vector<Schedule>> prepared_;
  FusedParameters value_;
  Choice fused_;
  int64_t runs_ = 0;
};

/// Where candidate 2 is the fastest among all features, whatever it is by itself.
class CrowdedSubject final : public KnownSubject {
 public:
  explicit CrowdedSubject(StandingClock& clock, std::vector<double> costs = {60.0, 20.0, 22.0})
      : KnownSubject(clock, std::move(costs), /*hiccups=*/false) {}
  void run(size_t c, size_t candidate, int64_t feature, int64_t batch) override {
    if (timed_alone_) return KnownSubject::run(c, candidate, feature, batch);
    const int64_t number = prepared_[c][candidate].parameters[0].value;
    clock_.pass(number == 2 ? 30.0 : 39.0 + static_cast<double>(number));
    ++among_all[{c, number}];
  }
  void run_fused() override {
    const bool refined = fused_.schedules[0].schedule.parameters[0].value == 2;
    clock_.pass((fused_.value.tile == 64 ? 5000.0 : 9000.0) + (refined ? refined_costs : 0.0));
  }

  std::map<std::pair<size_t, int64_t>, int> among_all;  // by class and candidate
  double refined_costs = -100.0;
};

/// Whose fused runs take three times as long after the first 200 of them.
class SlowingSubject final : public KnownSubject {
 public:
  explicit SlowingSubject(StandingClock& clock)
      : KnownSubject(clock, {24.0, 20.0}, /*hiccups=*/false) {}
  void run_fused() override {
    const double nanoseconds = static_cast<double>(100 * fused_.value.tile);
    clock_.pass(++all_runs_ > 200 ? 3.0 * nanoseconds : nanoseconds);
    ++runs_of[fused_.value.tile];
  }

  std::map<int64_t, int> runs_of;  // by tile

 private:
  int all_runs_ = 0;
};

/// Whose fused run of value 128 takes twice as long until the finalists were compared.
class LuckySubject final : public KnownSubject {
 public:
  LuckySubject(StandingClock& clock, double cost_of_128)
      : KnownSubject(clock, {24.0, 20.0}, /*hiccups=*/false), cost_of_128_(cost_of_128) {}
  Status prepare(const std::vector<std::vector<Schedule>>& candidates, const FusedParameters& value,
                 const Choice* disturbing_with) override {
    ++prepared_times_;
    return KnownSubject::prepare(candidates, value, disturbing_with);
  }
  void run_fused() override {
    const bool finalists_compared = prepared_times_ > 2;  // once at each of two values before
    clock_.pass(fused_.value.tile == 64 ? 5000.0 : (finalists_compared ? 1.0 : 2.0) * cost_of_128_);
  }

 private:
  const double cost_of_128_;
  int prepared_times_ = 0;
};

/// Whose features bear one thread at a time.
class ExclusiveSubject final : public KnownSubject {
 public:
  explicit ExclusiveSubject(StandingClock& clock)
      : KnownSubject(clock, {24.0, 20.0}, /*hiccups=*/false) {
    work_.exclusive = true;
  }
  void run(size_t c, size_t candidate, int64_t feature, int64_t batch) override {
    EXPECT_EQ(++there_[feature], 1);
    KnownSubject::run(c, candidate, feature, batch);
    --there_[feature];
  }
  void disturb(int64_t feature, int64_t batch, int thread) override {
    EXPECT_EQ(++there_[feature], 1);
    KnownSubject::disturb(feature, batch, thread);
    std::this_thread::yield();
    --there_[feature];
  }

 private:
  std::array<std::atomic<int>, 6> there_ = {};
};

struct Tuned {
  Result<FamilyTimes> times;
  int kept = 0;
};

Tuned tune(TuningSubject& subject, StandingClock& clock, const TunerOptions& options,
           FamilyTimes from = {}, int threads = 1) {
  ThreadPool pool(threads);
  const std::atomic<bool> stop{false};
  Tuned tuned{Status::Failed("not run")};
  tuned.times = measure(
      subject, options, std::move(from), clock, pool,
      [&](const FamilyTimes&) {
        ++tuned.kept;
        return Status{};
      },
      [](const TunerProgress& at) {
        EXPECT_GT(at.done, 0.0);
        EXPECT_LE(at.done, 1.0);
        EXPECT_GE(at.seconds_left, -1e-9);
      },
      stop);
  return tuned;
}

const TunerOptions kOptions{.values = {{128, 0}, {64, 1024}}, .rounds = 20};

TEST(Tuner, finds_each_class_s_fastest_schedule_whatever_the_hiccups) {
  StandingClock clock;
  KnownSubject subject(clock, {30.0, 20.0, 25.0});
  const Tuned tuned = tune(subject, clock, kOptions);
  ASSERT_TRUE(tuned.times.ok()) << tuned.times.status().message();
  EXPECT_EQ(tuned.kept, 3);
  const auto choice = choose(*tuned.times);
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->value.tile, 64);
  for (const ChosenSchedule& chosen : choice->schedules)
    EXPECT_EQ(chosen.schedule.name(), "k number=1");
  // Equation 5: the mean over batches of 1, 2, 3 and 4 times the cost.
  EXPECT_DOUBLE_EQ(tuned.times->values[0].classes[2].candidates[1].nanoseconds, 3 * 20.0 * 2.5);
  // The first value's disturbance is untuned, the second's is what won at the first.
  ASSERT_EQ(subject.disturbing.size(), 2u);
  EXPECT_TRUE(subject.disturbing[0].schedules.empty());
  EXPECT_EQ(subject.disturbing[1].value, kOptions.values[0]);
  EXPECT_EQ(subject.disturbing[1].schedules[2].schedule.name(), "k number=1");
}

TEST(Tuner, visits_every_right_candidate_as_often_on_every_batch) {
  StandingClock clock;
  KnownSubject subject(clock, {30.0, 20.0, 25.0, 40.0}, /*hiccups=*/false);
  subject.wrong = 1;
  const Tuned tuned = tune(subject, clock, kOptions);
  ASSERT_TRUE(tuned.times.ok());
  ASSERT_EQ(subject.visits.size(), 3u * 3 * 4);
  for (const auto& [where, times] : subject.visits) {
    const bool far_behind = std::get<1>(where) == 3;  // 40 of 25: at each value on each batch once
    EXPECT_EQ(times, 2 * (far_behind ? 2 : 2 * 20 / 4));
  }
  const auto& candidates = tuned.times->values[0].classes[0].candidates;
  EXPECT_EQ(candidates[1].refused, "it is wrong");
  EXPECT_EQ(candidates[1].nanoseconds, 0.0);
  const auto choice = choose(*tuned.times);
  ASSERT_TRUE(choice.ok());
  for (const ChosenSchedule& chosen : choice->schedules)
    EXPECT_EQ(chosen.schedule.name(), "k number=2");
}

TEST(Tuner, visits_a_class_on_another_batch_than_before_so_that_no_cache_holds_its_rows) {
  for (const size_t candidates : {1, 2, 3, 4, 7, 8}) {
    StandingClock clock;
    KnownSubject subject(clock, std::vector(candidates, 20.0), /*hiccups=*/false);
    ASSERT_TRUE(tune(subject, clock, kOptions).times.ok());
    const auto& batches = subject.batches_of_class[1];
    for (size_t run = 0; run + 2 < batches.size(); run += 2) {
      EXPECT_EQ(batches[run], batches[run + 1]);  // untimed, then timed
      const bool of_next_value = run + 2 == batches.size() / 2;
      EXPECT_TRUE(batches[run] != batches[run + 2] || of_next_value) << run;
    }
  }
}

TEST(Tuner, visits_as_many_batches_of_each_size) {
  for (const auto& [batches, visited] : std::map<int64_t, int64_t>{
           {1, 1}, {2, 2}, {7, 7}, {8, 8}, {15, 8}, {16, 16}, {17, 16}, {256, 16}})
    EXPECT_EQ(local_batches(batches), visited);
}

TEST(Tuner, keeps_to_its_budget_and_still_visits_all) {
  StandingClock clock;
  KnownSubject subject(clock, {24.0, 20.0});
  TunerOptions options = kOptions;
  options.rounds = 1000;
  options.budget_seconds = 1e-12;
  ASSERT_TRUE(tune(subject, clock, options).times.ok());
  for (const auto& [where, times] : subject.visits) EXPECT_EQ(times, 2 * 2);
  EXPECT_EQ(subject.visits.size(), 3u * 2 * 4);
}

TEST(Tuner, visits_the_batches_that_are_kept_and_knows_what_all_would_take) {
  StandingClock clock;
  KnownSubject subject(clock, {24.0, 20.0}, /*hiccups=*/false);
  // Two runs of each class at two values for two candidates, on batches of 1, 2, 3 and 4 times.
  ThreadPool pool(1);
  const std::atomic<bool> never{false};
  const auto units = measure_units(subject, kOptions.values[0], clock, pool, never);
  ASSERT_TRUE(units.ok());
  TunerOptions options = kOptions;
  LeastSeconds least = least_seconds(subject, options, *units);
  EXPECT_DOUBLE_EQ(least.local, 1e-9 * 2 * 2 * 2 * (1 + 2 + 3) * 24.0 * (1 + 2 + 3 + 4));
  // At each value the winners and the shared schedule, by a first run and one of each batch.
  EXPECT_DOUBLE_EQ(least.global, 1e-9 * 2 * 2 * kLeastRounds * (1 + 4) * 9000.0);
  options.values[0].defaults = true;  // which has no shared schedule
  least = least_seconds(subject, options, *units);
  EXPECT_DOUBLE_EQ(least.global, 1e-9 * (1 + 2) * kLeastRounds * (1 + 4) * 9000.0);
  subject.visits.clear();
  subject.keep_batches(std::vector<int64_t>{3, 1});
  const Tuned tuned = tune(subject, clock, kOptions);
  ASSERT_TRUE(tuned.times.ok());
  EXPECT_EQ(subject.visits.size(), 3u * 2 * 2);
  for (const auto& [where, times] : subject.visits) EXPECT_EQ(std::get<2>(where) % 2, 1);
  EXPECT_DOUBLE_EQ(tuned.times->values[0].classes[2].candidates[1].nanoseconds, 3 * 20.0 * 3.0);
}

TEST(Tuner, fuses_what_is_far_behind_five_times_and_does_not_mind_a_slower_machine) {
  StandingClock clock;
  SlowingSubject subject(clock);
  TunerOptions options = kOptions;
  options.values = {{90, 0}, {51, 0}, {91, 0}, {50, 0}};
  const Tuned tuned = tune(subject, clock, options);
  ASSERT_TRUE(tuned.times.ok());
  // At each value the winners and the shared schedule, by a first run and one of each batch.
  constexpr int kRunsOfRound = 1 + 4, kFew = 5 * kRunsOfRound, kAll = 100 * kRunsOfRound;
  EXPECT_EQ(
      subject.runs_of,
      (std::map<int64_t, int>{{90, kAll + kFew}, {51, 2 * kAll}, {91, 2 * kFew}, {50, 2 * kAll}}));
  const auto& values = tuned.times->values;
  for (size_t v = 0; v < values.size(); ++v)
    EXPECT_NEAR(values[v].fused_nanoseconds, static_cast<double>(300 * options.values[v].tile),
                1e-6);
  EXPECT_EQ(choose(*tuned.times)->value.tile, 50);
}

TEST(Tuner, measures_each_class_in_the_run_of_all) {
  StandingClock clock;
  KnownSubject subject(clock, {24.0, 20.0});
  const FamilyTimes times = *tune(subject, clock, kOptions).times;
  EXPECT_EQ(times.values[0].classes[2].bytes, 300.0);
  ThreadPool pool(1);
  std::atomic<bool> stop{false};
  KnownSubject calm(clock, {24.0, 20.0}, /*hiccups=*/false);
  const auto found = measure_classes(calm, *choose(times), 7, clock, pool, stop);
  ASSERT_TRUE(found.ok());
  // Two features a class, batches of 1, 2, 3 and 4 times the cost.
  EXPECT_EQ(*found, (std::vector<double>{100.0, 200.0, 300.0}));
  // Task by task the same, whatever the hiccups.
  const auto tasks = measure_tasks(subject, *choose(times), clock, pool, stop);
  ASSERT_TRUE(tasks.ok());
  EXPECT_DOUBLE_EQ(*tasks, 600.0);
  stop = true;
  EXPECT_EQ(measure_classes(calm, *choose(times), 7, clock, pool, stop).status().message(),
            "interrupted");
  EXPECT_EQ(measure_tasks(subject, *choose(times), clock, pool, stop).status().message(),
            "interrupted");
}

TEST(Tuner, compares_the_best_candidates_among_all_features_where_it_is_told) {
  for (const double refined_costs : {-100.0, 100.0}) {
    StandingClock clock;
    CrowdedSubject subject(clock);
    subject.refined_costs = refined_costs;
    TunerOptions options = kOptions;
    EXPECT_EQ(choose(*tune(subject, clock, options).times)->schedules[0].schedule.name(),
              "k number=1");
    EXPECT_TRUE(subject.among_all.empty());
    options.finalist_rounds = 7;
    const Tuned tuned = tune(subject, clock, options);
    ASSERT_TRUE(tuned.times.ok());
    // Two features a class on four batches. Two finalists, as candidate 0 is far behind.
    EXPECT_EQ(subject.among_all.size(), 3u * 2);
    for (const auto& [which, runs] : subject.among_all) EXPECT_EQ(runs, 7 * 2 * 4);
    const auto& candidates = tuned.times->values[1].classes[2].candidates;
    EXPECT_EQ(candidates[0].among_all, 0.0);
    EXPECT_DOUBLE_EQ(candidates[1].among_all, 40.0);
    EXPECT_DOUBLE_EQ(candidates[2].among_all, 30.0);
    EXPECT_NEAR(tuned.times->values[1].beside_nanoseconds, 5000.0, 1e-6);
    EXPECT_NEAR(tuned.times->values[1].refined_nanoseconds, 5000.0 + refined_costs, 1e-6);
    const auto choice = choose(*tuned.times);
    ASSERT_TRUE(choice.ok());
    EXPECT_EQ(choice->value.tile, 64);
    EXPECT_EQ(choice->schedules[0].schedule.name(),
              refined_costs < 0.0 ? "k number=2" : "k number=1");
  }
}

TEST(Tuner, compares_the_defaults_once_more_with_what_beat_them) {
  for (const double defaults_cost : {4950.0, 5050.0}) {
    StandingClock clock;
    LuckySubject subject(clock, defaults_cost);
    TunerOptions options = kOptions;
    options.values[0].defaults = true;
    options.finalist_rounds = 2;
    const Tuned tuned = tune(subject, clock, options);
    ASSERT_TRUE(tuned.times.ok());
    // They lost the first race.
    EXPECT_GT(tuned.times->values[0].fused_nanoseconds, tuned.times->values[1].fused_nanoseconds);
    EXPECT_NEAR(tuned.times->values[0].beside_nanoseconds, defaults_cost, 1e-6);
    EXPECT_EQ(choose(*tuned.times)->value.defaults, defaults_cost < 5000.0);
  }
}

TEST(Tuner, compares_those_longer_among_all_features_that_are_near) {
  StandingClock clock;
  CrowdedSubject subject(clock, {20.0, 21.0, 22.0, 23.0, 24.0});
  TunerOptions options = kOptions;
  options.finalist_rounds = 7;
  const Tuned tuned = tune(subject, clock, options);
  ASSERT_TRUE(tuned.times.ok());
  // All five three times, three of them three times more, two to the end.
  const std::vector<int> rounds{7, 6, 7, 3, 3};
  for (const auto& [which, runs] : subject.among_all) EXPECT_EQ(runs, rounds[which.second] * 2 * 4);
  EXPECT_EQ(subject.among_all.size(), 3u * 5);
  const auto& candidates = tuned.times->values[1].classes[0].candidates;
  for (size_t k = 0; k < candidates.size(); ++k)
    EXPECT_EQ(candidates[k].among_all, k == 0 ? 39.0 : k == 2 ? 30.0 : 0.0);
}

TEST(Tuner, measures_classes_without_times_alone_and_fuses_all_again) {
  StandingClock clock;
  KnownSubject subject(clock, {24.0, 20.0}, /*hiccups=*/false);
  const FamilyTimes whole = *tune(subject, clock, kOptions).times;
  FamilyTimes part = whole;
  for (ValueTimes& at : part.values) at.classes[1] = {};
  part.values[0].classes[0].candidates[0].nanoseconds = 7.0;  // is kept as it is
  KnownSubject again(clock, {24.0, 20.0}, /*hiccups=*/false);
  const auto times = tune(again, clock, kOptions, part).times;
  ASSERT_TRUE(times.ok());
  for (const auto& [where, visits] : again.visits) EXPECT_EQ(std::get<0>(where), 1u);
  EXPECT_FALSE(again.visits.empty());
  EXPECT_EQ(times->values[0].classes[1].candidates, whole.values[0].classes[1].candidates);
  EXPECT_EQ(times->values[0].classes[0].candidates[0].nanoseconds, 7.0);
  EXPECT_EQ(times->values[0].fused_nanoseconds, whole.values[0].fused_nanoseconds);
}

TEST(Tuner, goes_on_where_it_was_broken_off) {
  StandingClock clock;
  KnownSubject subject(clock, {24.0, 20.0});
  FamilyTimes whole = *tune(subject, clock, kOptions).times;
  FamilyTimes part = whole;
  part.values.pop_back();
  KnownSubject again(clock, {24.0, 20.0});
  const Tuned tuned = tune(again, clock, kOptions, part);
  ASSERT_TRUE(tuned.times.ok());
  EXPECT_EQ(tuned.kept, 2);
  EXPECT_EQ(tuned.times->values[0].classes, whole.values[0].classes);
  for (const auto& [where, times] : again.visits) EXPECT_EQ(times, 2 * 20 / 4);
}

TEST(Tuner, alone_runs_each_candidate_twice_disturbs_nothing_and_fuses_the_winners_only) {
  StandingClock clock;
  KnownSubject subject(clock, {24.0, 20.0});
  TunerOptions options = kOptions;
  const Tuned beside = tune(subject, clock, options);
  ASSERT_TRUE(beside.times.ok());
  EXPECT_GT(beside.times->values[0].shared_nanoseconds, 0.0);
  subject.visits.clear();
  options.alone = true;
  const Tuned tuned = tune(subject, clock, options, {}, 3);
  ASSERT_TRUE(tuned.times.ok());
  EXPECT_EQ(tuned.times->values[0].shared_nanoseconds, 0.0);
  EXPECT_EQ(subject.disturbed, 0);
  for (const auto& [where, times] : subject.visits) EXPECT_EQ(times, 2 * 2 * 20 / 4);
  EXPECT_DOUBLE_EQ(tuned.times->values[0].classes[0].candidates[1].nanoseconds, 20.0 * 2.5);
}

TEST(Tuner, disturbs_from_every_other_thread_and_stops_when_told) {
  StandingClock clock;
  KnownSubject subject(clock, {24.0, 20.0});
  TunerOptions options = kOptions;
  subject.awaits_disturbance = true;
  ASSERT_TRUE(tune(subject, clock, options, {}, 3).times.ok());
  EXPECT_GT(subject.disturbed, 0);
  ThreadPool pool(1);
  const std::atomic<bool> stop{true};
  const auto stopped = measure(
      subject, options, {}, clock, pool, [](const FamilyTimes&) { return Status{}; },
      [](const TunerProgress&) {}, stop);
  EXPECT_EQ(stopped.status().message(), "interrupted");
}

TEST(Tuner, has_no_two_threads_at_an_exclusive_feature) {
  StandingClock clock;
  ExclusiveSubject subject(clock);
  subject.awaits_disturbance = true;
  ASSERT_TRUE(tune(subject, clock, kOptions, {}, 4).times.ok());
  EXPECT_GT(subject.disturbed, 0);
}

/// A template that forgets a bag's last id when the bag has more than two.
void forgetful(const PoolPiece& piece, ParameterValues, std::byte*) {
  const PoolTask& task = *piece.task;
  for (int64_t i = piece.first; i < piece.last; ++i) {
    const int64_t begin = task.bags.offsets[i], end = task.bags.offsets[i + 1];
    const int64_t offsets[] = {begin, end - begin > 2 ? end - 1 : end};
    PoolTask one = task;
    one.bags = {offsets, task.bags.rows, task.bags.weights, 1, false};
    one.out = task.out + i * task.stride;
    embedding_pool_reference(one);
  }
}

TEST(PoolSubject, refuses_a_template_that_drops_an_id_by_name) {
  std::vector<PoolTemplate> templates(pool_templates().begin(), pool_templates().end());
  PoolTemplate wrong = templates[0];
  wrong.name = "forgetful";
  wrong.tunables = {};
  wrong.valid = [](const FeatureShape&, ParameterValues, const DeviceSpec&) { return true; };
  wrong.body = forgetful;
  templates.push_back(wrong);
  const std::vector<float> table(50 * 8, 0.5f);
  SparseBatch batch;
  batch.samples = 40;
  batch.features = {random_bags({40, 6, 50, false, 3}, 1), random_bags({40, -1, 50, false, 3}, 2)};
  const std::vector<SparseBatch> batches{batch, batch};
  PoolSubjectOptions options;
  options.threads = 2;
  options.templates = templates;
  const RowStorage rows = RowStorage::of(table.data(), 50, 8);
  auto subject = PoolSubject::make({{rows}, {rows}}, batches, options);
  ASSERT_TRUE(subject.ok());
  ASSERT_EQ((*subject)->work().classes.size(), 2u);
  const FusedParameters value{16, 1 << 20};
  int right = 0;
  for (size_t c = 0; c < 2; ++c) {
    for (const auto& [schedule, order] : (*subject)->candidates(c, value)) {
      const Status status = (*subject)->check(c, schedule, value);
      if (schedule.of == "forgetful" && c == 0) {
        EXPECT_EQ(status.message(),
                  "schedule 'forgetful' is refused: its answer is not the reference's");
      } else {
        EXPECT_TRUE(status.ok()) << status.message();
        ++right;
      }
    }
  }
  EXPECT_GT(right, 40);
  // The whole tuner on it, for real: every chosen schedule is a right one.
  TunerOptions tuner{.values = {value, {40, 0}}, .rounds = 4, .finalist_rounds = 2};
  const SteadyClock clock;
  ThreadPool pool(2);
  const std::atomic<bool> stop{false};
  const auto times = measure(
      **subject, tuner, {}, clock, pool, [](const FamilyTimes&) { return Status{}; },
      [](const TunerProgress&) {}, stop);
  ASSERT_TRUE(times.ok()) << times.status().message();
  const auto choice = choose(*times);
  ASSERT_TRUE(choice.ok());
  EXPECT_NE(choice->schedules[0].schedule.of, "forgetful");
  EXPECT_GT(*measure_fused(**subject, *choice, 2, clock, pool), 0.0);
}

TEST(PoolSubject, asks_for_scratch_whatever_its_bags_are_in_the_check_as_in_runs) {
  std::vector<FeatureShape> asked;
  PoolTemplate own = pool_templates()[0];
  own.name = "with_scratch";
  own.tunables = {};
  own.scratch_bytes = [&](const FeatureShape& shape, ParameterValues) {
    asked.push_back(shape);
    return shape.bags.longest > 1 ? 0 : 64;
  };
  own.body = [](const PoolPiece& piece, ParameterValues, std::byte* scratch) {
    RECMILL_CHECK(scratch != nullptr);
    default_pool_body(piece);
  };
  std::vector<PoolTemplate> templates(pool_templates().begin(), pool_templates().end());
  templates.push_back(own);
  const std::vector<float> table(50 * 8, 0.5f);
  SparseBatch batch;
  batch.samples = 40;
  batch.features = {random_bags({40, 6, 50}, 1)};
  const std::vector<SparseBatch> batches{batch};
  PoolSubjectOptions options;
  options.templates = templates;
  const auto subject = PoolSubject::make({{RowStorage::of(table.data(), 50, 8)}}, batches, options);
  ASSERT_TRUE(subject.ok());
  const Schedule schedule{"with_scratch", {}};
  const FusedParameters value{16, 1 << 20};
  EXPECT_TRUE((*subject)->check(0, schedule, value).ok());
  ASSERT_TRUE((*subject)->prepare({{schedule}}, value, nullptr).ok());
  (*subject)->run(0, 0, 0, 0);
  const auto fused = (*subject)->fuse({value, {{schedule, 0.0, 0.0}}, 0.0});
  ASSERT_TRUE(fused.ok());
  ThreadPool pool(1);
  (*fused)(0, pool);
  ASSERT_GE(asked.size(), 3u);
  for (const FeatureShape& shape : asked) EXPECT_EQ(shape, asked[0]);
}

TEST(PoolSubject, has_no_candidate_that_stages_a_table_which_no_batch_covers) {
  constexpr int64_t kSamples = 40, kDim = 16;  // a row is a cache line
  SparseBatch batch;
  batch.samples = kSamples;
  for (uint64_t f = 0; f < 2; ++f)
    batch.features.push_back(random_bags({kSamples, -1, kSamples, false, 0}, f));
  const std::vector<SparseBatch> batches{batch};
  const std::vector<float> table((kSamples + 1) * kDim, 0.5f);
  const PoolSubjectOptions options;
  const auto subject = PoolSubject::make({{RowStorage::of(table.data(), kSamples, kDim)},
                                          {RowStorage::of(table.data(), kSamples + 1, kDim)}},
                                         batches, options);
  ASSERT_TRUE(subject.ok());
  ASSERT_EQ((*subject)->work().classes.size(), 2u);
  const FusedParameters value{kSamples, 1 << 20};
  const auto stage = [](const std::vector<Candidate>& all) {
    return std::ranges::count_if(all, stages, &Candidate::schedule);
  };
  for (size_t c = 0; c < 2; ++c) {
    const bool covered = (*subject)->work().classes[c].shape.rows == kSamples;
    EXPECT_GT(std::ranges::count_if((*subject)->schedules(c, value), stages), 0);
    EXPECT_EQ(stage((*subject)->candidates(c, value)) > 0, covered);
    EXPECT_GT((*subject)->candidates(c, value).size(), 0u);
  }
}

TEST(PoolSubject, keeps_the_batches_that_it_is_told_and_its_classes) {
  const std::vector<float> table(50 * 8, 0.5f);
  std::vector<SparseBatch> batches;
  for (int64_t b = 0; b < 4; ++b) {
    const int64_t samples = 10 * (b + 1);
    batches.emplace_back();
    batches.back().samples = samples;
    for (const uint64_t f : {1, 2})
      batches.back().features.push_back(random_bags({samples, 6, 50, false, 3}, 10 * b + f));
  }
  const RowStorage rows = RowStorage::of(table.data(), 50, 8);
  const PoolSubjectOptions options;
  const auto make = [&] { return *PoolSubject::make({{rows}, {rows}}, batches, options); };
  const auto all = make(), subject = make();
  const FusedParameters value{16, 1 << 20};
  const std::vector<int64_t> kept{3, 1};
  subject->keep_batches(kept);
  ASSERT_EQ(subject->work().batches(), 2);
  EXPECT_EQ(subject->work().classes, all->work().classes);
  for (int64_t batch = 0; batch < 2; ++batch) {
    EXPECT_EQ(subject->work().samples[batch], 10.0 * static_cast<double>(kept[batch] + 1));
    EXPECT_EQ(subject->work().lookups[batch], all->work().lookups[kept[batch]]);
  }
  for (const auto& [schedule, order] : subject->candidates(0, value))
    EXPECT_TRUE(subject->check(0, schedule, value).ok()) << schedule.name();
  ThreadPool pool(1);
  const auto fused = subject->fuse({});
  ASSERT_TRUE(fused.ok());
  (*fused)(1, pool);
}

}  // namespace
}  // namespace recmill::kernels::tune
