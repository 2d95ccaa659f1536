// SPDX-License-Identifier: Apache-2.0
// What ranks spent their time and memory on, as text and as a page with a timeline.
#pragma once

#include <string>

#include "base/json_lines.h"

namespace recmill::cli {

/// A line a rank and stage: seconds, share, waiting for others, bytes sent and received; and a line
/// a rank: the most memory of its process (which ranks that are threads have in common), its rows,
/// and what lies between. `profile` is what train::run_training() puts into a summary.
std::string profile_text(const Json& profile);

/// One HTML page: the same figures, and the last iterations of every rank side by side, what waits
/// drawn pale. A function of its arguments.
std::string profile_page(const std::string& name, const Json& profile);

}  // namespace recmill::cli
