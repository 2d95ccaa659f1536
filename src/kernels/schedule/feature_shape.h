// SPDX-License-Identifier: Apache-2.0
// What a schedule is chosen by: a feature's table and how its bags are.
#pragma once

#include <cstdint>

#include "schema/table_spec.h"

namespace recmill::kernels {

/// The bags of one feature over the batches that were looked at.
struct BagStats {
  double mean = 1.0;         // lookups of a sample, empty bags counted
  double deviation = 0.0;    // of the lookups of a sample
  double empty_share = 0.0;  // samples without a lookup
  int64_t longest = 1;       // lookups of a sample
  bool one_each() const { return longest == 1 && empty_share == 0.0; }
  bool operator==(const BagStats&) const = default;
};

struct FeatureShape {
  int64_t rows = 0;  // of the table
  int64_t dim = 0;
  RowPrecision precision = RowPrecision::float32;
  Pooling pooling = Pooling::sum;
  bool weighted = false;
  BagStats bags;
  bool operator==(const FeatureShape&) const = default;
};

}  // namespace recmill::kernels
