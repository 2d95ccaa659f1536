// SPDX-License-Identifier: Apache-2.0
#include "bench/kernels/gpu/gpu_kernels_bench.h"

#include <algorithm>
#include <numeric>

#include "bench/kernels/gpu/gpu_cases.h"
#include "config/run_config.h"

namespace recmill::bench {
namespace {

/// Of a workload's name: a tenth of its features.
constexpr const char* kTenth = "_tenth";
/// Of a batch on the emulator, which is slow: the median of RecFlex's.
constexpr int64_t kEmulatedSamples = 256;
constexpr const char *kOnGpu = "_gpu", *kAnyOrder = "_gpu_any_order", *kMappings = "_gpu_static";

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

/// Takes the suffix off, if it is there.
bool take_off(const char* suffix, std::string& name) {
  if (!name.ends_with(suffix)) return false;
  name.resize(name.size() - std::string(suffix).size());
  return true;
}

Status run_case(const std::string& name, const BenchOptions& options, const BenchSink& sink) {
  std::string workload = name;
  const bool in_any_order = take_off(kAnyOrder, workload);
  const bool of_mappings = take_off(kMappings, workload);
  if (!in_any_order && !of_mappings && !take_off(kOnGpu, workload))
    return Status::BadRequest("bench kernels: no case '" + name + "' on a GPU");
  const bool tenth = take_off(kTenth, workload);
  RECMILL_ASSIGN_OR_RETURN(const config::RunConfig config, config::load_run_config(workload, {}));
  train::RunOptions settings = config.options;
  if (tenth) settings.workload = tenth_of(settings.workload);
  settings.device = options.device;
  if (in_any_order) settings.train.deterministic = false;
  if (options.device == DeviceKind::emulated) settings.tune.batch_sizes = {kEmulatedSamples};
  settings.train.threads = options.threads;
  const auto run = train::resolve_run(settings, posix_files());
  if (!run.ok()) return config.locate(run.status());
  return of_mappings ? run_gpu_mapping_case(name, *run, options, sink)
                     : run_gpu_case(name, *run, options, sink);
}

}  // namespace

bool is_gpu_case(const std::string& name) {
  return name.ends_with(kOnGpu) || name.ends_with(kAnyOrder) || name.ends_with(kMappings);
}

Status run_gpu_kernels_bench(const BenchOptions& options, const BenchSink& sink) {
  if (options.figure != 0 || options.quick)
    return Status::BadRequest(std::string(options.quick ? "--quick" : "--figure") +
                              ": needs bench kernels --device cpu");
  std::vector<std::string> cases = options.cases;
  if (cases.empty()) cases = {"recflex_d_gpu", "recflex_d_gpu_static", "recflex_a_tenth_gpu"};
  Status failed;  // the first that did; those after it run all the same
  for (const std::string& name : cases) {
    const Status status = run_case(name, options, sink);
    if (failed.ok()) failed = status;
  }
  return failed;
}

Status refuse_gpu_case(const std::string& name) {
  return Status::BadRequest("bench kernels: case '" + name + "' needs --device cuda or emulated");
}

}  // namespace recmill::bench
