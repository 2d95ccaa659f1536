// SPDX-License-Identifier: Apache-2.0
#include "config/old_names.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"

namespace recmill::config {
namespace {

struct OldName {
  std::string_view section, old, now;
};

constexpr std::array kOldNames{OldName{"train", "shards", "slices"}};

}  // namespace

Status take_old_names(ConfigNode& root) {
  auto* const sections = std::get_if<ConfigNode::Table>(&root.value);
  if (sections == nullptr) return {};
  for (const OldName& name : kOldNames) {
    const auto section = sections->find(std::string(name.section));
    if (section == sections->end()) continue;
    auto* const keys = std::get_if<ConfigNode::Table>(&section->second.value);
    if (keys == nullptr) continue;
    const auto found = keys->find(std::string(name.old));
    if (found == keys->end()) continue;
    const std::string prefix(std::string(name.section) + ".");
    const std::string old = prefix + std::string(name.old), now = prefix + std::string(name.now);
    const std::string place = found->second.place.text() + ": ";
    if (keys->contains(std::string(name.now)))
      return Status::BadRequest(place + old + ": is the old name of " + now +
                                ", which is given too; remove it");
    log_info(place + old + " is called " + now + " now");
    auto node = keys->extract(found);
    node.key() = name.now;
    keys->insert(std::move(node));
  }
  return {};
}

}  // namespace recmill::config
