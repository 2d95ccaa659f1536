// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "remote/greeting.h"
#include "remote/row_client.h"
#include "table/home/part_writing_image.h"
#include "table/row_block.h"

namespace recmill::remote {

/// An image that servers have, which they keep while this lives. Touched rows are read from them,
/// a block at a time, and the others made here.
class RemoteImage final : public table::RowSnapshot, public table::PartWritingImage {
 public:
  RemoteImage(const RowClientOptions& options, int64_t step)
      : greeting_(options.greeting),
        share_(options.image_share),
        shares_(options.image_shares),
        step_(step),
        access_(options.images) {}
  ~RemoteImage() override { access_->release(step_); }

  Status read(const std::function<Status(const table::RowBlock&)>& sink) override {
    return read_tables(sink, /*all=*/true);
  }
  bool knows_touched() const override { return true; }
  Status read_touched(const std::function<Status(const table::RowBlock&)>& sink) override {
    return read_tables(sink, /*all=*/false);
  }
  bool may_write_below(const std::string& folder) const override {
    return access_->may_write_below(folder);
  }
  /// This rank asks the servers that it would read.
  Result<std::vector<std::string>> write_parts(const std::string& folder, int first) override;

 private:
  Status read_tables(const std::function<Status(const table::RowBlock&)>& sink, bool all) const;
  Status read_table(int table, std::vector<class TouchedRows>& servers,
                    const std::function<Status(const table::RowBlock&)>& sink, bool all) const;

  const Greeting greeting_;
  const int share_, shares_;
  const int64_t step_;
  const std::shared_ptr<ImageAccess> access_;
};

}  // namespace recmill::remote
