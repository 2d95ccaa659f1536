// SPDX-License-Identifier: Apache-2.0
#include "reader/label_rule.h"

#include <fmt/format.h>

#include "reader/number_text.h"

namespace recmill::reader {

Status LabelRule::refusal(float number) const {
  return Status::Failed(fmt::format("{} is no label: it lies outside [0, 1]", number));
}

Result<float> LabelRule::read(std::string_view cell) const {
  RECMILL_ASSIGN_OR_RETURN(float number, parse_number(cell));
  if (!apply(number)) return refusal(number);
  return number;
}

Status negative_weight() {
  return Status::Failed("a sample weight below 0");
}

}  // namespace recmill::reader
