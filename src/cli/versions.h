// SPDX-License-Identifier: Apache-2.0
// What computes and carries answers.
#pragma once

#include <string>

#include "base/json/json_fwd.h"

namespace recmill::cli {

/// Of this build: its version, commit, type and compiler; of the libraries that it has loaded:
/// their versions; and the instructions that it and they use on this machine.
Json versions();

/// The same, a line each: what ranks of one job have in common.
std::string versions_text();

}  // namespace recmill::cli
