// SPDX-License-Identifier: Apache-2.0
#include "reader/label_rule.h"

#include <fmt/format.h>

#include "base/key_text.h"

namespace recmill::reader {

Result<LabelRule> LabelRule::make(const LabelOptions& options) {
  if (options.threshold && !options.positive.empty()) {
    return Status::BadRequest(
        "data.label: threshold and positive both say which labels are 1; give one of them");
  }
  LabelRule rule;
  rule.options_ = options;
  rule.positive_ = NamedValues(options.positive);
  if (options.threshold) rule.threshold_ = static_cast<float>(*options.threshold);
  rule.has_rule_ = rule.threshold_.has_value() || !rule.positive_.empty();
  return rule;
}

Status LabelRule::refusal(float number) const {
  return Status::Failed(fmt::format(
      "{} is not a label: it lies outside [0, 1]; data.label.threshold or .positive says "
      "which labels are 1",
      number));
}

Result<float> LabelRule::read(std::string_view cell) const {
  if (positive_.has_text(cell)) return 1.0f;
  auto number = parse_number(cell);
  if (!number.ok() && takes_words()) return 0.0f;
  if (number.ok() && !apply(*number)) return refusal(*number);
  return number;
}

std::string LabelRule::fingerprint() const {
  KeyText key;
  key.add_all(options_.positive).add(options_.threshold.has_value());
  return key.add(options_.threshold.value_or(0)).text();
}

Status negative_weight() {
  return Status::Failed("a sample weight below 0");
}

}  // namespace recmill::reader
