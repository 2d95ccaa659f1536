// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace recmill::table {

/// An image of rows that are elsewhere, where they can become parts of a checkpoint without coming
/// here.
class PartWritingImage {
 public:
  virtual ~PartWritingImage() = default;
  /// Whether all who have rows of it may write below this folder, which is absolute.
  virtual bool may_write_below(const std::string& folder) const = 0;
  /// In place of RowSnapshot::read_touched(): has what that would hand out written into parts of a
  /// checkpoint in `folder`, whose numbers begin at `first` for the first one of all who have rows.
  /// Gives of each part what checkpoint::encode() says of it. Waits; on any thread.
  virtual Result<std::vector<std::string>> write_parts(const std::string& folder, int first) = 0;
};

}  // namespace recmill::table
