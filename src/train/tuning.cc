// SPDX-License-Identifier: Apache-2.0
#include "train/tuning.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "device/processor.h"
#include "kernels/tune/tuner.h"
#include "train/chosen_kernels.h"
#include "train/rank.h"
#include "train/tuning_data.h"

namespace recmill::train {
namespace {

using namespace kernels::tune;  // NOLINT: this file is about nothing else

constexpr int64_t kFusedRounds = 5;

/// What was measured before, if it is of the same thing.
FamilyTimes partial_times(const std::string& path, const TunedFor& here,
                          const TuningSubject& subject, std::span<const FusedValue> values,
                          Files& files) {
  const auto text = files.exists(path) ? read_text(files, path) : Status::Failed("");
  if (!text.ok()) return {};
  const Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("of") || !json.contains("times")) return {};
  const auto times = family_times_from_json(json["times"]);
  const auto& classes = subject.classes();
  if (!times.ok() || json["of"] != here.machine + here.compiler + here.model + here.commit ||
      !std::equal(times->classes.begin(), times->classes.end(), classes.begin(), classes.end()) ||
      times->values.size() > values.size())
    return {};
  for (size_t v = 0; v < times->values.size(); ++v) {
    if (times->values[v].value != values[v]) return {};
  }
  log_info(
      fmt::format("{}: goes on after {} of {} values", path, times->values.size(), values.size()));
  return *times;
}

/// The default schedule of every class, as a choice.
Choice default_choice(const FamilyTimes& times) {
  Choice choice{{kernels::kWholeFeature, 0}, {}, 0.0};
  for (const FeatureClass& of : times.classes) {
    const char* name = of.shape.pooling == Pooling::none ? "rows_copied fetch=64"
                       : of.shape.bags.one_each()        ? "one_each fetch=64 store=0 stage=0"
                                                         : "bags fetch=64 held=8 store=0 stage=0";
    choice.schedules.push_back({*kernels::parse_schedule(name), 0.0, 0.0});
  }
  return choice;
}

Status make_folder_of(const std::string& path, Files& files) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? Status{} : files.make_folder(path.substr(0, slash));
}

Result<FamilyTuning> tune_family(TuningSubject& subject, const TuningRequest& request,
                                 const TunedFor& here, const std::string& partial, Pool& pool,
                                 Files& files) {
  const SteadyClock clock;
  TunerOptions options;
  options.values = fused_values(this_processor().l2_bytes);
  options.rounds = request.rounds;
  options.budget_seconds = request.budget_seconds;
  FamilyTimes before = partial_times(partial, here, subject, options.values, files);
  Progress progress(request.progress, "tuning " + subject.family(), "%", 100);
  const std::atomic<bool> never{false};
  FamilyTuning tuned;
  RECMILL_ASSIGN_OR_RETURN(
      tuned.times,
      measure(
          subject, options, std::move(before), clock, pool,
          [&](const FamilyTimes& times) {
            const Json json{{"of", here.machine + here.compiler + here.model + here.commit},
                            {"times", to_json(times)}};
            return write_atomically(files, partial, json.dump());
          },
          [&](const TunerProgress& at) {
            progress.show(static_cast<int64_t>(at.done * 100),
                          fmt::format("value {} of {}, {} left", at.value + 1,
                                      options.values.size(), format_duration(at.seconds_left)));
          },
          request.interrupted != nullptr ? *request.interrupted : never));
  RECMILL_ASSIGN_OR_RETURN(tuned.choice, choose(tuned.times));
  // The winner once more, beside the default.
  std::vector<double> winner, standard;
  for (int64_t round = 0; round < kFusedRounds; ++round) {
    RECMILL_ASSIGN_OR_RETURN(const double chosen,
                             measure_fused(subject, tuned.choice, 1, clock, pool));
    RECMILL_ASSIGN_OR_RETURN(const double beside,
                             measure_fused(subject, default_choice(tuned.times), 1, clock, pool));
    winner.push_back(chosen * 1e9);
    standard.push_back(beside * 1e9);
  }
  std::sort(winner.begin(), winner.end());
  std::sort(standard.begin(), standard.end());
  tuned.measured_nanoseconds = winner[winner.size() / 2];
  tuned.default_nanoseconds = standard[standard.size() / 2];
  return tuned;
}

}  // namespace

Result<TuningRecord> tune(const ResolvedRun& run, const TuningRequest& request, Files& files) {
  const std::string path = tuning_record_path(run.options);
  RECMILL_RETURN_IF_ERROR(make_folder_of(path, files));
  const auto pool = make_pool(run.threads);
  RECMILL_ASSIGN_OR_RETURN(
      const TuningData data,
      TuningData::make(run, static_cast<uint64_t>(request.seed), *pool, files));
  TuningRecord record;
  record.of = tuned_for(run);
  record.of.commit = request.commit;
  RECMILL_ASSIGN_OR_RETURN(const auto subject, make_pool_subject(run, data.tables, data.batches));
  const std::string partial = path + ".partial";
  RECMILL_ASSIGN_OR_RETURN(auto family,
                           tune_family(*subject, request, record.of, partial, *pool, files));
  record.families.push_back(std::move(family));
  RECMILL_ASSIGN_OR_RETURN(const std::string text, record_text(record));
  RECMILL_RETURN_IF_ERROR(write_atomically(files, path, text));
  RECMILL_RETURN_IF_ERROR(files.remove(partial));
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
    const double predicted =
        family.choice.predicted_nanoseconds / static_cast<double>(record.of.threads);
    size_t features = 0;
    for (const FeatureClass& of : family.times.classes) features += of.features.size();
    json[family.times.family] = {
        {"features", features},
        {"classes", family.times.classes.size()},
        {"tile", family.choice.value.tile},
        {"l2_bytes", family.choice.value.l2_bytes},
        {"predicted_ms", predicted * 1e-6},
        {"measured_ms", family.measured_nanoseconds * 1e-6},
        {"default_ms", family.default_nanoseconds * 1e-6},
        {"speedup", family.default_nanoseconds / family.measured_nanoseconds}};
  }
  return json;
}

}  // namespace recmill::train
