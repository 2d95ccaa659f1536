// SPDX-License-Identifier: Apache-2.0
#include "run/schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/temporary_folder.h"
#include "device/gpu/gpu_properties.h"
#include "kernels/embedding_pool/gpu_templates.h"
#include "kernels/embedding_pool/pool_template.h"
#include "run/chosen_kernels.h"
#include "run/testing/bags_run.h"

namespace recmill::train {
namespace {

using kernels::Schedule;
using kernels::tune::FamilyTuning;
using kernels::tune::TuningRecord;

ResolvedRun resolved(DeviceKind device, bool deterministic = true) {
  RunOptions options = bags_run(500);
  options.name = "bags";
  options.device = device;
  options.train.deterministic = deterministic;
  auto run = resolve_run(options, posix_files());
  EXPECT_TRUE(run.ok()) << run.status().message();
  return *std::move(run);
}

SchedulePlace place_of(DeviceKind device) {
  if (device == DeviceKind::cpu) return {};
  return {.gpu = *gpu_of_architecture("sm_90")};
}

FamilyTuning family(const std::string& name, std::vector<Schedule> schedules,
                    std::vector<std::vector<int64_t>> numbers) {
  FamilyTuning made;
  made.times.family = name;
  made.choice.value.tile = 96;
  made.choice.value.blocks = 3;
  for (size_t c = 0; c < schedules.size(); ++c) {
    made.times.classes.push_back({{}, numbers[c]});
    made.choice.schedules.push_back({schedules[c], 2.0 + static_cast<double>(c), 5.0});
  }
  return made;
}

/// Two schedules of lookups on the device.
std::vector<Schedule> two_schedules(DeviceKind device) {
  if (device == DeviceKind::cpu)
    return {kernels::default_pool_schedule(Pooling::sum, true),
            kernels::default_pool_schedule(Pooling::sum, false)};
  const kernels::FeatureShape shape{100, 4, RowPrecision::float32, Pooling::sum, false, {}};
  const auto all = kernels::gpu_pool_candidates(shape, /*deterministic=*/true);
  return {all.front(), all.back()};
}

/// Features 0, 2 and up have the second schedule, feature 1 the first.
TuningRecord record_for(const ResolvedRun& run) {
  TuningRecord record;
  auto of = tuned_for(run, place_of(run.options.device));
  EXPECT_TRUE(of.ok()) << of.status().message();
  record.of = *std::move(of);
  std::vector<int64_t> others;
  for (int64_t f = 0; f < std::ssize(run.spec.features); ++f)
    if (f != 1) others.push_back(f);
  record.families = {
      family("embedding_pool", two_schedules(run.options.device), {{1}, std::move(others)})};
  return record;
}

TEST(Schedules, of_each_feature_are_its_class_s_on_every_device) {
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::emulated, DeviceKind::cuda}) {
    SCOPED_TRACE(name_of(device));
    const ResolvedRun run = resolved(device, /*deterministic=*/device == DeviceKind::cpu);
    const auto found = schedules_from(record_for(run), run, place_of(device), "record.json");
    ASSERT_TRUE(found.ok()) << found.status().message();
    const auto two = two_schedules(device);
    ASSERT_NE(two[0], two[1]);
    ASSERT_EQ(found->pool.size(), run.spec.features.size());
    for (size_t f = 0; f < found->pool.size(); ++f) {
      EXPECT_EQ(found->pool[f].schedule, two[f == 1 ? 0 : 1]);
      EXPECT_EQ(found->pool[f].per_lookup, f == 1 ? 2.0 : 3.0);
    }
    EXPECT_EQ(found->tile, 96);
    EXPECT_EQ(found->blocks, 3);
    EXPECT_TRUE(found->row_update.empty());
  }
}

TEST(Schedules, of_tables_become_the_store_s_kernels_and_others_have_the_default_ones) {
  const ResolvedRun run = resolved(DeviceKind::cpu);
  ASSERT_GE(run.spec.tables.size(), 2u);
  TuningRecord record = record_for(run);
  record.families[0].times.classes[1].features = {0};
  const Schedule update = kernels::schedule_of(kernels::default_row_update({1 << 20, 8, 64, 1}));
  record.families.push_back(family("row_update", {update}, {{1}}));
  const auto schedules = schedules_from(record, run, {}, "record.json");
  ASSERT_TRUE(schedules.ok()) << schedules.status().message();
  ASSERT_EQ(schedules->row_update.size(), run.spec.tables.size());
  EXPECT_EQ(schedules->row_update[1], update);
  EXPECT_EQ(schedules->row_update[0], Schedule());
  const auto kernels = kernels_of(*schedules, run);
  ASSERT_TRUE(kernels.ok()) << kernels.status().message();
  EXPECT_EQ(kernels->pool[1].of->name, two_schedules(DeviceKind::cpu)[0].of);
  EXPECT_EQ(kernels->pool[1].per_lookup, 2.0);
  EXPECT_EQ(kernels->pool[2].of, nullptr);
  EXPECT_EQ(kernels::schedule_of(kernels->row_update[1]), update);
  EXPECT_EQ(kernels::schedule_of(kernels->row_update[0]),
            kernels::schedule_of(kernels::default_row_update({})));
  EXPECT_EQ(kernels->tile, 96);
  EXPECT_EQ(kernels->update_floats, 96);
}

TEST(Schedules, of_a_record_that_is_no_good_are_refused_in_one_line_on_every_device) {
  struct Case {
    std::function<void(TuningRecord&)> change;
    std::string message;  // begins so
    bool on_gpu = true, on_cpu = true;
  };
  const std::vector<Case> cases = {
      {[](TuningRecord& of) { of.of.machine = "elsewhere"; },
       "it was tuned for machine 'elsewhere', this is '"},
      {[](TuningRecord& of) { of.of.compiler = "sm_70"; }, "it was tuned for compiler 'sm_70', "},
      {[](TuningRecord& of) { of.of.model = "0"; }, "it was tuned for tables and features '0', "},
      {[](TuningRecord& of) { of.families[0].choice.schedules[1].schedule.of = "unheard"; },
       "schedule 'unheard"},
      {[](TuningRecord& of) {
         of.families[0].times.classes[1].features = {0, 99};
       },
       "embedding_pool: there is no number 99"},
      {[](TuningRecord& of) { of.families[0].times.classes[1].features = {-1}; },
       "embedding_pool: there is no number -1"},
      {[](TuningRecord& of) { of.families[0].times.classes[1].features = {0}; },
       "has no schedule for feature number 2", true, /*on_cpu=*/false},
      {[](TuningRecord& of) { of.families.clear(); }, "embedding_pool was not tuned", true,
       /*on_cpu=*/false},
      {[](TuningRecord& of) {
         of.families.push_back(family("row_update", {{"unheard", {}}}, {{0}}));
       },
       "schedule 'unheard", /*on_gpu=*/false},
      {[](TuningRecord& of) {
         const Schedule update = kernels::schedule_of(kernels::default_row_update({}));
         of.families.push_back(family("row_update", {update}, {{99}}));
       },
       "row_update: there is no number 99", /*on_gpu=*/false}};
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::emulated}) {
    const bool gpu = device != DeviceKind::cpu;
    const ResolvedRun run = resolved(device, /*deterministic=*/!gpu);
    for (const Case& of : cases) {
      if (gpu ? !of.on_gpu : !of.on_cpu) continue;
      TuningRecord record = record_for(run);
      of.change(record);
      const Status status = schedules_from(record, run, place_of(device), "record.json").status();
      const std::string& message = status.message();
      EXPECT_EQ(status.code(), Status::Code::failed) << message;
      EXPECT_TRUE(message.starts_with("record.json: " + of.message)) << message;
      EXPECT_EQ(std::ranges::count(message, '\n'), 0) << message;
    }
  }
}

/// Of a device the schedule of a template that adds in another order.
Schedule reordering(DeviceKind device) {
  if (device == DeviceKind::cpu) {
    for (const auto& of : kernels::pool_templates()) {
      if (of.order != kernels::Order::reorders) continue;
      Schedule schedule{of.name, {}};
      for (const auto& tunable : of.tunables)
        schedule.parameters.push_back({tunable.name, tunable.values.front()});
      return schedule;
    }
  } else {
    kernels::FeatureShape shape;
    shape.rows = 100;
    shape.dim = 4;
    shape.bags.mean = 4;  // only sums of several lookups have an order
    shape.bags.longest = 8;
    for (const Schedule& schedule : kernels::gpu_pool_candidates(shape, /*deterministic=*/false))
      if (kernels::find_gpu_pool_kernel(schedule)->of->order == kernels::Order::reorders)
        return schedule;
  }
  return {};
}

TEST(Schedules, that_reorder_sums_are_for_runs_that_allow_it) {
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::emulated}) {
    SCOPED_TRACE(name_of(device));
    const Schedule schedule = reordering(device);
    ASSERT_FALSE(schedule.of.empty());
    for (const bool deterministic : {false, true}) {
      const ResolvedRun run = resolved(device, deterministic);
      TuningRecord record = record_for(run);
      record.families[0].choice.schedules[0].schedule = schedule;
      const Status status = schedules_from(record, run, place_of(device), "record.json").status();
      EXPECT_EQ(status.message(), deterministic ? "record.json: schedule '" + schedule.name() +
                                                      "' reorders sums, and train.deterministic "
                                                      "is true"
                                                : "");
      record.of.deterministic = false;
      EXPECT_EQ(schedules_from(record, run, place_of(device), "record.json").ok(), !deterministic);
    }
  }
}

TEST(Schedules, for_architectures_that_are_not_here_are_of_a_record_for_one_of_them) {
  const ResolvedRun run = resolved(DeviceKind::cuda, /*deterministic=*/false);
  const TuningRecord record = record_for(run);
  const auto found = schedules_from(record, run, {.architectures = {{"sm_80", "sm_90"}}}, "r.json");
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(*found, *schedules_from(record, run, place_of(DeviceKind::cuda), "r.json"));
  EXPECT_EQ(
      schedules_from(record, run, {.architectures = {{"sm_80"}}}, "r.json").status().message(),
      "r.json: it was tuned for 'sm_90', which no --arch names");
  EXPECT_FALSE(schedules_from(record, run, {.architectures = {{}}}, "r.json").ok());
}

TEST(Schedules, are_those_of_the_run_s_record_or_else_what_kernels_says) {
  const TemporaryFolder folder;
  ResolvedRun run = resolved(DeviceKind::cpu);
  run.options.kernels.record = folder.path() + "/record.json";
  const auto untuned = tuned_schedules(run, {}, posix_files());
  ASSERT_TRUE(untuned.ok());
  EXPECT_EQ(untuned->schedules, Schedules());
  EXPECT_FALSE(untuned->record);
  run.options.kernels.mode = KernelMode::tuned;
  EXPECT_EQ(tuned_schedules(run, {}, posix_files()).status().message(),
            folder.path() + "/record.json: no such tuning record; run `recmill tune` first");
  run.options.kernels.on_missing_schedule = OnMissingSchedule::error;
  EXPECT_FALSE(choose_schedules(run, {}, posix_files()).ok());
  run.options.kernels.on_missing_schedule = OnMissingSchedule::standard;
  const auto allowed = choose_schedules(run, {}, posix_files());
  ASSERT_TRUE(allowed.ok());
  EXPECT_EQ(allowed->schedules, Schedules());
}

}  // namespace
}  // namespace recmill::train
