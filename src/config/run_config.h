// SPDX-License-Identifier: Apache-2.0
// From a configuration file and --set to the options of a run, and back to text.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "config/config_node.h"
#include "run/options/run_options.h"

namespace recmill::config {

struct RunConfig {
  train::RunOptions options;
  ConfigNode source;  // to name the line of a problem that is found later

  /// `status` with file and line in front when it names a key of the configuration.
  Status locate(const Status& status) const { return config::locate(status, source); }
};

/// Reads a configuration file, the run folder that training made, or, by a bare name that is
/// neither, a workload (config/workloads.h); `sets` are "key=value". Paths are relative to the
/// current folder, or those of the file to its `base`; a run's folder is that of the run, whatever
/// the file in it says.
Result<RunConfig> load_run_config(const std::string& path, const std::vector<std::string>& sets);

/// What the run's folder keeps: the same from wherever it is opened.
std::string run_copy(const train::RunOptions& options);

/// The options of a run's config.toml, whose text is given.
Result<train::RunOptions> options_of_text(const std::string& text, const std::string& path);

/// The whole configuration as TOML: load_run_config() of it gives the same options.
std::string to_toml(const train::RunOptions& options);

}  // namespace recmill::config
