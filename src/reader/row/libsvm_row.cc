// SPDX-License-Identifier: Apache-2.0
#include "reader/row/libsvm_row.h"

#include <algorithm>

namespace recmill::reader {
namespace {

constexpr std::string_view kBetween = " \t";

// Takes the next item off the front; empty: there is none.
std::string_view take_item(std::string_view& row) {
  row.remove_prefix(std::min(row.find_first_not_of(kBetween), row.size()));
  const std::string_view item = row.substr(0, row.find_first_of(kBetween));
  row.remove_prefix(item.size());
  return item;
}

Status parse_item(std::string_view item, const TextLayout& layout, RowValues& values) {
  uint64_t bag = 0;
  std::string_view rest = item;
  if (layout.libffm) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    const auto field = parse_whole(rest.substr(0, colon));
    if (colon == rest.size() || !field || field->negative) {
      return not_a(item, "field:index:value");
    }
    bag = field->magnitude;
    if (bag >= values.ids.size()) {
      return not_a(item, "of a field below data.libsvm.fields");
    }
    rest.remove_prefix(colon + 1);
  }
  const size_t colon = std::min(rest.find(':'), rest.size());
  RECMILL_ASSIGN_OR_RETURN(const uint64_t id, parse_id(IdText::integer, rest.substr(0, colon)));
  float weight = 1;
  if (colon < rest.size()) {
    RECMILL_ASSIGN_OR_RETURN(weight, parse_number(rest.substr(colon + 1)));
  }
  values.ids[bag].push_back(id);
  values.weights[bag].push_back(weight);
  return {};
}

}  // namespace

Status parse_libsvm_row(const TextLayout& layout, std::string_view row, RowValues& values) {
  for (auto& ids : values.ids) ids.clear();
  for (auto& weights : values.weights) weights.clear();
  row = row.substr(0, row.find('#'));
  const std::string_view label = take_item(row);
  if (is_no_number(label)) return Status::Failed("label: no value");
  const auto value = layout.columns[0].label.read(label);
  if (!value.ok()) return value.status().at("label");
  values.label = *value;
  for (std::string_view item = take_item(row); !item.empty(); item = take_item(row)) {
    RECMILL_RETURN_IF_ERROR(parse_item(item, layout, values));
  }
  return {};
}

}  // namespace recmill::reader
