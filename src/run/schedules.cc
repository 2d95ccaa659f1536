// SPDX-License-Identifier: Apache-2.0
#include "run/schedules.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "base/log.h"
#include "base/made_folders.h"
#include "base/paths.h"
#include "device/processor.h"
#include "kernels/codegen/user_templates.h"
#include "kernels/embedding_pool/gpu_templates.h"
#include "run/generated_code.h"

namespace recmill::train {
namespace {

using kernels::Schedule;
using kernels::tune::ChosenSchedule;
using kernels::tune::FamilyTuning;
using kernels::tune::TunedFor;
using kernels::tune::TuningRecord;

/// Why the record is not good for the place, and what to do; empty: it is.
Result<std::string> foreign_because(const TunedFor& record, const ResolvedRun& run,
                                    const SchedulePlace& place, Files& files) {
  if (!place.architectures) {
    RECMILL_ASSIGN_OR_RETURN(const TunedFor here, tuned_for(run, place, files));
    const std::string why = kernels::tune::foreign_because(record, here);
    return why.empty() ? why : why + "; run `recmill tune` here";
  }
  if (std::ranges::find(*place.architectures, record.compiler) == place.architectures->end())
    return "it was tuned for '" + record.compiler + "', which no --arch names";
  TunedFor wanted = record;
  wanted.model = run.tuned_model;
  wanted.deterministic = run.options.train.deterministic;
  return kernels::tune::foreign_because(record, wanted);
}

/// The order in which a schedule adds; fails where no template is called so.
using FindOrder = std::function<Result<kernels::Order>(const Schedule& schedule)>;

/// The family's schedules by feature or table, of `count`.
Result<std::vector<ChosenSchedule>> by_number(const FamilyTuning& family, size_t count,
                                              bool deterministic, const FindOrder& find) {
  std::vector<ChosenSchedule> all(count);
  for (size_t c = 0; c < family.choice.schedules.size(); ++c) {
    const ChosenSchedule& chosen = family.choice.schedules[c];
    RECMILL_ASSIGN_OR_RETURN(const kernels::Order order, find(chosen.schedule));
    if (order == kernels::Order::reorders && deterministic)
      return Status::Failed("schedule '" + chosen.schedule.name() +
                            "' reorders sums, and train.deterministic is true");
    for (const int64_t i : family.times.classes[c].features) {
      if (i < 0 || i >= static_cast<int64_t>(count))
        return Status::Failed(family.times.family + ": there is no number " + std::to_string(i));
      all[i] = chosen;
    }
  }
  return all;
}

Result<FindOrder> pool_orders(const ResolvedRun& run, const SchedulePlace& place, Files& files) {
  if (place.is_gpu())
    return FindOrder([](const Schedule& schedule) -> Result<kernels::Order> {
      RECMILL_ASSIGN_OR_RETURN(const auto kernel, kernels::find_gpu_pool_kernel(schedule));
      return kernel.of->order;
    });
  RECMILL_ASSIGN_OR_RETURN(const auto templates, pool_templates_of(run.options.kernels, files));
  return FindOrder([templates](const Schedule& schedule) -> Result<kernels::Order> {
    RECMILL_ASSIGN_OR_RETURN(const auto kernel, kernels::find_pool_kernel(schedule, templates));
    return kernel.of->order;
  });
}

Result<kernels::Order> update_order(const Schedule& schedule) {
  RECMILL_RETURN_IF_ERROR(kernels::row_update_kernel(schedule).status());
  return kernels::Order::contract;
}

/// What is wrong in a file is no bad request.
Status failed(const std::string& source, const Status& why) {
  return Status::Failed(source + ": " + why.message());
}

/// A GPU's kernels have no default beside a record's.
Status check_each_has_one(std::span<const ChosenSchedule> pool) {
  if (pool.empty()) return Status::Failed("embedding_pool was not tuned");
  for (size_t f = 0; f < pool.size(); ++f)
    if (pool[f].schedule.of.empty())
      return Status::Failed("has no schedule for feature number " + std::to_string(f));
  return {};
}

}  // namespace

std::string tuning_record_path(const RunOptions& options) {
  if (!options.kernels.record.empty()) return options.kernels.record;
  const std::string of_device =
      options.device == DeviceKind::cpu ? "" : "." + std::string(name_of(options.device));
  return path_from(options.base, "tuned/" + options.name + of_device + ".json");
}

Result<TuningRecord> read_tuning_record(const std::string& path, Files& files) {
  if (!files.exists(path))
    return Status::Failed(whole_path(path) + ": no such tuning record; run `recmill tune` first");
  RECMILL_ASSIGN_OR_RETURN(const std::string text, read_text(files, path));
  return kernels::tune::parse_record(text, path);
}

Status write_record(const TuningRecord& record, const std::string& path, Files& files) {
  RECMILL_ASSIGN_OR_RETURN(const std::string text, kernels::tune::record_text(record));
  RECMILL_ASSIGN_OR_RETURN(const auto made, MadeFolders::make_for(files, path));
  return write_atomically(files, path, text);
}

Result<TunedFor> tuned_for(const ResolvedRun& run, const SchedulePlace& place, Files& files) {
  TunedFor here;
  here.workload = run.options.name;
  here.model = run.tuned_model;
  here.deterministic = run.options.train.deterministic;
  if (place.gpu) {
    here.machine = place.gpu->name;
    here.compiler = run.options.device == DeviceKind::emulated
                        ? kernels::tune::this_compiler()
                        : "sm_" + std::to_string(place.gpu->compute);
    here.threads = 1;
    return here;
  }
  here.machine = this_processor().name;
  here.compiler = kernels::tune::this_compiler();
  here.threads = run.threads;
  RECMILL_ASSIGN_OR_RETURN(
      here.templates, kernels::codegen::templates_digest(run.options.kernels.templates, files));
  return here;
}

Result<Schedules> schedules_from(const TuningRecord& record, const ResolvedRun& run,
                                 const SchedulePlace& place, const std::string& source,
                                 Files& files) {
  RECMILL_ASSIGN_OR_RETURN(const std::string why, foreign_because(record.of, run, place, files));
  if (!why.empty()) return failed(source, Status::Failed(why));
  const bool deterministic = run.options.train.deterministic;
  Schedules made;
  if (const FamilyTuning* pool = record.family("embedding_pool"); pool != nullptr) {
    RECMILL_ASSIGN_OR_RETURN(const FindOrder find, pool_orders(run, place, files));
    auto chosen = by_number(*pool, run.spec.features.size(), deterministic, find);
    if (!chosen.ok()) return failed(source, chosen.status());
    made.pool = *std::move(chosen);
    made.tile = pool->choice.value.tile;
    made.blocks = pool->choice.value.blocks;
  }
  if (place.is_gpu()) {
    const Status each = check_each_has_one(made.pool);
    if (!each.ok()) return failed(source, each);
    return made;
  }
  if (const FamilyTuning* update = record.family("row_update"); update != nullptr) {
    auto chosen = by_number(*update, run.spec.tables.size(), deterministic, update_order);
    if (!chosen.ok()) return failed(source, chosen.status());
    for (ChosenSchedule& of : *chosen) made.row_update.push_back(std::move(of.schedule));
    made.update_floats = update->choice.value.tile;
  }
  return made;
}

Result<TunedSchedules> tuned_schedules(const ResolvedRun& run, const SchedulePlace& place,
                                       Files& files) {
  if (run.options.kernels.mode == KernelMode::standard) return TunedSchedules{};
  const std::string path = tuning_record_path(run.options);
  RECMILL_ASSIGN_OR_RETURN(auto record, read_tuning_record(path, files));
  RECMILL_ASSIGN_OR_RETURN(auto schedules, schedules_from(record, run, place, path, files));
  return TunedSchedules{std::move(schedules), std::move(record)};
}

Result<TunedSchedules> choose_schedules(const ResolvedRun& run, const SchedulePlace& place,
                                        Files& files) {
  auto tuned = tuned_schedules(run, place, files);
  if (tuned.ok() || run.options.kernels.on_missing_schedule == OnMissingSchedule::error)
    return tuned;
  log_warning(tuned.status().message() + "; default schedules run instead");
  return TunedSchedules{};
}

}  // namespace recmill::train
