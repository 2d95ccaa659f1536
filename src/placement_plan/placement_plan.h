// SPDX-License-Identifier: Apache-2.0
// Where every row of every table is stored, and from where each device fetches it: what placement/
// decides and the placed store carries out. The matrices P of OPER (section 3.2), said by ranges of
// rows and exceptions to them. Its file is described in docs/formats/placement_plan.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "schema/table_spec.h"

namespace recmill {

/// The way to one row: P_k, with the 1 of each of its lines. A device that has a copy fetches its
/// own.
struct FetchPath {
  int home = 0;           // the copy whose gradient sums are complete first, and that is saved
  std::vector<int> from;  // [devices]: the device that each one fetches the row from

  /// One copy.
  static FetchPath at(int home, int devices);
  /// A copy on every device.
  static FetchPath everywhere(int home, int devices);

  bool has_copy(int device) const { return from[device] == device; }
  int copies() const;
  bool operator==(const FetchPath&) const = default;
};

/// Rows [end of the run before, end).
struct PlacedRun {
  int64_t end = 0;
  int path = 0;  // of PlacementPlan::paths
  bool operator==(const PlacedRun&) const = default;
};

struct TablePlacement {
  std::string table;
  int64_t rows = 0;
  int64_t dim = 0;
  /// Where rows are stored in pieces of columns: the devices, each once, of pieces 0, 1, ..., cut
  /// as table::ColumnSplit does. Then the lists below are empty. Empty: rows are whole.
  std::vector<int> column_devices;
  std::vector<PlacedRun> runs;        // ascending; the last one ends at `rows`
  std::vector<int64_t> listed_rows;   // ascending: rows that do not go with their run
  std::vector<int32_t> listed_paths;  // beside
  /// Owners pool a bag's rows and send one row for it, instead of the rows; rows with copies are
  /// fetched all the same. Sums are then added in another order: only where train.deterministic is
  /// false. Every feature of the table is pooled.
  bool send_pooled = false;

  bool operator==(const TablePlacement&) const = default;
};

struct PlacementPlan {
  std::string planner;  // who made it; "edited" for instance
  int devices = 1;
  std::vector<FetchPath> paths;        // each different one once
  std::vector<TablePlacement> tables;  // in the order of ModelSpec::tables

  /// Of plan.paths; adds it where it is new.
  int path(const FetchPath& wanted);
  bool operator==(const PlacementPlan&) const = default;
};

/// Whether the plan is one for these tables and so many devices: every row in one run or list,
/// paths that end at a copy. Errors name table and row.
Status check_plan(const PlacementPlan& plan, std::span<const TableSpec> tables, int devices);

/// The path of each of a table's rows in ascending order of rows, for one pass.
class PathCursor {
 public:
  explicit PathCursor(const TablePlacement& table) : table_(table) {}
  /// Rows ascend from call to call.
  int at(int64_t row) {
    while (listed_ < table_.listed_rows.size() && table_.listed_rows[listed_] < row) ++listed_;
    if (listed_ < table_.listed_rows.size() && table_.listed_rows[listed_] == row)
      return table_.listed_paths[listed_];
    while (table_.runs[run_].end <= row) ++run_;
    return table_.runs[run_].path;
  }

 private:
  const TablePlacement& table_;
  size_t run_ = 0, listed_ = 0;
};

}  // namespace recmill
