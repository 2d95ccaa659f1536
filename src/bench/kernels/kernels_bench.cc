// SPDX-License-Identifier: Apache-2.0
#include "bench/kernels/kernels_bench.h"

#include <algorithm>

#include "bench/kernels/gpu/gpu_kernels_bench.h"
#include "bench/kernels/kernels_cases.h"
#include "bench/kernels/static_cases.h"
#include "config/run_config.h"

namespace recmill::bench {
namespace {

/// What is timed on a workload, by the suffix of a case's name.
using KernelsCase = Status (*)(const std::string& name, const train::ResolvedRun& run,
                               const BenchOptions& options, const BenchSink& sink);
/// Not suffixes, but cases with a workload of their own.
constexpr const char *kPlanted = "planted_llc", *kPlantedBags = "planted_llc_bags",
                     *kEmpty = "empty_features";

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
    const std::string workload = name.substr(0, name.size() - std::string(known.suffix).size());
    RECMILL_ASSIGN_OR_RETURN(
        const config::RunConfig config,
        config::load_run_config(workload.empty() ? "recflex_e" : workload, {}));
    train::RunOptions settings = config.options;
    if (name == kPlanted) settings = planted_llc(settings);
    if (name == kPlantedBags) settings = planted_llc_bags(settings);
    if (name == kEmpty) settings = empty_features(settings);
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

Status run_kernels_bench(const BenchOptions& options, const BenchSink& sink) {
  if (options.device != DeviceKind::cpu) return run_gpu_kernels_bench(options, sink);
  const auto cases =
      !options.cases.empty() ? options.cases : kernels_cases(options.figure, options.quick);
  for (const std::string& name : cases)
    RECMILL_RETURN_IF_ERROR(is_gpu_case(name) ? refuse_gpu_case(name)
                                              : run_case(name, options, sink));
  return {};
}

}  // namespace recmill::bench
