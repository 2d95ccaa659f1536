// SPDX-License-Identifier: Apache-2.0
#include "kernels/tune/gpu_tuner.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/log.h"
#include "kernels/tune/visits.h"

namespace recmill::kernels::tune {
namespace {

using codegen::CompiledGpuPool;
using codegen::Dispatch;

/// What is left of candidates at the value of the default schedules: those alone.
ClassTimes defaults_of(const ClassTimes& of, const Schedule& schedule) {
  ClassTimes alone = of;
  std::erase_if(alone.candidates,
                [&](const CandidateTime& candidate) { return candidate.schedule != schedule; });
  alone.candidates.resize(1);
  return alone;
}

/// Of a thread, by the kernel that stores most.
int64_t spilled_bytes(const CompiledGpuPool& fused) {
  int64_t most = 0;
  for (const codegen::GpuCode& code : fused.codes) most = std::max(most, code.spilled);
  return most;
}

std::string text_of(const FusedParameters& value) {
  if (value.defaults) return "the default schedules";
  return std::to_string(value.blocks) + (value.blocks == 1 ? " block" : " blocks") + " of an SM";
}

/// A line for each value that spills.
void say_spilled(const FamilyTimes& times) {
  for (const ValueTimes& at : times.values) {
    if (at.spilled_bytes <= 0) continue;
    log_info(times.family + " with " + text_of(at.value) + " spills " +
             std::to_string(at.spilled_bytes) + " bytes a thread: " +
             (is_left_out(times, at) ? "left out of the choice" : "so does all else"));
  }
}

class GpuTuner {
 public:
  GpuTuner(GpuPoolSubject& subject, const GpuTunerOptions& options,
           const std::function<void(double)>& progress, const std::atomic<bool>& stop)
      : subject_(subject), options_(options), progress_(progress), stop_(stop) {}

  Result<FamilyTuning> run() {
    tuned_.times.family = "embedding_pool";
    tuned_.times.classes.assign(subject_.classes().begin(), subject_.classes().end());
    tuned_.times.deterministic = subject_.deterministic();
    RECMILL_RETURN_IF_ERROR(go_on(0.0));
    RECMILL_RETURN_IF_ERROR(subject_.compile_candidates(options_.blocks));
    for (const int64_t blocks : options_.blocks) RECMILL_RETURN_IF_ERROR(time_at(blocks));
    add_defaults();
    RECMILL_RETURN_IF_ERROR(race_values());
    say_spilled(tuned_.times);
    RECMILL_ASSIGN_OR_RETURN(tuned_.choice, choose(tuned_.times));
    RECMILL_RETURN_IF_ERROR(measure_again());
    return std::move(tuned_);
  }

 private:
  Status go_on(double done) {
    if (stop_) return Status::Failed("interrupted");
    progress_(done);
    return {};
  }

  Status time_at(int64_t blocks) {
    const double values = static_cast<double>(options_.blocks.size());
    const double classes = static_cast<double>(subject_.classes().size());
    const double before = static_cast<double>(tuned_.times.values.size());
    ValueTimes at;
    at.value.blocks = blocks;
    const int64_t visited = std::min(options_.visited, subject_.batches());
    for (size_t c = 0; c < subject_.classes().size(); ++c) {
      RECMILL_RETURN_IF_ERROR(
          go_on(kLocalShare * (before + static_cast<double>(c) / classes) / values));
      RECMILL_ASSIGN_OR_RETURN(auto times,
                               subject_.time_candidates(c, blocks, visited, options_.rounds));
      at.classes.push_back(std::move(times));
    }
    tuned_.times.values.push_back(std::move(at));
    return {};
  }

  /// The value of the default schedules, as they are launched where nobody tuned: first, and its
  /// times are those of the first occupancy.
  void add_defaults() {
    ValueTimes at;
    at.value.defaults = true;
    const auto schedules = subject_.defaults();
    for (size_t c = 0; c < schedules.size(); ++c)
      at.classes.push_back(defaults_of(tuned_.times.values.front().classes[c], schedules[c]));
    tuned_.times.values.insert(tuned_.times.values.begin(), std::move(at));
  }

  Result<CompiledGpuPool> fuse(const FusedParameters& value, std::span<const Schedule> schedules,
                               Dispatch dispatch) {
    return subject_.fuse(subject_.by_feature(schedules), {value.blocks, dispatch});
  }

  Result<std::vector<Schedule>> winners_of(size_t value) const {
    RECMILL_ASSIGN_OR_RETURN(const auto found, winners(tuned_.times, value));
    std::vector<Schedule> schedules;
    for (size_t c = 0; c < found.size(); ++c)
      schedules.push_back(tuned_.times.values[value].classes[c].candidates[found[c]].schedule);
    return schedules;
  }

  Status race_values() {
    std::vector<CompiledGpuPool> fused;
    for (size_t v = 0; v < tuned_.times.values.size(); ++v) {
      RECMILL_RETURN_IF_ERROR(go_on(kLocalShare));
      RECMILL_ASSIGN_OR_RETURN(const auto schedules, winners_of(v));
      RECMILL_ASSIGN_OR_RETURN(auto made,
                               fuse(tuned_.times.values[v].value, schedules, Dispatch::branches));
      tuned_.times.values[v].spilled_bytes = spilled_bytes(made);
      fused.push_back(std::move(made));
    }
    RECMILL_ASSIGN_OR_RETURN(const auto seconds,
                             race_on_gpu(subject_, fused, options_.fused_rounds, stop_));
    for (size_t v = 0; v < seconds.size(); ++v)
      tuned_.times.values[v].fused_nanoseconds = seconds[v] * 1e9;
    return {};
  }

  /// What was chosen, by branches and by pointers, beside the default schedules.
  Status measure_again() {
    RECMILL_RETURN_IF_ERROR(go_on(kAgainShare));
    const auto schedules = schedules_of(tuned_.choice);
    std::vector<CompiledGpuPool> fused;
    for (const Dispatch dispatch : {Dispatch::branches, Dispatch::pointers}) {
      RECMILL_ASSIGN_OR_RETURN(auto made, fuse(tuned_.choice.value, schedules, dispatch));
      fused.push_back(std::move(made));
    }
    RECMILL_ASSIGN_OR_RETURN(auto made, fuse({}, subject_.defaults(), Dispatch::branches));
    fused.push_back(std::move(made));
    RECMILL_ASSIGN_OR_RETURN(const auto seconds,
                             race_on_gpu(subject_, fused, options_.fused_rounds, stop_));
    tuned_.measured_nanoseconds = tuned_.code.branches = seconds[0] * 1e9;
    tuned_.code.pointers = seconds[1] * 1e9;
    tuned_.default_nanoseconds = seconds[2] * 1e9;
    tuned_.task_nanoseconds = tuned_.choice.predicted_nanoseconds;
    const auto at = std::ranges::find(tuned_.times.values, tuned_.choice.value, &ValueTimes::value);
    for (size_t c = 0; c < schedules.size(); ++c) {
      const auto& candidates = at->classes[c].candidates;
      const auto found = std::ranges::find(candidates, schedules[c], &CandidateTime::schedule);
      tuned_.class_nanoseconds.push_back(
          found->nanoseconds * static_cast<double>(tuned_.times.classes[c].features.size()));
    }
    progress_(1.0);
    return {};
  }

  static constexpr double kLocalShare = 0.8, kAgainShare = 0.95;  // of the progress

  GpuPoolSubject& subject_;
  const GpuTunerOptions& options_;
  const std::function<void(double)>& progress_;
  const std::atomic<bool>& stop_;
  FamilyTuning tuned_;
};

}  // namespace

std::vector<int64_t> gpu_occupancies(const GpuProperties& gpu) {
  // With fewer, kernels of candidates keep kilobytes a thread in memory instead: on an H200 nothing
  // is ever chosen there, and tuning only takes longer.
  constexpr int64_t kLeastRegisters = 40;  // of a thread
  const int64_t by_registers = gpu.registers / (kLeastRegisters * gpu::kBlockThreads);
  std::vector<int64_t> all(std::min<int64_t>(gpu.most_threads / gpu::kBlockThreads, by_registers));
  std::iota(all.begin(), all.end(), int64_t{1});
  return all;
}

std::vector<Schedule> schedules_of(const Choice& choice) {
  std::vector<Schedule> schedules;
  for (const ChosenSchedule& of : choice.schedules) schedules.push_back(of.schedule);
  return schedules;
}

Result<std::vector<double>> race_on_gpu(GpuPoolSubject& subject,
                                        std::span<const CompiledGpuPool> fused, int64_t rounds,
                                        const std::atomic<bool>& stop) {
  std::vector<std::vector<double>> seconds(fused.size());
  for (int64_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < fused.size(); ++i) {
      const size_t entrant = (i + static_cast<size_t>(round)) % fused.size();
      double sum = 0.0;
      for (int64_t batch = 0; batch < subject.batches(); ++batch) {
        if (stop) return Status::Failed("interrupted");
        RECMILL_ASSIGN_OR_RETURN(const double took, subject.run_fused(fused[entrant], batch));
        sum += took;
      }
      seconds[entrant].push_back(sum / static_cast<double>(subject.batches()));
    }
  }
  std::vector<double> medians;
  for (auto& of : seconds) medians.push_back(median(std::move(of)));
  return medians;
}

Result<FamilyTuning> tune_on_gpu(GpuPoolSubject& subject, const GpuTunerOptions& options,
                                 const std::function<void(double done)>& progress,
                                 const std::atomic<bool>& stop) {
  RECMILL_CHECK(!options.blocks.empty() && options.rounds > 0 && options.fused_rounds > 0);
  return GpuTuner(subject, options, progress, stop).run();
}

}  // namespace recmill::kernels::tune
