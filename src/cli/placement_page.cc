// SPDX-License-Identifier: Apache-2.0
#include "cli/placement_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "cli/page.h"

namespace recmill::cli {
namespace {

using placement::PlannedWay;
using placement::Rating;

constexpr double kMiB = 1 << 20;
constexpr size_t kDevicesInPictures = 32;

/// One quantity of a device: what it is called, and its value.
struct Quantity {
  const char* name;
  const char* unit;
  int color;
  std::function<double(const placement::DeviceRating&)> of;
};

const std::vector<Quantity>& quantities() {
  static const std::vector<Quantity> all{
      {"memory", "MiB", 0, [](const auto& d) { return d.memory / kMiB; }},
      {"lookups", "MiB a batch", 2, [](const auto& d) { return d.looked_up / kMiB; }},
      {"rows sent and received", "ms a batch", 1,
       [](const auto& d) { return 1e3 * d.fetch_seconds; }},
      {"gradients", "ms a batch", 3, [](const auto& d) { return 1e3 * d.reduce_seconds; }}};
  return all;
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

void append_summary(std::string& page, const std::vector<PlannedWay>& ways) {
  page +=
      "<h2>Planners</h2><p>Largest value of a device, and in brackets the degree of balance, "
      "smallest by largest. A pair: what one device fetches from another.</p><div "
      "class=\"scroll\"><table><tr><th class=\"text\">planner</th><th>memory, MiB</th>"
      "<th>lookups, MiB</th><th>communication, ms</th><th>a pair, mean MiB</th><th>copied rows"
      "</th><th>predicted, ms a batch</th><th>to plan, s</th><th class=\"text\"></th></tr>";
  for (const PlannedWay& way : ways) {
    page += fmt::format("<tr><td class=\"text\">{}</td>", escaped(way.title()));
    if (!way.refused.empty()) {
      page += fmt::format("<td class=\"text\" colspan=\"8\">{}</td></tr>", escaped(way.refused));
      continue;
    }
    const Rating& r = way.rating;
    page += fmt::format(
        "<td>{:.4g} ({})</td><td>{:.4g} ({})</td><td>{:.4g} ({})</td><td>{:.4g} ({})</td>"
        "<td>{}</td><td>{:.4g}</td><td>{:.2f}</td><td class=\"text\">{}</td></tr>",
        r.memory.largest / kMiB, percent(r.memory.degree()), r.lookups.largest / kMiB,
        percent(r.lookups.degree()), 1e3 * r.communication.largest,
        percent(r.communication.degree()), r.pair_bytes.mean / kMiB, percent(r.pair_bytes.degree()),
        r.copied_rows, 1e3 * r.seconds, way.seconds, escaped(r.does_not_fit()));
  }
  page += "</table></div>";
}

// A bar a device for each planner, all planners by one scale.
void append_bars(std::string& page, const std::vector<PlannedWay>& ways, const Quantity& quantity) {
  double largest = 0;
  size_t devices = 0, shown = 0;
  for (const PlannedWay& way : ways) {
    if (!way.refused.empty()) continue;
    ++shown;
    devices = std::max(devices, std::min(way.rating.devices.size(), kDevicesInPictures));
    for (const auto& device : way.rating.devices) largest = std::max(largest, quantity.of(device));
  }
  if (largest <= 0 || shown == 0) return;
  constexpr double kWidth = 1060, kHeight = 190, kTop = 26, kBottom = 24;
  const double group = kWidth / static_cast<double>(shown);
  const double bar = (group - 14) / static_cast<double>(devices);
  page += fmt::format("<h3>{}, {}</h3><figure><svg viewBox=\"0 0 {} {}\">", quantity.name,
                      quantity.unit, kWidth, kTop + kHeight + kBottom);
  for (int line = 1; line <= 4; ++line) {
    const double y = kTop + kHeight * (1 - line / 4.0);
    page += fmt::format("<line class=\"grid\" x1=\"0\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>",
                        kWidth, y, y);
  }
  page += fmt::format("<text class=\"dim\" x=\"4\" y=\"{}\">{:.4g} {}</text>", kTop - 8, largest,
                      quantity.unit);
  double x = 7;
  for (const PlannedWay& way : ways) {
    if (!way.refused.empty()) continue;
    for (size_t d = 0; d < std::min(way.rating.devices.size(), devices); ++d) {
      const double value = quantity.of(way.rating.devices[d]);
      const double height = kHeight * value / largest;
      page += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
          "fill=\"var(--c{})\"><title>{}, device {}: {:.4g} {}</title></rect>",
          x + bar * static_cast<double>(d), kTop + kHeight - height, std::max(bar - 1, 0.5), height,
          quantity.color, escaped(way.title()), d, value, quantity.unit);
    }
    page += fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}</text>", x, kTop + kHeight + 17,
                        escaped(way.title()));
    x += group;
  }
  page += "</svg></figure>";
}

// What each device fetches from each other one; darker is more.
void append_pairs(std::string& page, const PlannedWay& way, double largest, double left,
                  double cell) {
  const size_t devices = way.rating.devices.size();
  page += fmt::format("<text x=\"{:.1f}\" y=\"16\">{}</text>", left, escaped(way.title()));
  for (size_t to = 0; to < devices; ++to) {
    for (size_t from = 0; from < devices; ++from) {
      if (to == from) continue;
      const double value = way.rating.fetched[to * devices + from];
      page += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"var(--c0)\" "
          "fill-opacity=\"{:.3f}\"><title>{}: device {} fetches {:.4g} MiB from device "
          "{}</title></rect>",
          left + cell * static_cast<double>(from), 24 + cell * static_cast<double>(to), cell - 1,
          cell - 1, largest > 0 ? 0.04 + 0.96 * value / largest : 0, escaped(way.title()), to,
          value / kMiB, from);
    }
  }
}

void append_all_pairs(std::string& page, const std::vector<PlannedWay>& ways) {
  std::vector<const PlannedWay*> shown;
  double largest = 0;
  for (const PlannedWay& way : ways) {
    if (!way.refused.empty() || way.rating.devices.size() < 2 ||
        way.rating.devices.size() > kDevicesInPictures)
      continue;
    shown.push_back(&way);
    largest = std::max(largest, way.rating.pair_bytes.largest);
  }
  if (shown.empty()) return;
  constexpr double kWidth = 1060;
  constexpr size_t kInLine = 5;
  constexpr double kGroup = kWidth / kInLine;
  page += fmt::format(
      "<h3>rows fetched by pairs of devices</h3><p>Lines fetch, columns are fetched "
      "from; the darkest is {:.4g} MiB a batch.</p>",
      largest / kMiB);
  for (size_t first = 0; first < shown.size(); first += kInLine) {
    page += fmt::format("<figure><svg viewBox=\"0 0 {} {}\">", kWidth, kGroup + 8);
    for (size_t i = first; i < std::min(first + kInLine, shown.size()); ++i) {
      const double cell = (kGroup - 24) / static_cast<double>(shown[i]->rating.devices.size());
      append_pairs(page, *shown[i], largest, 8 + kGroup * static_cast<double>(i - first), cell);
    }
    page += "</svg></figure>";
  }
}

void append_tables(std::string& page, const placement::Problem& problem, const PlannedWay& way) {
  if (!way.refused.empty()) return;
  page += fmt::format("<h2>{}</h2>", escaped(way.title()));
  if (way.proposal.access_bounded_share > 0)
    page += fmt::format(
        "<p>{} partitions; those bounded by accesses take {} of the fetches and {} of "
        "the memory.</p>",
        way.proposal.partitions, percent(way.proposal.access_bounded_share),
        percent(way.proposal.access_bounded_memory));
  for (const std::string& note : way.proposal.notes) page += "<p>" + escaped(note) + "</p>";
  page +=
      "<div class=\"scroll\"><table><tr><th class=\"text\">table</th><th>rows</th><th>dim</th>"
      "<th>MiB</th><th>copied rows</th><th class=\"text\">where</th></tr>";
  for (const placement::TableSummary& table : summarize(problem, way.proposal.plan))
    page += fmt::format(
        "<tr><td class=\"text\">{}</td><td>{}</td><td>{}</td><td>{:.4g}</td><td>{}"
        "</td><td class=\"text\">{}</td></tr>",
        escaped(table.table), table.rows, table.dim, table.bytes / kMiB, table.copied,
        escaped(table.rule));
  page += "</table></div>";
}

}  // namespace

std::string placement_page(const std::string& name, const placement::Problem& problem,
                           const std::vector<PlannedWay>& ways,
                           const std::vector<std::string>& assumed) {
  std::string page = page_head("Where the rows of " + name + " go");
  page += fmt::format(
      "<p>{} tables, {:.4g} MiB of rows, {} devices, {} samples of a batch each. All "
      "figures are predicted from counts of {} samples.</p>",
      problem.tables.size(), static_cast<double>(problem.total_bytes()) / kMiB, problem.devices(),
      problem.samples, problem.counts.samples);
  if (!assumed.empty()) page += "<p>What is assumed:</p><ul>";
  for (const std::string& line : assumed) page += "<li>" + escaped(line) + "</li>";
  if (!assumed.empty()) page += "</ul>";
  append_summary(page, ways);
  for (const Quantity& quantity : quantities()) append_bars(page, ways, quantity);
  append_all_pairs(page, ways);
  for (const PlannedWay& way : ways) append_tables(page, problem, way);
  return page + kPageEnd;
}

}  // namespace recmill::cli
