// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace recmill::table {

/// How a formula names its columns.
struct StateName {
  const char* name;
  bool from_accumulator;  // starts at RowOptimizerOptions::initial_accumulator, else at 0
};

}  // namespace recmill::table
