// SPDX-License-Identifier: Apache-2.0
#include "step/data/stream_position.h"

#include "base/json/json.h"
#include "base/json/json_keys.h"

namespace recmill::train {

Json reader_property(const StreamPosition& position) {
  return {{"epoch", position.epoch}, {"row", position.row}};
}

Result<StreamPosition> read_position(const Json& properties) {
  StreamPosition position;
  RECMILL_RETURN_IF_ERROR(read_count(properties, "iteration", position.iteration));
  RECMILL_RETURN_IF_ERROR(read_count(properties, "reader/epoch", position.epoch));
  RECMILL_RETURN_IF_ERROR(read_count(properties, "reader/row", position.row));
  return position;
}

}  // namespace recmill::train
