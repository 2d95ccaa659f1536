// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/kernels/kernels_bench.h"

#include <algorithm>
#include <numeric>

#include "cli/bench/kernels/forward_cases.h"
#include "cli/bench/kernels/generated_cases.h"
#include "cli/bench/kernels/gpu_cases.h"
#include "cli/bench/kernels/mlp_cases.h"
#include "cli/bench/kernels/mutation_cases.h"
#include "cli/bench/kernels/static_cases.h"
#include "cli/bench/kernels/train_cases.h"
#include "cli/bench/kernels/tuning_cases.h"
#include "cli/run_config.h"

namespace recmill::cli {
namespace {

/// What is timed on a workload, by the suffix of a case's name.
using KernelsCase = Status (*)(const std::string& name, const train::ResolvedRun& run,
                               const BenchOptions& options, const BenchSink& sink);
/// Not suffixes, but cases with a workload of their own.
constexpr const char *kPlanted = "planted_llc", *kPlantedBags = "planted_llc_bags",
                     *kEmpty = "empty_features";

/// Of a workload's name: a tenth of its features.
constexpr const char* kTenth = "_tenth";
/// Of a batch on the emulator, which is slow: the median of RecFlex's.
constexpr int64_t kEmulatedSamples = 256;
/// Of a case's name: schedules that sum in another order than the contract's may win.
constexpr const char* kAnyOrder = "_gpu_any_order";

/// Of each line a tenth of its features, one at least, of each of its dimensions as near to a tenth
/// as that allows.
train::WorkloadOptions tenth_of(train::WorkloadOptions workload) {
  for (train::WorkloadLine& line : workload.lines) {
    line.count = std::max<int64_t>(1, line.count / 10);
    int64_t before = 0, kept = 0;
    const int64_t all = std::accumulate(line.dim_counts.begin(), line.dim_counts.end(), int64_t{0});
    for (int64_t& count : line.dim_counts) {
      before += count;
      count = before * line.count / all - kept;
      kept += count;
    }
  }
  return workload;
}

struct NamedCase {
  const char* suffix;
  KernelsCase run;
};
constexpr NamedCase kCases[] = {{"_fwd", run_forward_case},
                                {"_train", run_train_case},
                                {"_static", run_static_case},
                                {"_static_2560", run_large_batch_case},
                                {"_static_heavy", run_heavy_feature_case},
                                {"_mlp", run_mlp_case},
                                {"_mutation", run_mutation_case},
                                {"_oracle", run_oracle_case},
                                {"_schedules", run_schedules_case},
                                {"_generated", run_generated_case},
                                {"_separate", run_separate_case},
                                {"_tuning", run_tuning_case},
                                {"_gpu", run_gpu_case},
                                {kAnyOrder, run_gpu_case},
                                {kPlanted, run_separate_case},
                                {kPlantedBags, run_separate_case},
                                {kEmpty, run_empty_case}};

struct CaseGroup {
  int64_t figure;  // of RecFlex; 0: of none
  bool quick;      // run by --quick too
  std::vector<const char*> workloads;
  const char* suffix;
};

std::vector<CaseGroup> groups() {
  return {
      {9, true, {"recflex_b", "recflex_d", "recflex_e"}, "_fwd"},
      {9, false, {"recflex_a", "recflex_c", "recflex_f", "mlperf_dlrm"}, "_fwd"},
      {0, true, {"recflex_e"}, "_train"},
      {0, false, {"recflex_a", "recflex_b", "recflex_c", "recflex_d"}, "_train"},
      {0,
       false,
       {"recflex_a", "recflex_b", "recflex_c", "recflex_d", "recflex_e", "recflex_f"},
       "_tuning"},
      {3, false, {"recflex_e"}, "_schedules"},
      {10, false, {"recflex_a", "recflex_b", "recflex_c", "recflex_d", "recflex_e"}, "_mlp"},
      {11, false, {"recflex_a", "recflex_b", "recflex_c", "recflex_d", "recflex_e"}, "_separate"},
      {11, false, {""}, kPlanted},
      {11, false, {""}, kPlantedBags},
      {0, true, {""}, kEmpty},
      {0, false, {"recflex_a", "recflex_e"}, "_generated"},
      {12, false, {"recflex_a"}, "_mutation"},
      {12, false, {"recflex_a"}, "_oracle"},
      {13, false, {"recflex_a", "recflex_b", "recflex_c", "recflex_d", "recflex_e"}, "_static"},
      {13,
       false,
       {"recflex_a", "recflex_b", "recflex_c", "recflex_d", "recflex_e"},
       "_static_2560"},
      {13,
       false,
       {"recflex_a", "recflex_b", "recflex_c", "recflex_d", "recflex_e"},
       "_static_heavy"},
  };
}

Status run_case(const std::string& name, const BenchOptions& options, const BenchSink& sink) {
  for (const NamedCase& known : kCases) {
    if (!name.ends_with(known.suffix)) continue;
    std::string workload = name.substr(0, name.size() - std::string(known.suffix).size());
    const bool tenth = workload.ends_with(kTenth);
    if (tenth) workload.resize(workload.size() - std::string(kTenth).size());
    RECMILL_ASSIGN_OR_RETURN(const RunConfig config,
                             load_run_config(workload.empty() ? "recflex_e" : workload, {}));
    train::RunOptions settings = config.options;
    if (name == kPlanted) settings = planted_llc(settings);
    if (name == kPlantedBags) settings = planted_llc_bags(settings);
    if (name == kEmpty) settings = empty_features(settings);
    if (tenth) settings.workload = tenth_of(settings.workload);
    settings.device = options.device;
    if (name.ends_with(kAnyOrder)) settings.train.deterministic = false;
    if (options.device == DeviceKind::emulated) settings.tune.batch_sizes = {kEmulatedSamples};
    settings.train.threads = options.threads;
    const auto run = train::resolve_run(settings, posix_files());
    if (!run.ok()) return config.locate(run.status());
    return known.run(name, *run, options, sink);
  }
  return Status::BadRequest("bench kernels: no case '" + name + "'");
}

}  // namespace

std::vector<std::string> kernels_cases(int64_t figure, bool quick) {
  std::vector<std::string> cases;
  for (const CaseGroup& group : groups()) {
    if ((figure != 0 && figure != group.figure) || (quick && !group.quick)) continue;
    for (const char* workload : group.workloads)
      cases.push_back(workload + std::string(group.suffix));
  }
  return cases;
}

std::vector<std::string> gpu_kernels_cases() {
  return {"recflex_a_tenth_gpu", "recflex_d_gpu"};
}

Status run_kernels_bench(const BenchOptions& options, const BenchSink& sink) {
  const bool on_gpu = options.device != DeviceKind::cpu;
  const auto cases = !options.cases.empty() ? options.cases
                     : on_gpu               ? gpu_kernels_cases()
                                            : kernels_cases(options.figure, options.quick);
  for (const std::string& name : cases) RECMILL_RETURN_IF_ERROR(run_case(name, options, sink));
  return {};
}

}  // namespace recmill::cli
