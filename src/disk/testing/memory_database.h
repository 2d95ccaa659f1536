// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "disk/row_database.h"

namespace recmill::disk::testing {

/// What a disk has; it outlives the databases that are opened on it.
struct MemoryDisk {
  std::array<std::map<std::string, std::string>, 3> spaces;   // [Space]
  int64_t writes_left = std::numeric_limits<int64_t>::max();  // then the process is as if killed
  std::mutex mutex;
};

/// A database on it. From the moment of a kill on writes fail and change nothing.
class MemoryDatabase final : public RowDatabase {
 public:
  explicit MemoryDatabase(std::shared_ptr<MemoryDisk> disk) : disk_(std::move(disk)) {}

  Status get(Space space, std::span<const std::string> keys,
             const std::function<void(size_t, std::string_view)>& found) override {
    std::lock_guard lock(disk_->mutex);
    const auto& of = at(space);
    for (size_t i = keys.size(); i-- > 0;)
      if (const auto value = of.find(keys[i]); value != of.end()) found(i, value->second);
    return {};
  }
  Result<std::vector<std::pair<std::string, std::string>>> scan(Space space,
                                                                const std::string& first,
                                                                const std::string& end,
                                                                int64_t most) override {
    std::lock_guard lock(disk_->mutex);
    std::vector<std::pair<std::string, std::string>> some;
    for (auto next = at(space).lower_bound(first);
         next != at(space).end() && next->first < end && std::ssize(some) < most; ++next)
      some.push_back(*next);
    return some;
  }
  Status write(std::span<const Change> changes, bool) override {
    std::lock_guard lock(disk_->mutex);
    if (disk_->writes_left <= 0) return Status::Failed("killed");
    --disk_->writes_left;
    for (const Change& change : changes) {
      if (change.removes)
        at(change.space).erase(change.key);
      else
        at(change.space)[change.key] = std::string(change.value);
    }
    return {};
  }
  Status clear() override {
    std::lock_guard lock(disk_->mutex);
    for (auto& space : disk_->spaces) space.clear();
    return {};
  }

 private:
  std::map<std::string, std::string>& at(Space space) {
    return disk_->spaces[static_cast<size_t>(space)];
  }
  const std::shared_ptr<MemoryDisk> disk_;
};

}  // namespace recmill::disk::testing
