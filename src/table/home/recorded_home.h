// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "table/home/row_home.h"

namespace recmill::table {

/// A home that outlives the processes of a run, and keeps what they need to go on from an image.
class RecordedHome : public RowHome {
 public:
  /// Keeps bytes beside the image of `step`, which is whole, in place of an older image's: a next
  /// start of the run goes on from there. The image before is to be held until this returns. Waits
  /// for the home; on any thread.
  virtual Status record(int64_t step, std::span<const std::byte> bytes) = 0;
  /// The image, of this home, stays when the home ends in this process.
  virtual void keep(std::shared_ptr<RowSnapshot> image) = 0;
};

}  // namespace recmill::table
