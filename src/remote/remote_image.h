// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "remote/greeting.h"
#include "remote/row_client.h"
#include "table/row_block.h"

namespace recmill::remote {

/// An image that servers have, which they keep while this lives. Touched rows are read from them,
/// a block at a time, and the others made here.
class RemoteImage final : public table::RowSnapshot {
 public:
  RemoteImage(const Greeting& greeting, int64_t step, std::shared_ptr<ImageAccess> access)
      : greeting_(greeting), step_(step), access_(std::move(access)) {}
  ~RemoteImage() override { access_->release(step_); }

  Status read(const std::function<Status(const table::RowBlock&)>& sink) override;

 private:
  Status read_table(int table, std::vector<class TouchedRows>& servers,
                    const std::function<Status(const table::RowBlock&)>& sink) const;

  const Greeting greeting_;
  const int64_t step_;
  const std::shared_ptr<ImageAccess> access_;
};

}  // namespace recmill::remote
