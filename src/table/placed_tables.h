// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "placement_plan/placement_plan.h"
#include "schema/table_spec.h"
#include "table/row_map.h"
#include "table/table_share.h"

namespace recmill::table {

/// A placement plan, ready to be carried out: for all ranks of a process, which are its devices.
class PlacedTables {
 public:
  /// A plan that check_plan() refuses is a bad request. Fails as RowMap::create().
  static Result<std::shared_ptr<const PlacedTables>> create(const PlacementPlan& plan,
                                                            std::span<const TableSpec> tables,
                                                            int devices);

  int devices() const { return devices_; }
  /// What `device` holds of each table, with copies.
  std::vector<TableShare> shares(int device) const;
  /// [tables]: whether owners pool (TablePlacement::send_pooled).
  std::vector<bool> send_pooled() const;
  /// Of all maps.
  int64_t bytes() const;

 private:
  struct Table {
    TableSpec spec;
    std::vector<int> column_devices;    // or:
    std::shared_ptr<const RowMap> map;  // null where columns are placed
    bool send_pooled = false;
  };

  int devices_ = 1;
  std::vector<Table> tables_;
};

}  // namespace recmill::table
