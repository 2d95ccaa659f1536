// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "config/config_node.h"

namespace recmill::config {

/// Gives keys of `root` that have another name since the last minor version their present name, and
/// says so in a line each (docs/COMPATIBILITY.md). A bad request where both names are there.
Status take_old_names(ConfigNode& root);

}  // namespace recmill::config
