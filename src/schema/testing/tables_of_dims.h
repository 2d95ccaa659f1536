// SPDX-License-Identifier: Apache-2.0
// A schema for tests: a summed feature on each table.
#pragma once

#include <string>
#include <vector>

#include "schema/table_spec.h"

namespace recmill {

/// dims.size() tables T0, T1, ... of `rows` rows, and the features F0, F1, ... on them.
inline ModelSpec tables_of_dims(const std::vector<int64_t>& dims, int64_t rows, int64_t num_dense) {
  ModelSpec spec;
  spec.num_dense = num_dense;
  for (size_t t = 0; t < dims.size(); ++t) {
    const std::string number = std::to_string(t);
    TableSpec table;
    table.name = "T" + number;
    table.rows = rows;
    table.dim = dims[t];
    spec.tables.push_back(table);
    FeatureSpec feature;
    feature.name = "F" + number;
    feature.table = static_cast<int>(t);
    spec.features.push_back(feature);
  }
  return spec;
}

}  // namespace recmill
