// SPDX-License-Identifier: Apache-2.0
// The cursor of a source of batches, as a value that travels with each of them.
#pragma once

#include <cstdint>

#include "base/json/json_fwd.h"
#include "base/status.h"

namespace recmill::train {

/// Where the data path is: everything before it has been handed out. It belongs to the source of
/// batches; all others read `iteration` alone.
struct StreamPosition {
  int64_t iteration = 0;  // training batches handed out
  int64_t epoch = 0;
  int64_t row = 0;  // position in the epoch's order, before down-sampling
  int64_t hot_row =
      0;  // of the rows before it, those of hot batches, where these come by themselves
  bool operator==(const StreamPosition&) const = default;
};

/// What a checkpoint has of it beside the iteration: its property "reader".
Json reader_property(const StreamPosition& position);
/// Of a checkpoint's properties: "iteration" and "reader". An error names the property.
Result<StreamPosition> read_position(const Json& properties);

}  // namespace recmill::train
