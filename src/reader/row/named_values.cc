// SPDX-License-Identifier: Apache-2.0
#include "reader/row/named_values.h"

namespace recmill::reader {

NamedValues::NamedValues(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    Value& value = values_.emplace_back();
    value.text = text;
    value.number = parse_double(text);
    value.whole = parse_whole(text);
    if (const auto time = parse_time(text); time.ok()) value.time = *time;
  }
}

bool NamedValues::has_text(std::string_view text) const {
  return has([text](const Value& value) { return value.text == text; });
}

bool NamedValues::has_time(int64_t seconds) const {
  return has([seconds](const Value& value) { return value.time == seconds; });
}

bool NamedValues::has_number_in(std::string_view cell) const {
  if (empty()) return false;
  const auto number = parse_double(cell);
  return has_text(cell) || (number.has_value() && has_number(*number));
}

bool NamedValues::has_whole_in(std::string_view cell) const {
  if (empty()) return false;
  const auto whole = parse_whole(cell);
  return has_text(cell) ||
         (whole.has_value() && has([&](const Value& value) { return value.whole == whole; }));
}

}  // namespace recmill::reader
