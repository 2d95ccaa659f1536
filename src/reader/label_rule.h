// SPDX-License-Identifier: Apache-2.0
// What a label is, in every format.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "reader/data_options.h"
#include "reader/row/named_values.h"

namespace recmill::reader {

/// Labels are numbers from 0 to 1, which models learn as probabilities; or data.label says which
/// values are 1, and the others are 0. Numbers are compared as float32, as which they are read.
class LabelRule {
 public:
  LabelRule() = default;  // labels are numbers from 0 to 1
  /// Fails where the options do not go together.
  static Result<LabelRule> make(const LabelOptions& options);

  /// Makes `number` a label; false where it is none, as NaN is not.
  bool apply(float& number) const {
    if (has_rule_) {
      if (number != number) return false;
      number = is_positive(number) ? 1 : 0;
    }
    return number >= 0 && number <= 1;
  }
  /// Why `number`, which apply() does not take, is none.
  Status refusal(float number) const;
  /// The label that a cell of text, which is not missing, stands for.
  Result<float> read(std::string_view cell) const;
  /// Whether words may be labels.
  bool takes_words() const { return !positive_.empty(); }
  /// Text that differs wherever other labels would be read.
  std::string fingerprint() const;

 private:
  bool is_positive(float number) const {
    return threshold_ ? number >= *threshold_ : positive_.has_number(number);
  }

  LabelOptions options_;
  bool has_rule_ = false;
  NamedValues positive_;
  std::optional<float> threshold_;
};

/// The error for a sample weight below 0.
Status negative_weight();

}  // namespace recmill::reader
