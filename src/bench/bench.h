// SPDX-License-Identifier: Apache-2.0
// Benchmarks: each checks its answer, then times itself against a rival in the same run, and
// reports one JSON object a line.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json/json_fwd.h"
#include "base/status.h"
#include "bench/alternation.h"
#include "comm/world.h"
#include "schema/device_kind.h"

namespace recmill::bench {

struct BenchOptions {
  std::vector<std::string> cases;  // names; empty: all of the benchmark
  int64_t threads = 2;             // of the cases that do not say otherwise
  int64_t pairs = 7;               // timed repetitions of each side
  bool quick = false;  // kernels: short tuning, few batches and cases, four minutes in all;
                       // placement: fewer lookups; cost_model: small tables and batches
  DeviceKind device = DeviceKind::cpu;  // cached, embedding, kernels, train
  double scale = 0;  // of what runs on a GPU; 0: as large as its case says, on the emulator smaller
  int64_t figure = 0;         // kernels: the cases of this figure of RecFlex; 0: of all
  double solver_seconds = 0;  // placement: of a case that solves; 0: as the case says
  bool rivals = true;         // false: only ours
  std::string python = ".venv-rivals/bin/python";
  std::string scripts = "bench/rivals";  // folder of the rivals' scripts
  std::string commit = "unknown";        // of this build
  World* world = nullptr;                // of the processes that were started; it outlives the run

  bool wants(const std::string& name) const;
};

/// One line. Ratios are of medians, and above 1 ours is better whatever the unit.
struct BenchLine {
  std::string bench;
  std::string name;    // of the case
  std::string metric;  // "time_per_batch"
  double value = 0.0;  // ours
  std::string unit;    // "ms"
  std::string rival;   // empty: none
  Ratio ratio;
  double limit = 0.0;       // the physical bound, or what a summary is held to, in `unit`; 0: none
  double of_limit = 0.0;    // our share of it
  std::string device = {};  // the GPU that it ran on; empty: the CPU
  double foreign_load = 0.0;  // reported when the machine was not quiet
  // machine.h, the median over our repetitions; 0: not measured
  double core_to_core_ns = 0.0;
};
Json to_json(const BenchLine& line, const BenchOptions& options);

using BenchSink = std::function<void(const BenchLine&)>;

/// A benchmark runs its cases, those that options.wants(), and hands each line to `sink`.
using Bench = std::function<Status(const BenchOptions& options, const BenchSink& sink)>;

/// "embedding, reader": all that run_bench() knows.
std::string bench_names();

/// Runs the benchmark called `name`.
Status run_bench(const std::string& name, const BenchOptions& options, const BenchSink& sink);

}  // namespace recmill::bench
