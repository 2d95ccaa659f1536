// SPDX-License-Identifier: Apache-2.0
// A run's lookups as an operator of PyTorch's, in a shared library that works by itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json/json_fwd.h"
#include "base/status.h"
#include "run/resolved_run.h"

namespace recmill::train {

struct CompiledOpRequest {
  std::string name;                        // of the operator; empty: the run's
  std::vector<std::string> architectures;  // of GPUs, such as "sm_90"; none: for the CPU alone
  std::string python = "python3";          // whose PyTorch it is for
};

struct CompiledOp {
  std::string name;
  std::string library;  // in the folder of compiled code
  std::string torch;    // version
  int64_t tables = 0, features = 0;
  int64_t functions = 0, gpu_functions = 0;  // distinct ones
  int64_t compiled = 0;                      // libraries and binaries that were not there yet
  double seconds = 0.0;
};

/// Generates and compiles what is not there yet, with the schedules that the run would use, and
/// compares the library's answers with the reference's. Fails as find_torch(), choose_schedules(),
/// LibraryCache::load, CubinCache::load and check_pool_op(), and where the
/// name is no identifier.
Result<CompiledOp> compile_op(const ResolvedRun& run, const CompiledOpRequest& request,
                              Files& files);

/// A line a figure.
Json summary_of(const CompiledOp& op);

}  // namespace recmill::train
