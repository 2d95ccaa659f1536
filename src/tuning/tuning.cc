// SPDX-License-Identifier: Apache-2.0
#include "tuning/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "base/json/json.h"
#include "base/log.h"
#include "base/made_folders.h"
#include "device/processor.h"
#include "kernels/schedule/task_map.h"
#include "kernels/tune/among_all.h"
#include "kernels/tune/memory_rate.h"
#include "kernels/tune/race.h"
#include "kernels/tune/tuner.h"
#include "run/drift_warning.h"
#include "run/generated_code.h"
#include "run/rank.h"
#include "run/schedules.h"
#include "run/tuning_data.h"

namespace recmill::train {
namespace {

using namespace kernels::tune;  // NOLINT: this file is about nothing else

/// Of the last measurement: rounds, and seconds of all batches, which small ones need more.
constexpr int64_t kAgainRounds = 5;
constexpr double kAgainSeconds = 0.3;
/// The least times of the local stage and of it and the global one, as shares of a budget that
/// allows for all of them: times vary, and more visits make them surer.
constexpr double kLeastLocalShare = 0.5, kLeastShare = 0.75;
/// What of the budget is planned: a last round runs to its end, and a record is to be written.
constexpr double kPlannedShare = 0.95;
/// Lookups' part of the budget; updates have fewer schedules, and what lookups leave.
constexpr double kPoolShare = 0.65;
/// Up to where in a family's part it is measured, and its winners are again; the rest is generated
/// code's.
constexpr double kMeasuredShare = 0.7, kAgainShare = 0.9;

/// All that times depend on but the data, of which classes tell.
Json measured_as(const ResolvedRun& run, const TuningRequest& request, const TunedFor& here) {
  return {{"machine", here.machine},
          {"compiler", here.compiler},
          {"commit", here.commit},
          {"model", here.model},
          {"threads", here.threads},
          {"deterministic", here.deterministic},
          {"templates", here.templates},
          {"rounds", request.rounds},
          {"finalist_rounds", request.finalist_rounds},
          {"seed", request.seed},
          {"batch_size", run.options.train.batch_size},
          {"batch_sizes", run.options.tune.batch_sizes}};
}

/// What a run that may be broken off has measured so far, in "PATH.partial".
class PartialTimes {
 public:
  /// Goes on from what is there, if that was measured as `measured_as` says.
  PartialTimes(std::string path, Json measured_as, Files& files)
      : path_(std::move(path)), files_(files) {
    json_ = {{"of", std::move(measured_as)}, {"families", Json::object()}};
    const auto text = files.exists(path_) ? read_text(files, path_) : Status::Failed("");
    if (!text.ok()) return;
    Json before = Json::parse(*text, nullptr, false);
    if (before.is_object() && before.contains("of") && before["of"] == json_["of"] &&
        before.contains("families") && before["families"].is_object())
      json_ = std::move(before);
  }

  /// What was measured before of the subject at these values, if it is of the same thing.
  FamilyTimes of(const TuningSubject& subject, std::span<const FusedParameters> values) const {
    const auto& families = json_["families"];
    const TuningWork& work = subject.work();
    if (!families.contains(work.family)) return {};
    const auto times = family_times_from_json(families[work.family]);
    if (!times.ok() || times->classes != work.classes || times->values.size() > values.size())
      return {};
    for (size_t v = 0; v < times->values.size(); ++v) {
      if (times->values[v].value != values[v]) return {};
    }
    log_info(fmt::format("{}: {} goes on after {} of {} values", path_, work.family,
                         times->values.size(), values.size()));
    return *times;
  }

  Status keep(const FamilyTimes& times) {
    json_["families"][times.family] = to_json(times);
    return write_atomically(files_, path_, json_.dump());
  }
  Status remove() { return files_.remove(path_); }

 private:
  const std::string path_;
  Files& files_;
  Json json_;
};

/// What a part of the budget is for, by the clock.
struct Deadlines {
  int64_t begin_ns = 0, end_ns = std::numeric_limits<int64_t>::max();
  bool limited = false;

  /// When such a share of it is spent.
  int64_t at(double share) const {
    return limited ? begin_ns + static_cast<int64_t>(share * static_cast<double>(end_ns - begin_ns))
                   : end_ns;
  }
};

/// Tunes one family after the other, within one budget, which begins with it, and under one
/// progress.
class FamilyTuner {
 public:
  FamilyTuner(const TuningRequest& request, PartialTimes& partial, ThreadPool& pool)
      : request_(request),
        stop_(request.interrupted != nullptr ? *request.interrupted : never_),
        partial_(partial),
        pool_(pool),
        begin_(clock_.now_ns()),
        progress_(request.progress, "tuning", "%", 100) {}

  /// From now on until the part of all the work is done that comes before `until`, 0 to 1.
  Deadlines deadlines(double until) const {
    if (request_.budget_seconds <= 0.0) return {};
    const auto end =
        begin_ + static_cast<int64_t>(kPlannedShare * until * request_.budget_seconds * 1e9);
    const int64_t now = clock_.now_ns();
    return {now, std::max(now, end), /*limited=*/true};
  }

  /// Goes on from `before`, with what is before generated code. `until`: as for deadlines().
  Result<FamilyTuning> tune(TuningSubject& subject, const std::vector<FusedParameters>& values,
                            FamilyTimes before, const Deadlines& deadlines, double until) {
    TunerOptions options;
    options.values = values;
    options.rounds = request_.rounds;
    options.finalist_rounds = request_.finalist_rounds;
    if (before.values.empty() && deadlines.limited)
      RECMILL_RETURN_IF_ERROR(shorten(subject, options, deadlines.at(kMeasuredShare)));
    if (deadlines.limited)
      options.budget_seconds = std::max(1e-3, seconds_until(deadlines.at(kMeasuredShare)));
    if (FamilyTimes kept = partial_.of(subject, options.values); !kept.values.empty())
      before = std::move(kept);
    FamilyTuning tuned;
    RECMILL_ASSIGN_OR_RETURN(
        tuned.times,
        measure(
            subject, options, std::move(before), clock_, pool_,
            [&](const FamilyTimes& times) { return partial_.keep(times); },
            [&](const TunerProgress& at) { show(subject, at, options.values.size(), until); },
            stop_));
    RECMILL_ASSIGN_OR_RETURN(tuned.choice, choose(tuned.times));
    say_refused(tuned.times);
    RECMILL_RETURN_IF_ERROR(measure_again(subject, tuned, deadlines.at(kAgainShare)));
    done_ = until;
    return tuned;
  }

  /// Beside the templates' bodies, unless it is not wanted or cannot be had.
  Status add_code_times(const ResolvedRun& run, PoolSubject& subject, FamilyTuning& family,
                        const Deadlines& deadlines, Files& files) const {
    if (run.options.kernels.generated == GeneratedCode::never) return {};
    const auto code =
        measure_code(run, subject, family.choice, deadlines.end_ns, pool_, files, stop_);
    if (stop_) return Status::Failed("interrupted");
    if (code.ok()) {
      family.code = *code;
    } else {
      log_warning(code.status().message() + "; generated code was not measured");
    }
    return {};
  }

 private:
  double seconds_until(int64_t end_ns) const {
    return static_cast<double>(end_ns - clock_.now_ns()) * 1e-9;
  }
  double seconds() const { return -seconds_until(begin_); }

  /// Each schedule whose answer was wrong, once.
  static void say_refused(const FamilyTimes& times) {
    std::set<std::string> said;
    for (const ValueTimes& value : times.values) {
      for (const ClassTimes& of : value.classes) {
        for (const CandidateTime& candidate : of.candidates) {
          if (!candidate.refused.empty() && said.insert(candidate.refused).second)
            log_warning(candidate.refused);
        }
      }
    }
  }

  void show(const TuningSubject& subject, const TunerProgress& at, size_t values, double until) {
    const double done = done_ + at.done * (until - done_);
    progress_.show(static_cast<int64_t>(done * 100),
                   fmt::format("{}, value {} of {}, {} left", subject.work().family, at.value + 1,
                               values, format_duration(seconds() / done * (1.0 - done))));
  }

  /// Leaves out what the time does not reach: batches but the largest and a middle one, then values
  /// but three, then the middle batch. Says so where that is not enough.
  Status shorten(TuningSubject& subject, TunerOptions& options, int64_t until_ns) const {
    RECMILL_ASSIGN_OR_RETURN(const UnitTimes units,
                             measure_units(subject, options.values.front(), clock_, pool_, stop_));
    const double left = std::max(0.0, seconds_until(until_ns));
    const auto least = [&] { return least_seconds(subject, options, units); };
    const auto reaches = [&] {
      const auto [local, global] = least();
      return local <= kLeastLocalShare * left && local + global <= kLeastShare * left;
    };
    const TuningWork& work = subject.work();
    std::vector<int64_t> largest_first(work.batches());
    std::iota(largest_first.begin(), largest_first.end(), int64_t{0});
    std::ranges::stable_sort(largest_first, std::greater(),
                             [&](int64_t batch) { return work.samples[batch]; });
    if (!reaches() && work.batches() > 1)
      subject.keep_batches(
          std::array{largest_first.front(), largest_first[largest_first.size() / 2]});
    if (!reaches() && options.values.size() > 3)
      options.values.erase(options.values.begin() + 1, options.values.end() - 2);
    if (!reaches() && work.batches() == 2) subject.keep_batches(std::array{int64_t{0}});
    const double all = least().local + least().global;
    if (all > left)
      log_warning(
          fmt::format("{}: {} of the budget are left, but to compare all schedules takes about {}",
                      work.family, format_duration(left), format_duration(all)));
    return {};
  }

  /// The winner once more, beside its tasks' times and the untuned run, whose task map has other
  /// costs even where the default schedules won.
  Status measure_again(TuningSubject& subject, FamilyTuning& tuned, int64_t until_ns) const {
    const Choice untuned;
    const std::vector<Entrant> entrants{
        [&] { return measure_fused(subject, tuned.choice, 1, clock_, pool_); },
        [&] { return measure_fused(subject, untuned, 1, clock_, pool_); },
        [&]() -> Result<double> {
          RECMILL_ASSIGN_OR_RETURN(const double nanoseconds,
                                   measure_tasks(subject, tuned.choice, clock_, pool_, stop_));
          return nanoseconds * 1e-9;
        }};
    const RaceOptions options{
        .rounds = kAgainRounds,
        .seconds = kAgainSeconds / static_cast<double>(subject.work().batches()),
        .until_ns = until_ns};
    RECMILL_ASSIGN_OR_RETURN(const auto seconds, race(entrants, options, clock_, stop_));
    tuned.measured_nanoseconds = seconds[0] * 1e9;
    tuned.default_nanoseconds = seconds[1] * 1e9;
    tuned.task_nanoseconds = seconds[2] * 1e9;
    RECMILL_ASSIGN_OR_RETURN(
        tuned.class_nanoseconds,
        measure_classes(subject, tuned.choice, kAgainRounds, clock_, pool_, stop_));
    return {};
  }

  const TuningRequest& request_;
  const std::atomic<bool> never_{false};
  const std::atomic<bool>& stop_;
  PartialTimes& partial_;
  ThreadPool& pool_;
  const SteadyClock clock_;
  const int64_t begin_;
  Progress progress_;
  double done_ = 0.0;
};

/// The record that is compared with the data; one without families where all is tuned.
Result<TuningRecord> record_before(const ResolvedRun& run, const TuningRequest& request,
                                   const std::string& path, Files& files) {
  if (!request.if_drifted) return TuningRecord{};
  RECMILL_ASSIGN_OR_RETURN(auto record, read_tuning_record(path, files));
  RECMILL_ASSIGN_OR_RETURN(const TunedFor here, tuned_for(run, {}, files));
  const std::string why = foreign_because(record.of, here);
  if (!why.empty()) return Status::Failed(path + ": " + why + "; tune without --if-drifted");
  return record;
}

/// Which features, or tables, are tuned again.
void tell(const ResolvedRun& run, const std::string& family, const Regrouped& regrouped) {
  constexpr size_t kNamed = 10;
  const bool pool = family == "embedding_pool";
  const auto& moved = regrouped.moved;
  if (moved.empty())
    return log_info(family + ": nothing has drifted, the times of all classes stay");
  for (size_t i = 0; i < std::min(kNamed, moved.size()); ++i) {
    const int64_t number = moved[i].feature;
    log_info(fmt::format("{}: {} '{}' is tuned again: {}", family, pool ? "feature" : "table",
                         pool ? run.spec.features[number].name : run.spec.tables[number].name,
                         figures_of(moved[i])));
  }
  if (moved.size() > kNamed)
    log_info(fmt::format("{}: and {} more {}", family, moved.size() - kNamed,
                         pool ? "features" : "tables"));
}

/// What keeping the order of summation costs at the chosen value; at least 1.
double price_of_order(const FamilyTuning& family) {
  const auto& values = family.times.values;
  for (size_t v = 0; v < values.size(); ++v) {
    if (values[v].value != family.choice.value) continue;
    const auto price = kernels::tune::price_of_order(family.times, v);
    if (price.ok()) return *price;
  }
  return 1.0;
}

/// Null: not measured.
Json milliseconds(double nanoseconds) {
  return nanoseconds > 0.0 ? Json(nanoseconds * 1e-6) : Json();
}

}  // namespace

Result<TuningRecord> tune(const ResolvedRun& run, const TuningRequest& request, Files& files) {
  const std::string path = tuning_record_path(run.options);
  RECMILL_ASSIGN_OR_RETURN(const TuningRecord before, record_before(run, request, path, files));
  RECMILL_ASSIGN_OR_RETURN(const auto made, MadeFolders::make_for(files, path));
  const auto pool = make_pool(run.threads);
  TuningRecord record;
  RECMILL_ASSIGN_OR_RETURN(record.of, tuned_for(run, {}, files));
  record.of.commit = request.commit;
  PartialTimes partial(path + ".partial", measured_as(run, request, record.of), files);
  FamilyTuner tuner(request, partial, *pool);
  RECMILL_ASSIGN_OR_RETURN(
      TuningData data,
      TuningData::make(run, {.seed = static_cast<uint64_t>(request.seed)}, *pool, files));
  RECMILL_ASSIGN_OR_RETURN(record.memory_rate, measure_memory_rate(SteadyClock(), *pool));
  const int64_t l2_bytes = this_processor().l2_bytes;
  bool moved = false;
  const auto tune_family = [&](auto& subject, std::vector<FusedParameters> values,
                               const Deadlines& deadlines, double until) -> Status {
    const std::string& name = subject.work().family;
    const FamilyTuning* const known = before.family(name);
    FamilyTimes from;
    if (known != nullptr) {
      auto regrouped = regroup(known->times, subject.features());
      tell(run, name, regrouped);
      if (regrouped.moved.empty()) {
        record.families.push_back(*known);
        return {};
      }
      from = std::move(regrouped.times);
      values.clear();
      for (const ValueTimes& at : from.values) values.push_back(at.value);
      subject.set_classes(from.classes);
    }
    moved = true;
    RECMILL_ASSIGN_OR_RETURN(auto family,
                             tuner.tune(subject, values, std::move(from), deadlines, until));
    record.families.push_back(std::move(family));
    return {};
  };
  {
    RECMILL_ASSIGN_OR_RETURN(const auto subject,
                             make_pool_subject(run, data.tables, data.batches, files));
    const Deadlines deadlines = tuner.deadlines(kPoolShare);
    RECMILL_RETURN_IF_ERROR(tune_family(*subject, fused_values(l2_bytes), deadlines, kPoolShare));
    if (moved)
      RECMILL_RETURN_IF_ERROR(
          tuner.add_code_times(run, *subject, record.families.back(), deadlines, files));
  }
  {
    RECMILL_ASSIGN_OR_RETURN(const auto subject,
                             make_update_subject(run, data.tables, data.batches));
    if (!subject->work().classes.empty())
      RECMILL_RETURN_IF_ERROR(
          tune_family(*subject, update_values(l2_bytes), tuner.deadlines(1.0), 1.0));
  }
  if (!moved) return before;
  RECMILL_RETURN_IF_ERROR(write_record(record, path, files));
  RECMILL_RETURN_IF_ERROR(partial.remove());
  return record;
}

Result<TuningRecord> replay(TuningRecord record) {
  for (FamilyTuning& family : record.families) {
    RECMILL_ASSIGN_OR_RETURN(family.choice, choose(family.times));
  }
  return record;
}

Json summary_of(const TuningRecord& record) {
  Json json{{"workload", record.of.workload},
            {"machine", record.of.machine},
            {"threads", record.of.threads}};
  for (const FamilyTuning& family : record.families) {
    const double predicted = family.task_nanoseconds / static_cast<double>(record.of.threads);
    size_t features = 0;
    for (const FeatureClass& of : family.times.classes) features += of.features.size();
    const bool pooled = family.times.family == "embedding_pool";
    const int64_t tile = family.choice.value.tile;
    // Two measurements of the default schedules, where these stay.
    const double measured =
        family.choice.value.defaults ? family.default_nanoseconds : family.measured_nanoseconds;
    json[family.times.family] = {
        {pooled ? "features" : "tables", features},
        {"classes", family.times.classes.size()},
        {"tile", tile == kernels::kWholeFeature ? Json("whole features") : Json(tile)},
        {"l2_bytes", family.choice.value.l2_bytes},
        {"blocks", family.choice.value.blocks},
        {"predicted_ms", milliseconds(predicted)},
        {"measured_ms", milliseconds(measured)},
        {"default_ms", milliseconds(family.default_nanoseconds)},
        {"prebuilt_ms", milliseconds(family.code.prebuilt)},
        {"branches_ms", milliseconds(family.code.branches)},
        {"pointers_ms", milliseconds(family.code.pointers)},
        {"speedup", measured > 0.0 ? Json(family.default_nanoseconds / measured) : Json()},
        {"price_of_order", price_of_order(family)}};
  }
  return json;
}

}  // namespace recmill::train
