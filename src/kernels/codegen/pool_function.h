// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "kernels/schedule/schedule.h"
#include "schema/table_spec.h"

namespace recmill::kernels::codegen {

/// What one generated function is made for.
struct PoolFunction {
  Schedule schedule;
  int64_t dim = 0;
  int64_t row_bytes = 0;  // from row to row
  RowPrecision precision = RowPrecision::float32;
  Pooling pooling = Pooling::sum;
  bool weighted = false;
  int64_t scratch_bytes = 0;  // of a schedule that is called by pointer
  bool two_memories = false;  // on a GPU: some rows are near, others far (kernels/near_rows)
  bool operator==(const PoolFunction&) const = default;

  /// "bags fetch=64 held=8 store=0 stage=0: sum of 8 float32 every 32 bytes"; behind that, where it
  /// is so, " in two memories".
  std::string name() const;
};

}  // namespace recmill::kernels::codegen
