// SPDX-License-Identifier: Apache-2.0
// The one list of benchmarks.
#include "bench/benches.h"

#include <map>

#include "base/log.h"
#include "bench/bench.h"
#include "bench/kernels/kernels_bench.h"

namespace recmill::bench {

namespace {

/// What benchmarks were called before.
const std::map<std::string, std::string> kOldNames{{"rater", "cost_model"}};

const std::map<std::string, Bench>& benches() {
  static const std::map<std::string, Bench> all{
      {"cached", run_cached_bench},       {"comm", run_comm_bench},
      {"embedding", run_embedding_bench}, {"kernels", run_kernels_bench},
      {"oracle", run_oracle_bench},       {"placed", run_placed_bench},
      {"placement", run_placement_bench}, {"cost_model", run_cost_model_bench},
      {"reader", run_reader_bench},       {"reduce", run_reduce_bench},
      {"scaling", run_scaling_bench},     {"server", run_server_bench},
      {"train", run_train_bench}};
  return all;
}

}  // namespace

std::string bench_names() {
  std::string names;
  for (const auto& [name, bench] : benches()) names += (names.empty() ? "" : ", ") + name;
  return names;
}

Status run_bench(const std::string& given, const BenchOptions& options, const BenchSink& sink) {
  const auto old = kOldNames.find(given);
  if (old != kOldNames.end()) log_info("bench " + given + " is called " + old->second + " now");
  const std::string& name = old == kOldNames.end() ? given : old->second;
  const auto found = benches().find(name);
  if (found == benches().end()) {
    return Status::BadRequest("no benchmark '" + name + "'; there are: " + bench_names());
  }
  if (options.device != DeviceKind::cpu && name != "cached" && name != "embedding" &&
      name != "kernels" && name != "train")
    return Status::BadRequest("--device " + std::string(name_of(options.device)) + ": benchmark '" +
                              name + "' runs on the CPU alone");
  return found->second(options, sink);
}

}  // namespace recmill::bench
