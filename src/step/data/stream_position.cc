// SPDX-License-Identifier: Apache-2.0
#include "step/data/stream_position.h"

#include "base/json/json.h"
#include "base/json/json_keys.h"

namespace recmill::train {

Json reader_property(const StreamPosition& position) {
  Json property{{"epoch", position.epoch}, {"row", position.row}};
  if (position.hot_row > 0) property["hot_row"] = position.hot_row;
  return property;
}

Result<StreamPosition> read_position(const Json& properties) {
  StreamPosition position;
  RECMILL_RETURN_IF_ERROR(read_count(properties, "iteration", position.iteration));
  RECMILL_RETURN_IF_ERROR(read_count(properties, "reader/epoch", position.epoch));
  RECMILL_RETURN_IF_ERROR(read_count(properties, "reader/row", position.row));
  if (properties["reader"].contains("hot_row"))
    RECMILL_RETURN_IF_ERROR(read_count(properties, "reader/hot_row", position.hot_row));
  if (position.hot_row > position.row)
    return Status::Failed("property reader/hot_row is beyond reader/row");
  return position;
}

}  // namespace recmill::train
