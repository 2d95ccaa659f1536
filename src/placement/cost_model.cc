// SPDX-License-Identifier: Apache-2.0
#include "placement/cost_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "schema/column_pieces.h"

namespace recmill::placement {
namespace {

constexpr double kLanesBytes = 16 * sizeof(float);  // of a row (kernels::SquareLanes)

struct PathUse {
  double rows = 0;
  RowUse use;
};

// Rows and their use by path of the plan, of one table.
class TableUse {
 public:
  TableUse(const TableCounts& counts, const TablePlacement& table, const RowUses& uses,
           size_t paths)
      : counts_(counts), table_(table), uses_(uses), of_(paths) {
    PathCursor cursor(table);
    size_t hot = 0, listed = 0;
    int64_t begin = 0;
    // Pieces of rows that are in one run and in one range of the counts.
    for (const PlacedRun& run : table.runs) {
      while (begin < run.end) {
        const int64_t range = begin / counts.range_rows;
        const int64_t end = std::min((range + 1) * counts.range_rows, run.end);
        add_piece(begin, end, range, run.path, hot, listed);
        begin = end;
      }
    }
  }

  const std::vector<PathUse>& of() const { return of_; }

 private:
  // The hot rows of a piece one by one, its listed ones at the average of their range.
  void add_piece(int64_t begin, int64_t end, int64_t range, int path, size_t& hot, size_t& listed) {
    const double per_row = lookups_of_a_tail_row(range, hot);
    int64_t tail = end - begin;
    const auto& rows = table_.listed_rows;
    while (true) {
      const int64_t next_hot =
          hot < counts_.hot_rows.size() ? std::min(counts_.hot_rows[hot], end) : end;
      const int64_t next_listed = listed < rows.size() ? std::min(rows[listed], end) : end;
      if (next_hot == end && next_listed == end) break;
      const int64_t row = std::min(next_hot, next_listed);
      PathUse& of = of_[row == next_listed ? table_.listed_paths[listed] : path];
      of.rows += 1;
      of.use +=
          row == next_hot ? uses_.of(counts_.hot_counts[hot]) : uses_.of_tail_lookup() * per_row;
      hot += row == next_hot;
      listed += row == next_listed;
      --tail;
    }
    of_[path].rows += static_cast<double>(tail);
    of_[path].use += uses_.of_tail_lookup() * (per_row * static_cast<double>(tail));
  }

  // Lookups counted of a row of a range that is not hot, on average. Once a range, which begins at
  // its first hot row.
  double lookups_of_a_tail_row(int64_t range, size_t hot) {
    if (range == range_) return per_row_;
    range_ = range;
    const int64_t first = range * counts_.range_rows;
    const int64_t end = std::min(first + counts_.range_rows, counts_.rows);
    size_t last = hot;
    while (last < counts_.hot_rows.size() && counts_.hot_rows[last] < end) ++last;
    const auto rows = static_cast<double>(end - first) - static_cast<double>(last - hot);
    per_row_ = rows > 0 ? static_cast<double>(counts_.range_lookups[range]) / rows : 0;
    return per_row_;
  }

  const TableCounts& counts_;
  const TablePlacement& table_;
  const RowUses& uses_;
  std::vector<PathUse> of_;
  int64_t range_ = -1;
  double per_row_ = 0;
};

// Of rows without copies that take so many of a table's lookups: whoever owns them looks all of
// them up, sends one row for each bag that has any, and gets one gradient for it.
void send_pooled(const PlacedTable& table, const RowUses& uses, double accesses, Load& load) {
  if (uses.lookups() <= 0) return;
  const double bag = uses.bags() > 0 ? uses.lookups() / uses.bags() : 0;
  const double values = static_cast<double>(table.spec.dim) * sizeof(float);
  const double share = std::min(accesses / uses.lookups(), 1.0);
  load.looked_up = accesses * values;
  load.requested = accesses * sizeof(int64_t);
  load.fetched = uses.bags() * (1 - std::pow(1 - share, bag)) * values;
  if (load.summed > 0) load.summed = load.fetched;
}

// Of row-wise optimizers: in round k a row's lanes of squares go from piece k to the next one, or
// its mean square from the last piece to all others, for every row that any device looks up.
void add_squares(const PlacedTable& table, const std::vector<int>& devices, double rows,
                 DeviceCosts& costs) {
  if (table.spec.frozen || table.spec.optimizer.kind != OptimizerKind::rowwise_adagrad) return;
  const size_t last = devices.size() - 1;
  for (size_t k = 0; k < last; ++k) {
    costs.add_to_round(k, devices[k + 1], devices[k], rows * kLanesBytes);
    costs.add_to_round(last, devices[k], devices[last], rows * sizeof(float));
  }
}

// Each piece is asked for by its rows' ids, and gets its part of their gradients with them.
void add_columns(const Problem& problem, const PlacedTable& table, const TablePlacement& placement,
                 const RowUses& uses, const RowUse& use, DeviceCosts& costs) {
  Load whole = load_of(problem, table, static_cast<double>(table.spec.rows), use);
  if (placement.send_pooled) send_pooled(table, uses, use.accesses, whole);
  const double ids_sent = whole.summed > 0 && !placement.send_pooled ? whole.requested : 0;
  const auto pieces = static_cast<int64_t>(placement.column_devices.size());
  for (int64_t k = 0; k < pieces; ++k) {
    const auto columns = static_cast<double>(column_piece(table.spec.dim, pieces, k).count);
    const double share = columns / static_cast<double>(table.spec.dim);
    Load part = whole * share;
    part.requested = whole.requested;
    part.summed += ids_sent * (1 - share);
    costs.add(part, FetchPath::at(placement.column_devices[k], problem.devices()));
  }
  if (problem.training) add_squares(table, placement.column_devices, use.touched, costs);
}

struct Copies {
  double rows = 0, extra = 0, bytes = 0;
};

void add_table(const Problem& problem, const PlacementPlan& plan, size_t t, DeviceCosts& costs,
               Copies& copies) {
  const PlacedTable& table = problem.tables[t];
  const TableCounts& counts = problem.counts.tables[t];
  const TablePlacement& placement = plan.tables[t];
  const RowUses uses(counts, problem.counts.samples, problem.samples, problem.devices());
  if (!placement.column_devices.empty())
    return add_columns(problem, table, placement, uses, use_of_all(counts, uses), costs);
  std::vector<PathUse> of = TableUse(counts, placement, uses, plan.paths.size()).of();
  std::vector<Load> loads;
  for (const PathUse& path : of) loads.push_back(load_of(problem, table, path.rows, path.use));
  for (size_t p = 0; p < of.size(); ++p) {
    if (of[p].rows == 0) continue;
    if (placement.send_pooled && plan.paths[p].copies() == 1)
      send_pooled(table, uses, of[p].use.accesses, loads[p]);
    costs.add(loads[p], plan.paths[p]);
    const int more = plan.paths[p].copies() - 1;
    if (more == 0) continue;
    copies.rows += of[p].rows;
    copies.extra += of[p].rows * more;
    copies.bytes += loads[p].memory * more;
  }
}

DeviceRating rate_device(const Problem& problem, const DeviceCosts& costs, int device) {
  DeviceRating rating;
  rating.memory = costs.memory(device);
  rating.memory_limit = static_cast<double>(problem.cluster.devices[device].memory_bytes);
  rating.looked_up = costs.looked_up(device);
  rating.lookup_seconds = costs.lookup_seconds(device);
  for (int p = 0; p < DeviceCosts::kPhases; ++p) {
    const auto phase = static_cast<DeviceCosts::Phase>(p);
    const bool fetches = phase == DeviceCosts::request || phase == DeviceCosts::fetch;
    (fetches ? rating.fetch_seconds : rating.reduce_seconds) += costs.seconds(phase, device);
    for (int other = 0; other < costs.devices(); ++other) {
      if (other == device) continue;
      rating.received += costs.moved(phase, device, other);
      rating.sent += costs.moved(phase, other, device);
    }
  }
  rating.reduce_seconds += costs.rounds_seconds();
  for (int other = 0; other < costs.devices(); ++other) {
    if (other == device) continue;
    rating.received += costs.moved_in_rounds(device, other);
    rating.sent += costs.moved_in_rounds(other, device);
  }
  return rating;
}

void rate_pairs(const DeviceCosts& costs, Rating& rating) {
  std::vector<double> bytes, seconds;
  for (int to = 0; to < costs.devices(); ++to) {
    for (int from = 0; from < costs.devices(); ++from) {
      rating.fetched.push_back(costs.moved(DeviceCosts::fetch, to, from));
      if (to == from) continue;
      bytes.push_back(rating.fetched.back());
      seconds.push_back(costs.fetch_seconds(to, from));
    }
  }
  rating.pair_bytes = balance_of(bytes);
  rating.pair_communication = balance_of(seconds);
}

void rate_balance(const DeviceCosts& costs, Rating& rating) {
  double limits = 0;
  for (const DeviceRating& device : rating.devices)
    limits += device.memory_limit / static_cast<double>(rating.devices.size());
  std::vector<double> memory, lookups, communication;
  for (int device = 0; device < costs.devices(); ++device) {
    const DeviceRating& of = rating.devices[device];
    memory.push_back(of.memory_limit > 0 ? of.memory * limits / of.memory_limit : of.memory);
    lookups.push_back(of.looked_up);
    communication.push_back(costs.seconds(DeviceCosts::fetch, device));
    rating.seconds = std::max(rating.seconds, of.seconds());
  }
  rating.memory = balance_of(memory);
  rating.lookups = balance_of(lookups);
  rating.communication = balance_of(communication);
}

}  // namespace

RowUse use_of_all(const TableCounts& counts, const RowUses& uses) {
  RowUse use;
  for (const int64_t count : counts.hot_counts) use += uses.of(count);
  int64_t tail = 0;
  for (const int64_t lookups : counts.range_lookups) tail += lookups;
  return use += uses.of_tail_lookup() * static_cast<double>(tail);
}

std::string Rating::does_not_fit() const {
  int worst = -1;
  double short_of = 0;
  for (size_t d = 0; d < devices.size(); ++d) {
    const double lacking = devices[d].memory - devices[d].memory_limit;
    if (lacking > short_of) worst = static_cast<int>(d), short_of = lacking;
  }
  if (worst < 0) return "";
  return fmt::format("device {} is short of {:.1f} MiB: {:.1f} of rows, {:.1f} of memory", worst,
                     short_of / (1 << 20), devices[worst].memory / (1 << 20),
                     devices[worst].memory_limit / (1 << 20));
}

DeviceCosts costs_of(const Problem& problem, const PlacementPlan& plan) {
  DeviceCosts costs(problem);
  Copies copies;
  for (size_t t = 0; t < problem.tables.size(); ++t) add_table(problem, plan, t, costs, copies);
  return costs;
}

DeviceCosts costs_of_table(const Problem& problem, const PlacementPlan& plan, size_t table) {
  DeviceCosts costs(problem);
  Copies copies;
  add_table(problem, plan, table, costs, copies);
  return costs;
}

Rating rate(const Problem& problem, const PlacementPlan& plan) {
  DeviceCosts costs(problem);
  Copies copies;
  for (size_t t = 0; t < problem.tables.size(); ++t) add_table(problem, plan, t, costs, copies);
  Rating rating;
  for (int device = 0; device < problem.devices(); ++device)
    rating.devices.push_back(rate_device(problem, costs, device));
  rate_pairs(costs, rating);
  rate_balance(costs, rating);
  rating.copied_rows = std::llround(copies.rows);
  rating.extra_copies = std::llround(copies.extra);
  rating.extra_bytes = copies.bytes;
  return rating;
}

}  // namespace recmill::placement
