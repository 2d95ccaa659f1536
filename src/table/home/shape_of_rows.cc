// SPDX-License-Identifier: Apache-2.0
#include "table/home/shape_of_rows.h"

#include "base/json/json.h"

namespace recmill::table {

Json shape_of_rows(const TableSpec& table) {
  return {{"name", table.name},
          {"rows", table.rows},
          {"dim", table.dim},
          {"precision", name_of(table.precision)},
          {"optimizer", name_of(table.optimizer.kind)},
          {"correction", name_of(table.optimizer.correction)},
          {"initial_accumulator", table.optimizer.initial_accumulator},
          {"initial_scale", table.initial_scale},
          {"frozen", table.frozen}};
}

}  // namespace recmill::table
