// SPDX-License-Identifier: Apache-2.0
#include "bench/placed/small_shape.h"

#include <algorithm>

namespace recmill::bench {

FrozenShape small_shape(const std::string& name, int64_t dim, int64_t most_rows) {
  FrozenShape shape = *frozen_shape(name);
  shape.name += "_250k";
  if (dim > 0) shape.dim = dim;
  for (int64_t& rows : shape.rows) rows = std::min(rows, most_rows);
  return shape;
}

ModelSpec small_model(const FrozenShape& shape) {
  ModelSpec model = shape.spec();
  for (TableSpec& table : model.tables) table.optimizer.kind = OptimizerKind::rowwise_adagrad;
  return model;
}

}  // namespace recmill::bench
