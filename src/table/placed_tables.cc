// SPDX-License-Identifier: Apache-2.0
#include "table/placed_tables.h"

namespace recmill::table {

Result<std::shared_ptr<const PlacedTables>> PlacedTables::create(const PlacementPlan& plan,
                                                                 std::span<const TableSpec> tables,
                                                                 int devices) {
  RECMILL_RETURN_IF_ERROR(check_plan(plan, tables, devices));
  auto placed = std::make_shared<PlacedTables>();
  placed->devices_ = devices;
  for (size_t t = 0; t < tables.size(); ++t) {
    Table table{tables[t], plan.tables[t].column_devices, nullptr, plan.tables[t].send_pooled};
    if (table.column_devices.empty()) {
      RECMILL_ASSIGN_OR_RETURN(table.map, RowMap::create(plan.tables[t], plan.paths, devices));
    }
    placed->tables_.push_back(std::move(table));
  }
  return std::shared_ptr<const PlacedTables>(std::move(placed));
}

std::vector<TableShare> PlacedTables::shares(int device) const {
  std::vector<TableShare> shares;
  for (const Table& table : tables_) {
    if (table.map != nullptr) {
      shares.push_back(RowShare::placed(table.map, device));
    } else {
      shares.push_back(TableShare::by_columns(table.spec, table.column_devices, device, devices_));
    }
  }
  return shares;
}

std::vector<bool> PlacedTables::send_pooled() const {
  std::vector<bool> pooled;
  for (const Table& table : tables_) pooled.push_back(table.send_pooled);
  return pooled;
}

int64_t PlacedTables::bytes() const {
  int64_t bytes = 0;
  for (const Table& table : tables_) bytes += table.map == nullptr ? 0 : table.map->bytes();
  return bytes;
}

}  // namespace recmill::table
