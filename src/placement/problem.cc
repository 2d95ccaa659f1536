// SPDX-License-Identifier: Apache-2.0
#include "placement/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace recmill::placement {
namespace {

constexpr int64_t kSmallCounts = 4096;
constexpr double kAlike = 0.1;  // measured again, equal links and memories differ by less

Status check_links(const ClusterSpec& cluster) {
  const size_t devices = cluster.devices.size();
  if (cluster.links.size() != devices * devices)
    return Status::BadRequest(fmt::format("{} links for {} devices, of {}", cluster.links.size(),
                                          devices, devices * devices));
  for (int to = 0; to < cluster.size(); ++to) {
    for (int from = 0; from < cluster.size(); ++from) {
      const LinkSpec& link = cluster.link(to, from);
      // Looking up at home may be held to cost nothing.
      const bool ok = std::isfinite(link.byte_seconds) && std::isfinite(link.message_seconds) &&
                      link.message_seconds >= 0 &&
                      (to == from ? link.byte_seconds >= 0 : link.byte_seconds > 0);
      if (!ok)
        return Status::BadRequest(
            fmt::format("the link from device {} to device {} takes {} seconds a byte and {} a "
                        "message",
                        from, to, link.byte_seconds, link.message_seconds));
    }
  }
  return {};
}

Status check_counts(const PlacedTable& table, const TableCounts& counts) {
  if (counts.table != table.spec.name || counts.rows != table.spec.rows)
    return Status::BadRequest(fmt::format(
        "the counts are of another data set: table '{}' of {} rows where the model has '{}' of {}",
        counts.table, counts.rows, table.spec.name, table.spec.rows));
  const int64_t ranges = (counts.rows + counts.range_rows - 1) / counts.range_rows;
  if (static_cast<int64_t>(counts.range_lookups.size()) != ranges ||
      counts.hot_rows.size() != counts.hot_counts.size())
    return Status::BadRequest(
        fmt::format("the counts of table '{}' are not one for each of its rows", counts.table));
  return {};
}

}  // namespace

int64_t Problem::total_bytes() const {
  int64_t bytes = 0;
  for (const PlacedTable& table : tables) bytes += table.row_bytes * table.spec.rows;
  return bytes;
}

Status check_problem(const Problem& problem) {
  if (problem.cluster.devices.empty()) return Status::BadRequest("there is no device to place on");
  RECMILL_RETURN_IF_ERROR(check_links(problem.cluster));
  if (problem.counts.tables.size() != problem.tables.size())
    return Status::BadRequest(
        fmt::format("the counts are of another data set: {} tables where the model has {}",
                    problem.counts.tables.size(), problem.tables.size()));
  for (size_t t = 0; t < problem.tables.size(); ++t)
    RECMILL_RETURN_IF_ERROR(check_counts(problem.tables[t], problem.counts.tables[t]));
  return {};
}

ClusterSpec equal_devices(int devices, int64_t memory_bytes, double lookup) {
  ClusterSpec cluster;
  for (int d = 0; d < devices; ++d) {
    DeviceSpec device;
    device.name = fmt::format("device {}", d);
    device.memory_bytes = memory_bytes;
    cluster.devices.push_back(device);
  }
  for (int to = 0; to < devices; ++to)
    for (int from = 0; from < devices; ++from)
      cluster.links.push_back({0, to == from ? lookup : 1.0});
  return cluster;
}

bool is_uniform(const ClusterSpec& cluster) {
  const auto alike = [](double a, double b) { return std::abs(a - b) <= kAlike * std::max(a, b); };
  for (int to = 0; to < cluster.size(); ++to) {
    if (!alike(static_cast<double>(cluster.devices[to].memory_bytes),
               static_cast<double>(cluster.devices[0].memory_bytes)))
      return false;
    for (int from = 0; from < cluster.size(); ++from) {
      const LinkSpec& like = to == from ? cluster.link(0, 0) : cluster.link(0, 1);
      if (!alike(cluster.link(to, from).byte_seconds, like.byte_seconds)) return false;
    }
  }
  return true;
}

RowUses::RowUses(const TableCounts& counts, int64_t samples_counted, int64_t samples, int devices)
    : total_(static_cast<double>(counts.lookups)), devices_(devices) {
  const double scale = samples_counted > 0
                           ? static_cast<double>(samples) / static_cast<double>(samples_counted)
                           : 0.0;
  lookups_ = total_ * scale;
  bags_ = static_cast<double>(counts.bags) * scale;
  const int64_t largest = counts.hot_counts.empty() ? 0 : std::ranges::max(counts.hot_counts);
  const int64_t tail_largest = static_cast<int64_t>(counts.tail_rows_by_count.size()) - 1;
  const int64_t table = std::clamp<int64_t>(std::max(largest, tail_largest) + 1, 1, kSmallCounts);
  for (int64_t count = 0; count < table; ++count) small_.push_back(compute(count));
  double tail_lookups = 0;
  for (int64_t count = 1; count <= tail_largest; ++count) {
    const auto rows = static_cast<double>(counts.tail_rows_by_count[count]);
    tail_ += of(count) * rows;
    tail_lookups += rows * static_cast<double>(count);
  }
  if (tail_lookups > 0) tail_ = tail_ * (1 / tail_lookups);
}

RowUse RowUses::compute(int64_t count) const {
  if (count <= 0 || total_ <= 0) return {};
  const double p = static_cast<double>(count) / total_;
  // log1p(-1) of a table with one row in use is minus infinity: it is in every batch.
  const double missed = std::log1p(-p);
  return {p * lookups_, -std::expm1(lookups_ * missed), -std::expm1(lookups_ * devices_ * missed)};
}

}  // namespace recmill::placement
