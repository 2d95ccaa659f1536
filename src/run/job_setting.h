// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>

#include "base/files.h"
#include "comm/world.h"
#include "run/folder/progress.h"
#include "run/folder/run_folder.h"
#include "run/options/run_options.h"

namespace recmill::train {

/// What ranks of a job have in common beside the data.
struct JobIdentity {
  std::string build;   // what computes and carries answers: name and version, a line each
  std::string config;  // the configuration as resolved
};

/// What a job is given besides its options.
struct JobSetting {
  Files& files;
  World& world;
  std::string commit;  // of this build, for the summary
  JobIdentity identity;
  Progress::Style progress = Progress::Style::silent;
  const std::atomic<bool>* interrupted =
      nullptr;                         // becomes true: finish the iteration, save, leave
  std::string config = {};             // for the run's folder; empty: that of the identity
  ReadOptions read_options = nullptr;  // of runs whose checkpoints do not say all themselves
};

}  // namespace recmill::train
