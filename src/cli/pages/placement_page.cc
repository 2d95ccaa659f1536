// SPDX-License-Identifier: Apache-2.0
#include "cli/pages/placement_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "page/chart.h"
#include "page/page.h"

namespace recmill::cli {
namespace {

using placement::PlannedWay;
using placement::Rating;

constexpr size_t kDevicesInPictures = 32;

std::string milliseconds(double seconds) {
  return page::time_text(seconds * 1e9);
}

/// One quantity of a device: what it is called, how its values are written, and its value.
struct Quantity {
  const char* name;
  std::string (*text)(double);
  int color;
  std::function<double(const placement::DeviceRating&)> of;
};

const std::vector<Quantity>& quantities() {
  static const std::vector<Quantity> all{
      {"Memory", page::bytes_text, 0, [](const auto& d) { return d.memory; }},
      {"Rows looked up, of a batch", page::bytes_text, 2,
       [](const auto& d) { return d.looked_up; }},
      {"Rows sent and received, time of a batch", milliseconds, 1,
       [](const auto& d) { return d.fetch_seconds; }},
      {"Gradients of rows, time of a batch", milliseconds, 3,
       [](const auto& d) { return d.reduce_seconds; }}};
  return all;
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

void append_summary(std::string& page, const std::vector<PlannedWay>& ways) {
  page +=
      "<h2>Planners</h2><p>Largest value of a device, and in brackets the degree of balance, "
      "smallest by largest. A pair: what one device fetches from another.</p><div "
      "class=\"scroll\"><table><tr><th class=\"text\">planner</th><th>predicted, a batch</th>"
      "<th>memory</th><th>lookups</th><th>communication</th><th>a pair, mean</th>"
      "<th>copied rows</th><th>to plan, s</th><th class=\"text\"></th></tr>";
  for (const PlannedWay& way : ways) {
    page += fmt::format("<tr><td class=\"text\">{}</td>", page::escaped(way.title()));
    if (!way.refused.empty()) {
      page +=
          fmt::format("<td class=\"text\" colspan=\"8\">{}</td></tr>", page::escaped(way.refused));
      continue;
    }
    const Rating& r = way.rating;
    page += fmt::format(
        "<td>{}</td><td>{} ({})</td><td>{} ({})</td><td>{} ({})</td><td>{} ({})</td>"
        "<td>{}</td><td>{:.2f}</td><td class=\"text\">{}</td></tr>",
        milliseconds(r.seconds), page::bytes_text(r.memory.largest), percent(r.memory.degree()),
        page::bytes_text(r.lookups.largest), percent(r.lookups.degree()),
        milliseconds(r.communication.largest), percent(r.communication.degree()),
        page::bytes_text(r.pair_bytes.mean), percent(r.pair_bytes.degree()), r.copied_rows,
        way.seconds, page::escaped(r.does_not_fit()));
  }
  page += "</table></div>";
}

// A bar a planner: full up to the device with the least, pale up to the one with the most.
std::string bars_of(const std::vector<PlannedWay>& ways, const Quantity& quantity) {
  std::vector<page::Bar> bars;
  double largest = 0;
  for (const PlannedWay& way : ways) {
    if (!way.refused.empty()) continue;
    page::Bar bar{way.title(), "", "", {}};
    std::vector<double> values;
    for (size_t d = 0; d < way.rating.devices.size(); ++d) {
      values.push_back(quantity.of(way.rating.devices[d]));
      if (d < kDevicesInPictures)
        bar.title +=
            fmt::format("{}device {}: {}", d > 0 ? "; " : "", d, quantity.text(values.back()));
    }
    const auto [least, most] = std::ranges::minmax(values);
    largest = std::max(largest, most);
    const std::string color = fmt::format("var(--c{})", quantity.color);
    bar.pieces = {{least, color, false}, {most - least, color, true}};
    bar.value = quantity.text(most);
    bars.push_back(std::move(bar));
  }
  if (largest <= 0) return "";
  for (page::Bar& bar : bars)
    for (page::BarPiece& piece : bar.pieces) piece.share /= largest;
  return fmt::format("<figure><h3>{}</h3>{}</figure>\n", quantity.name, page::bar_list(bars));
}

void append_bars(std::string& page, const std::vector<PlannedWay>& ways) {
  std::vector<std::string> figures;
  for (const Quantity& quantity : quantities()) figures.push_back(bars_of(ways, quantity));
  page +=
      "<h2>Devices</h2><p>The value is that of the device with the most; full colour goes to the "
      "one with the least.</p>" +
      page::panels(figures);
}

// What each device fetches from each other one; darker is more.
void append_pairs(std::string& page, const PlannedWay& way, double largest, double cell) {
  const size_t devices = way.rating.devices.size();
  for (size_t to = 0; to < devices; ++to) {
    for (size_t from = 0; from < devices; ++from) {
      if (to == from) continue;
      const double value = way.rating.fetched[to * devices + from];
      page += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"var(--c0)\" "
          "fill-opacity=\"{:.3f}\"><title>{}: device {} fetches {} from device "
          "{}</title></rect>",
          12 + cell * static_cast<double>(from), 12 + cell * static_cast<double>(to), cell - 1,
          cell - 1, largest > 0 ? 0.04 + 0.96 * value / largest : 0, page::escaped(way.title()), to,
          page::bytes_text(value), from);
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
  constexpr double kSide = 212;
  page += fmt::format(
      "<h2>Rows fetched by pairs of devices</h2><p>Lines fetch, columns are fetched "
      "from; the darkest is {} a batch.</p><div class=\"panels small\">",
      page::bytes_text(largest));
  for (const PlannedWay* way : shown) {
    const double cell = (kSide - 24) / static_cast<double>(way->rating.devices.size());
    page += fmt::format("<figure><h3>{}</h3><svg viewBox=\"0 0 {} {}\">",
                        page::escaped(way->title()), kSide, kSide);
    append_pairs(page, *way, largest, cell);
    page += "</svg></figure>";
  }
  page += "</div>";
}

void append_tables(std::string& page, const placement::Problem& problem, const PlannedWay& way) {
  if (!way.refused.empty()) return;
  page += fmt::format("<h2>{}</h2>", page::escaped(way.title()));
  if (way.proposal.access_bounded_share > 0)
    page += fmt::format(
        "<p>{} partitions; those bounded by accesses take {} of the fetches and {} of "
        "the memory.</p>",
        way.proposal.partitions, percent(way.proposal.access_bounded_share),
        percent(way.proposal.access_bounded_memory));
  for (const std::string& note : way.proposal.notes) page += "<p>" + page::escaped(note) + "</p>";
  page +=
      "<div class=\"scroll\"><table><tr><th class=\"text\">table</th><th>rows</th><th>dim</th>"
      "<th>bytes</th><th>copied rows</th><th class=\"text\">where</th></tr>";
  for (const placement::TableSummary& table : summarize(problem, way.proposal.plan))
    page += fmt::format(
        "<tr><td class=\"text\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}"
        "</td><td class=\"text\">{}</td></tr>",
        page::escaped(table.table), table.rows, table.dim, page::bytes_text(table.bytes),
        table.copied, page::escaped(table.rule));
  page += "</table></div>";
}

}  // namespace

std::string placement_page(const std::string& name, const placement::Problem& problem,
                           const std::vector<PlannedWay>& ways,
                           const std::vector<std::string>& assumed) {
  std::string page = page::page_head("Where the rows of " + name + " go");
  page += fmt::format(
      "<p>{} table{}, {} of rows, {} device{}, {} samples of a batch each. All "
      "figures are predicted from counts of {} samples.</p>",
      problem.tables.size(), problem.tables.size() == 1 ? "" : "s",
      page::bytes_text(static_cast<double>(problem.total_bytes())), problem.devices(),
      problem.devices() == 1 ? "" : "s", problem.samples, problem.counts.samples);
  std::string advice = recommendation(ways);
  if (!advice.empty()) {
    advice[0] = 'U';  // of "use"
    page += "<p class=\"advice\">" + page::escaped(advice) + ".</p>";
  }
  if (!assumed.empty()) page += "<p>What is assumed:</p><ul>";
  for (const std::string& line : assumed) page += "<li>" + page::escaped(line) + "</li>";
  if (!assumed.empty()) page += "</ul>";
  append_summary(page, ways);
  append_bars(page, ways);
  append_all_pairs(page, ways);
  for (const PlannedWay& way : ways) append_tables(page, problem, way);
  return page + page::kPageEnd;
}

}  // namespace recmill::cli
