// SPDX-License-Identifier: Apache-2.0
// What ranks spent their time and memory on, as text and as sections of a page.
#pragma once

#include <string>

#include "base/json/json_fwd.h"

namespace recmill::cli {

/// A line a rank and stage: seconds, share, waiting for others, bytes sent and received; and a line
/// a rank: the most memory of its process (which ranks that are threads have in common), its rows,
/// and what lies between; with a cache a line a rank of the rows that it moved. `profile` is what
/// train::run_training() puts into a summary.
std::string profile_text(const Json& profile);

/// Sections of a page. A function of its arguments.
///   A step: what the steady steps that the profile holds took, by stage, on average.
///   The same steps beside each other on every rank, over time, what waits drawn pale.
///   Stages, memory and moved rows of the whole run: the figures of profile_text().
std::string profile_sections(const Json& profile);

}  // namespace recmill::cli
