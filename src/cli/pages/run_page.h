// SPDX-License-Identifier: Apache-2.0
// `recmill train --html`: a run on one page.
#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"

namespace recmill::cli {

struct RunPage {
  std::string name;
  Json summary;               // with its "profile"
  std::vector<Json> metrics;  // the lines of metrics.jsonl
  std::string config;         // TOML, as resolved
};

/// Figures, curves of the metrics, a steady step and where its time goes, the whole run's stages
/// and memory, the configuration. A function of its argument.
std::string run_page(const RunPage& run);

}  // namespace recmill::cli
