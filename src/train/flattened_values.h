// SPDX-License-Identifier: Apache-2.0
// What operations on dense columns made one value of: told, as a model cannot learn from it.
#pragma once

#include <string>
#include <vector>

#include "base/json/json_fwd.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "run/rank.h"

namespace recmill::train {

/// A list of {"column", "op", "values", "below", "low", "above", "high"}, over the rows that this
/// part of the run trained, of all ranks: so many values, not missing, came to the op, and so many
/// of them were below `low`, or above `high`; without what there was none of. Collective.
Result<Json> flattened_values(const ResolvedRun& run, const Rank& rank, Communicator& communicator);

/// The same in lines: "log: 48 % of d, 3 % of e are below 0 and become 0".
std::vector<std::string> flattened_lines(const Json& flattened);

}  // namespace recmill::train
