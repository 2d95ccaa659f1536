// SPDX-License-Identifier: Apache-2.0
#include "placement/plan_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/json/json.h"
#include "page/page.h"

namespace recmill::placement {
namespace {

constexpr double kMiB = 1 << 20;

std::string list_of(const std::vector<int>& devices) {
  std::string text;
  for (const int device : devices) text += (text.empty() ? "" : ", ") + std::to_string(device);
  return text;
}

std::string rule_of(const TablePlacement& table, const PlacementPlan& plan) {
  std::string rule;
  if (!table.column_devices.empty()) {
    rule = "columns over devices " + list_of(table.column_devices);
  } else if (table.runs.size() == 1 && table.listed_rows.empty()) {
    const FetchPath& path = plan.paths[table.runs[0].path];
    rule = path.copies() == 1              ? fmt::format("whole on device {}", path.home)
           : path.copies() == plan.devices ? "whole on every device"
                                           : fmt::format("whole on {} devices", path.copies());
  } else {
    rule = fmt::format("{} ranges, {} listed rows", table.runs.size(), table.listed_rows.size());
  }
  return table.send_pooled ? rule + ", owners pool" : rule;
}

TableSummary summarize_table(const PlacedTable& table, const TablePlacement& placement,
                             const PlacementPlan& plan) {
  TableSummary summary{placement.table,
                       placement.rows,
                       placement.dim,
                       std::vector<int64_t>(plan.devices),
                       0,
                       0,
                       rule_of(placement, plan)};
  if (!placement.column_devices.empty()) {
    for (const int device : placement.column_devices) summary.rows_at[device] = placement.rows;
    summary.bytes = static_cast<double>(placement.rows * table.row_bytes);
    return summary;
  }
  std::vector<int64_t> rows(plan.paths.size());
  int64_t begin = 0;
  for (const PlacedRun& run : placement.runs) {
    rows[run.path] += run.end - begin;
    begin = run.end;
  }
  size_t run = 0;
  for (size_t i = 0; i < placement.listed_rows.size(); ++i) {
    while (placement.runs[run].end <= placement.listed_rows[i]) ++run;
    --rows[placement.runs[run].path];
    ++rows[placement.listed_paths[i]];
  }
  for (size_t p = 0; p < rows.size(); ++p) {
    const int copies = plan.paths[p].copies();
    summary.rows_at[plan.paths[p].home] += rows[p];
    if (copies > 1) summary.copied += rows[p];
    summary.bytes += static_cast<double>(rows[p] * copies * table.row_bytes);
  }
  return summary;
}

Json to_json(const Balance& balance, double unit) {
  return {{"largest", balance.largest / unit},
          {"smallest", balance.smallest / unit},
          {"mean", balance.mean / unit},
          {"variance", balance.variance / unit / unit},
          {"degree_of_balance", balance.degree()}};
}

std::string devices_text(const Rating& rating) {
  std::string text =
      fmt::format("{:>8} {:>13} {:>13} {:>13} {:>13} {:>13} {:>11}\n", "device", "memory MiB",
                  "of it", "lookups MiB", "sent MiB", "received MiB", "time ms");
  for (size_t d = 0; d < rating.devices.size(); ++d) {
    const DeviceRating& device = rating.devices[d];
    text += fmt::format("{:>8} {:>13.3f} {:>11.1f} % {:>13.3f} {:>13.3f} {:>13.3f} {:>11.3f}\n", d,
                        device.memory / kMiB, 100 * device.memory / device.memory_limit,
                        device.looked_up / kMiB, device.sent / kMiB, device.received / kMiB,
                        1e3 * device.seconds());
  }
  return text;
}

std::string pairs_text(const Rating& rating) {
  const size_t devices = rating.devices.size();
  if (devices < 2 || devices > 16) return "";
  std::string text = "rows fetched a batch, MiB: lines fetch, columns are fetched from\n";
  for (size_t to = 0; to < devices; ++to) {
    text += fmt::format("{:>8}", to);
    for (size_t from = 0; from < devices; ++from)
      text += to == from ? fmt::format(" {:>10}", "-")
                         : fmt::format(" {:>10.3f}", rating.fetched[to * devices + from] / kMiB);
    text += "\n";
  }
  return text;
}

std::string tables_text(const std::vector<TableSummary>& tables) {
  std::string text = fmt::format("{:<20} {:>12} {:>5} {:>11} {:>9}  {}\n", "table", "rows", "dim",
                                 "MiB", "copied", "where");
  for (const TableSummary& table : tables)
    text += fmt::format("{:<20} {:>12} {:>5} {:>11.3f} {:>9}  {}\n", table.table, table.rows,
                        table.dim, table.bytes / kMiB, table.copied, table.rule);
  return text;
}

}  // namespace

std::vector<TableSummary> summarize(const Problem& problem, const PlacementPlan& plan) {
  std::vector<TableSummary> tables;
  for (size_t t = 0; t < plan.tables.size(); ++t)
    tables.push_back(summarize_table(problem.tables[t], plan.tables[t], plan));
  return tables;
}

std::string recommendation(const std::vector<PlannedWay>& ways) {
  constexpr double kAlike = 1.01;
  std::vector<const PlannedWay*> fit;
  for (const PlannedWay& way : ways)
    if (way.refused.empty() && way.rating.does_not_fit().empty()) fit.push_back(&way);
  if (fit.empty()) return "";
  const auto seconds = [](const PlannedWay* way) { return way->rating.seconds; };
  const double least = (*std::ranges::min_element(fit, {}, seconds))->rating.seconds;
  const auto is_best = [&](const PlannedWay* way) { return seconds(way) <= least * kAlike; };
  const PlannedWay& best = **std::ranges::find_if(fit, is_best);
  std::string alike;
  for (const PlannedWay* way : fit)
    if (way != &best && is_best(way)) alike += (alike.empty() ? "" : ", ") + way->title();
  std::erase_if(fit, is_best);
  const std::string use = fmt::format("use {}: {} a batch on the slowest device, predicted{}",
                                      best.title(), page::time_text(best.rating.seconds * 1e9),
                                      alike.empty() ? "" : ", as with " + alike);
  if (fit.empty()) return use + "; no other plan that fits differs by 1 %";
  const PlannedWay& next = **std::ranges::min_element(fit, {}, seconds);
  return fmt::format("{}, {:.0f} % less than {}, the next best", use,
                     100 * (1 - best.rating.seconds / next.rating.seconds), next.title());
}

std::string table_of(const std::vector<PlannedWay>& ways) {
  std::string text = fmt::format(
      "{:<16} {:>25} {:>25} {:>25} {:>18} {:>9} {:>9} {:>8}\n"
      "{:<16} {:>25} {:>25} {:>25} {:>18} {:>9} {:>9} {:>8}\n",
      "planner", "memory, MiB", "lookups, MiB", "communication, ms", "a pair, MiB", "copied",
      "time", "to plan", "", "largest     mean     DoB", "largest     mean     DoB",
      "largest     mean     DoB", "mean     DoB", "rows", "ms", "s");
  const auto three = [](const Balance& balance, double unit) {
    return fmt::format("{:>8.4g} {:>8.4g} {:>5.1f} %", balance.largest / unit, balance.mean / unit,
                       100 * balance.degree());
  };
  for (const PlannedWay& way : ways) {
    const std::string name = way.title();
    if (!way.refused.empty()) {
      text += fmt::format("{:<16}  {}\n", name, way.refused);
      continue;
    }
    const Rating& rating = way.rating;
    text += fmt::format("{:<16} {:>25} {:>25} {:>25} {:>18} {:>9} {:>9.4g} {:>8.2f}\n", name,
                        three(rating.memory, kMiB), three(rating.lookups, kMiB),
                        three(rating.communication, 1e-3),
                        fmt::format("{:.4g} {:>5.1f} %", rating.pair_bytes.mean / kMiB,
                                    100 * rating.pair_bytes.degree()),
                        rating.copied_rows, 1e3 * rating.seconds, way.seconds);
    if (const std::string lacking = rating.does_not_fit(); !lacking.empty())
      text += fmt::format("{:<16}  does not fit: {}\n", "", lacking);
  }
  return text;
}

std::string explain(const Problem& problem, const PlannedWay& way) {
  std::string text =
      fmt::format("{}: {} of lookups and communication a batch on the slowest device, predicted\n",
                  way.title(), page::time_text(way.rating.seconds * 1e9));
  if (way.proposal.access_bounded_share > 0)
    text += fmt::format(
        "{} partitions; those bounded by accesses take {:.1f} % of the fetches and {:.2f} % of the "
        "memory\n",
        way.proposal.partitions, 100 * way.proposal.access_bounded_share,
        100 * way.proposal.access_bounded_memory);
  for (const std::string& note : way.proposal.notes) text += note + "\n";
  if (const std::string lacking = way.rating.does_not_fit(); !lacking.empty())
    text += "does not fit: " + lacking + "\n";
  return text + "\n" + devices_text(way.rating) + "\n" + pairs_text(way.rating) + "\n" +
         tables_text(summarize(problem, way.proposal.plan));
}

Json to_json(const Problem& problem, const PlannedWay& way) {
  Json json{{"planner", way.title()}};
  if (!way.refused.empty()) {
    json["refused"] = way.refused;
    return json;
  }
  const Rating& rating = way.rating;
  json["plan_seconds"] = way.seconds;
  json["predicted_milliseconds"] = 1e3 * rating.seconds;
  json["fits"] = rating.does_not_fit().empty();
  if (!json["fits"]) json["lacking"] = rating.does_not_fit();
  json["memory_mib"] = to_json(rating.memory, kMiB);
  json["lookups_mib"] = to_json(rating.lookups, kMiB);
  json["communication_ms"] = to_json(rating.communication, 1e-3);
  json["pair_mib"] = to_json(rating.pair_bytes, kMiB);
  json["pair_communication_ms"] = to_json(rating.pair_communication, 1e-3);
  json["copied_rows"] = rating.copied_rows;
  json["extra_copies"] = rating.extra_copies;
  json["extra_mib"] = rating.extra_bytes / kMiB;
  json["partitions"] = way.proposal.partitions;
  json["access_bounded_share"] = way.proposal.access_bounded_share;
  json["access_bounded_memory"] = way.proposal.access_bounded_memory;
  json["notes"] = way.proposal.notes;
  json["devices"] = Json::array();
  for (const DeviceRating& device : rating.devices)
    json["devices"].push_back({{"memory_mib", device.memory / kMiB},
                               {"memory_limit_mib", device.memory_limit / kMiB},
                               {"lookups_mib", device.looked_up / kMiB},
                               {"sent_mib", device.sent / kMiB},
                               {"received_mib", device.received / kMiB},
                               {"lookup_ms", 1e3 * device.lookup_seconds},
                               {"fetch_ms", 1e3 * device.fetch_seconds},
                               {"reduce_ms", 1e3 * device.reduce_seconds}});
  json["tables"] = Json::array();
  for (const TableSummary& table : summarize(problem, way.proposal.plan))
    json["tables"].push_back({{"table", table.table},
                              {"rows", table.rows},
                              {"dim", table.dim},
                              {"mib", table.bytes / kMiB},
                              {"rows_at", table.rows_at},
                              {"copied", table.copied},
                              {"where", table.rule}});
  return json;
}

}  // namespace recmill::placement
