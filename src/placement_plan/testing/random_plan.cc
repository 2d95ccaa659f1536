// SPDX-License-Identifier: Apache-2.0
#include "placement_plan/testing/random_plan.h"

#include <algorithm>
#include <utility>

#include "base/random.h"

namespace recmill::testing {
namespace {

class PlanMaker {
 public:
  PlanMaker(int devices, uint64_t seed) : devices_(devices), random_(seed, Purpose::test, 7) {
    plan_ = {"random", devices, {}, {}};
    idle_ = devices < 3 ? -1 : static_cast<int>(draw(devices));
    for (int i = 0; i < 12; ++i) paths_.push_back(plan_.path(random_path()));
  }

  void add(const TableSpec& spec) {
    TablePlacement table{spec.name, spec.rows, spec.dim, {}, {}, {}, {}};
    const int64_t groups = (spec.dim + 15) / 16;
    const auto pieces = static_cast<int>(std::min<int64_t>(groups, busy()));
    if (pieces > 1 && draw(4) == 0) {
      for (int device = 0; device < devices_; ++device)
        if (device != idle_) table.column_devices.push_back(device);
      for (size_t i = table.column_devices.size() - 1; i > 0; --i)
        std::swap(table.column_devices[i], table.column_devices[draw(i + 1)]);
      table.column_devices.resize(1 + draw(pieces));
    } else {
      add_rows(table);
    }
    plan_.tables.push_back(std::move(table));
  }

  PlacementPlan finish() { return std::move(plan_); }

 private:
  uint64_t draw(uint64_t below) { return random_.below(below, draws_++, 0); }
  int busy() const { return devices_ - (idle_ >= 0 ? 1 : 0); }

  int random_device() {
    const int device = static_cast<int>(draw(devices_));
    return device == idle_ ? (device + 1) % devices_ : device;
  }

  FetchPath random_path() {
    const int home = random_device();
    if (draw(2) == 0) return FetchPath::at(home, devices_);
    std::vector<int> holders{home};
    for (int device = 0; device < devices_; ++device)
      if (device != home && device != idle_ && draw(3) != 0) holders.push_back(device);
    FetchPath path{home, {}};
    for (int device = 0; device < devices_; ++device) {
      const bool holds = std::ranges::count(holders, device) > 0;
      path.from.push_back(holds ? device : holders[draw(holders.size())]);
    }
    return path;
  }

  int random_path_index() { return paths_[draw(paths_.size())]; }

  void add_rows(TablePlacement& table) {
    const int64_t longest = std::array<int64_t, 4>{table.rows, table.rows / 3 + 1, 40, 1}[draw(4)];
    for (int64_t end = 0; end < table.rows;) {
      end = std::min<int64_t>(table.rows, end + 1 + static_cast<int64_t>(draw(longest)));
      table.runs.push_back({end, random_path_index()});
    }
    const uint64_t listed_of_ten = std::array<uint64_t, 4>{0, 1, 5, 10}[draw(4)];
    for (int64_t row = 0; row < table.rows; ++row) {
      if (draw(10) >= listed_of_ten) continue;
      table.listed_rows.push_back(row);
      table.listed_paths.push_back(random_path_index());
    }
  }

  const int devices_;
  const Random random_;
  uint64_t draws_ = 0;
  int idle_ = -1;  // a device that holds nothing
  PlacementPlan plan_;
  std::vector<int> paths_;  // of plan_.paths
};

}  // namespace

PlacementPlan random_plan(std::span<const TableSpec> tables, int devices, uint64_t seed) {
  PlanMaker maker(devices, seed);
  for (const TableSpec& table : tables) maker.add(table);
  return maker.finish();
}

}  // namespace recmill::testing
