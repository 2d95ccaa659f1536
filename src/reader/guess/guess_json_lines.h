// SPDX-License-Identifier: Apache-2.0
// The columns of JSON lines, as `recmill init` finds them: by keys, and by what is under them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reader/guess/sampled_column.h"

namespace recmill::reader {

/// The columns of rows that are JSON objects, in the order of their first keys; lines that are no
/// object are passed over. Keys of an object within are columns "a.b", unless they are the ids of a
/// bag: numbers alone, under keys that change from row to row. Lists are bags. Of many columns only
/// the first rows are taken: at most `most_cells` cells, but one row at least.
std::vector<SampledColumn> columns_of_json(std::span<const std::string> lines, size_t most_cells);

}  // namespace recmill::reader
