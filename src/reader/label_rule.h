// SPDX-License-Identifier: Apache-2.0
// What a label is, in every format.
#pragma once

#include <string_view>

#include "base/status.h"

namespace recmill::reader {

/// Labels are numbers from 0 to 1, which models learn as probabilities.
class LabelRule {
 public:
  /// Makes `number` a label; false where it is none.
  bool apply(float& number) const { return number >= 0 && number <= 1; }
  /// Why `number`, which apply() does not take, is none.
  Status refusal(float number) const;
  /// The label that a cell of text, which is not missing, stands for.
  Result<float> read(std::string_view cell) const;
};

/// The error for a sample weight below 0.
Status negative_weight();

}  // namespace recmill::reader
