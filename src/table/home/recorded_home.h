// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "table/home/row_home.h"

namespace recmill::table {

/// What room a home has left for what ranks put.
enum class HomeRoom {
  enough,
  scarce,  // a commit would free what the image before keeps
  none,    // ... and what comes meanwhile may not fit: ranks wait for it
};

/// A home that outlives the processes of a run, and keeps what they need to go on from an image.
class RecordedHome : public RowHome {
 public:
  /// Keeps bytes beside the image of `step`, which is whole, in place of an older image's: a next
  /// start of the run goes on from there. The image before is to be held until this returns. Waits
  /// for the home; on any thread.
  virtual Status record(int64_t step, std::span<const std::byte> bytes) = 0;
  /// The image, of this home, stays when the home ends in this process.
  virtual void keep(std::shared_ptr<RowSnapshot> image) = 0;
  /// As it said last. On any thread.
  virtual HomeRoom room() const { return HomeRoom::enough; }
};

}  // namespace recmill::table
