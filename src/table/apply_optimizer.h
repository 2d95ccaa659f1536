// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/row_update/apply_rows.h"
#include "schema/table_spec.h"
#include "table/optimizers/row_step.h"

namespace recmill::table {

/// kernels/row_update/apply_rows.h with the formula of the options and their L2, on the best
/// instruction set.
void apply_optimizer(const RowOptimizerOptions& options, const RowStep& step,
                     const kernels::ApplyRange& range);

}  // namespace recmill::table
