// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace recmill::reader {

/// A row that cannot be used, and why.
struct BadRow {
  int64_t row = -1;  // -1: none
  Status status;
};

/// The error for more bad rows in a file than data.bad_row_limit: that of the first too many, with
/// its place, after `before` others.
inline Status too_many_bad_rows(const Status& status, int64_t before, int64_t limit) {
  return Status::Failed(status.message() + " (and " + std::to_string(before) +
                        " bad rows before; data.bad_row_limit = " + std::to_string(limit) + ")");
}

}  // namespace recmill::reader
