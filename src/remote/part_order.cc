// SPDX-License-Identifier: Apache-2.0
#include "remote/part_order.h"

#include <algorithm>
#include <filesystem>

#include "base/json/json.h"
#include "base/json/json_keys.h"

namespace recmill::remote {

Bytes write_part_order(const PartOrder& order) {
  return Bytes::text(Json{{"folder", order.folder}, {"part", order.number}}.dump());
}

Result<PartOrder> read_part_order(const Bytes& body) {
  const Json json = Json::parse(body.text(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Status::Failed("a part to be written is not a JSON object");
  KeyReader read{json, "a part to be written", "", {}};
  PartOrder order;
  int64_t number = 0;
  read("folder", order.folder);
  read("part", number);
  RECMILL_RETURN_IF_ERROR(read.status);
  constexpr int64_t kMostParts = 1 << 20;
  if (number < 0 || number > kMostParts)
    return Status::Failed("a part to be written: number " + std::to_string(number));
  order.number = static_cast<int>(number);
  return order;
}

bool is_below(const std::string& root, const std::string& folder) {
  if (root.empty() || folder.empty()) return false;
  const auto above = std::filesystem::path(root).lexically_normal();
  const auto below = std::filesystem::path(folder).lexically_normal();
  if (!above.is_absolute() || !below.is_absolute()) return false;
  auto [end, at] = std::mismatch(above.begin(), above.end(), below.begin(), below.end());
  if (end != above.end() && end->empty()) ++end;  // behind a last slash
  return end == above.end() && at != below.end() && !at->empty();
}

}  // namespace recmill::remote
