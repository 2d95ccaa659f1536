// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/status.h"
#include "table/home/part_writing_image.h"
#include "table/row_block.h"

namespace recmill::table {

/// A share of an image (RowHome::cut()), or the reason why there is none.
class ImageSnapshot final : public RowSnapshot {
 public:
  explicit ImageSnapshot(Result<std::shared_ptr<RowSnapshot>> image) : image_(std::move(image)) {}
  Status read(const std::function<Status(const RowBlock&)>& sink) override {
    return image_.ok() ? (*image_)->read(sink) : image_.status();
  }
  bool knows_touched() const override { return image_.ok() && (*image_)->knows_touched(); }
  Status read_touched(const std::function<Status(const RowBlock&)>& sink) override {
    return image_.ok() ? (*image_)->read_touched(sink) : image_.status();
  }

  /// Null: its rows are to be read.
  PartWritingImage* part_writing_image() const {
    return image_.ok() ? dynamic_cast<PartWritingImage*>(image_->get()) : nullptr;
  }

 private:
  const Result<std::shared_ptr<RowSnapshot>> image_;
};

}  // namespace recmill::table
