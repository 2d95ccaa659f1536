// SPDX-License-Identifier: Apache-2.0
#include "placement/replan.h"

#include <algorithm>
#include <vector>

#include "schema/column_pieces.h"

namespace recmill::placement {
namespace {

/// The ways of a table's rows, a stretch of rows after the other.
class Stretches {
 public:
  explicit Stretches(const TablePlacement& table) : table_(table) {}

  struct Stretch {
    int64_t end = 0;
    int path = -1;  // -1: columns are placed
  };
  /// From `row` on; rows ascend from call to call.
  Stretch from(int64_t row) {
    if (!table_.column_devices.empty()) return {table_.rows, -1};
    const auto& listed = table_.listed_rows;
    while (listed_ < listed.size() && listed[listed_] < row) ++listed_;
    const bool more = listed_ < listed.size();
    if (more && listed[listed_] == row) return {row + 1, table_.listed_paths[listed_]};
    while (table_.runs[run_].end <= row) ++run_;
    const int64_t end = table_.runs[run_].end;
    return {more ? std::min(end, listed[listed_]) : end, table_.runs[run_].path};
  }

 private:
  const TablePlacement& table_;
  size_t run_ = 0, listed_ = 0;
};

class Mover {
 public:
  Mover(const Problem& problem, const PlacementPlan& from, const PlacementPlan& to)
      : problem_(problem),
        from_(from),
        to_(to),
        devices_(problem.devices()),
        bytes_(static_cast<size_t>(devices_) * devices_) {}

  PlanMove move() {
    for (size_t t = 0; t < problem_.tables.size(); ++t) add_table(t);
    for (int device = 0; device < devices_; ++device) {
      double received = 0, sent = 0;
      for (int other = 0; other < devices_; ++other) {
        if (other == device) continue;
        received += bytes(device, other) * problem_.cluster.link(device, other).byte_seconds;
        sent += bytes(other, device) * problem_.cluster.link(other, device).byte_seconds;
        move_.bytes += bytes(device, other);
      }
      move_.seconds = std::max({move_.seconds, received, sent});
    }
    return move_;
  }

 private:
  double& bytes(int to, int from) { return bytes_[static_cast<size_t>(to) * devices_ + from]; }

  void add_table(size_t t) {
    Stretches before(from_.tables[t]), after(to_.tables[t]);
    for (int64_t row = 0; row < from_.tables[t].rows;) {
      const auto was = before.from(row), will_be = after.from(row);
      const int64_t end = std::min(was.end, will_be.end);
      add_rows(t, static_cast<double>(end - row), was.path, will_be.path);
      row = end;
    }
  }

  /// The columns that a device has of rows by a path of `plan`, or by its columns.
  static ColumnRange columns_at(const PlacementPlan& plan, size_t t, int path, int device) {
    const TablePlacement& table = plan.tables[t];
    if (path >= 0) return {0, plan.paths[path].has_copy(device) ? table.dim : 0};
    const auto& devices = table.column_devices;
    const auto found = std::ranges::find(devices, device);
    if (found == devices.end()) return {};
    return column_piece(table.dim, std::ssize(devices), found - devices.begin());
  }

  void add_rows(size_t t, double rows, int was, int will_be) {
    const double row_bytes = static_cast<double>(problem_.tables[t].row_bytes);
    const auto dim = static_cast<double>(from_.tables[t].dim);
    for (int to = 0; to < devices_; ++to) {
      const ColumnRange wanted = columns_at(to_, t, will_be, to);
      for (int from = 0; from < devices_; ++from) {
        if (from == to || (was >= 0 && from_.paths[was].from[to] != from)) continue;
        const int64_t columns = columns_at(from_, t, was, from).common(wanted).count;
        if (columns == 0) continue;
        move_.rows += rows;
        bytes(to, from) += rows * row_bytes * static_cast<double>(columns) / dim;
      }
    }
  }

  const Problem& problem_;
  const PlacementPlan &from_, &to_;
  const int devices_;
  std::vector<double> bytes_;  // [to][from]
  PlanMove move_;
};

}  // namespace

PlanMove move_between(const Problem& problem, const PlacementPlan& from, const PlacementPlan& to) {
  return Mover(problem, from, to).move();
}

bool has_drifted(const ReplanCase& of) {
  return of.now > of.expected * (1 + of.gain);
}

bool pays(const ReplanCase& of, double planned, double move_seconds, int64_t iterations) {
  return of.now > planned * (1 + of.gain) &&
         (of.now - planned) * static_cast<double>(iterations) > move_seconds;
}

}  // namespace recmill::placement
