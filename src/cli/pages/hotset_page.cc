// SPDX-License-Identifier: Apache-2.0
#include "cli/pages/hotset_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "page/chart.h"
#include "page/page.h"

namespace recmill::cli {
namespace {

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string table_of(const HotsetPage& of) {
  constexpr size_t kShown = 40;
  std::string html =
      "<div class=\"scroll\"><table><tr><th>cutoff</th><th>hot rows</th><th>bytes</th>"
      "<th>hot inputs</th><th>far lookups</th></tr>\n";
  const size_t step = std::max<size_t>(1, (of.curve.size() + kShown - 1) / kShown);
  for (size_t i = 0; i < of.curve.size(); ++i) {
    const auto& [cutoff, figures] = of.curve[i];
    if (i % step != 0 && figures != of.chosen) continue;
    html += fmt::format(
        "<tr><td>{}{}</td><td>{}</td><td>{}</td><td>{} ({:.2f} %)</td><td>{} ({:.2f} "
        "%)</td></tr>\n",
        cutoff, figures == of.chosen ? ", chosen" : "", figures.hot_rows,
        page::bytes_text(static_cast<double>(figures.hot_bytes)), figures.hot_inputs,
        share(figures.hot_inputs, of.inputs), figures.far_lookups,
        share(figures.far_lookups, of.lookups));
  }
  return html + "</table></div>\n";
}

}  // namespace

std::string hotset_page(const HotsetPage& of) {
  std::string html = page::page_head(of.name + ": which rows are hot");
  html += fmt::format(
      "<p>A row is hot when it is looked up at least so often, the cutoff; an input is hot when "
      "all "
      "its lookups are of hot rows (FAE, section III). Of {} inputs {} are hot with the chosen "
      "rows, which take {}; {} of {} lookups are of other rows.</p>\n",
      of.inputs, of.chosen.hot_inputs, page::bytes_text(static_cast<double>(of.chosen.hot_bytes)),
      of.chosen.far_lookups, of.lookups);
  page::ChartSeries inputs{"hot inputs", 0, false, {}}, near{"lookups of hot rows", 2, false, {}};
  for (auto point = of.curve.rbegin(); point != of.curve.rend(); ++point) {
    const double mib = static_cast<double>(point->second.hot_bytes) / 1048576.0;
    inputs.points.push_back({mib, share(point->second.hot_inputs, of.inputs)});
    near.points.push_back({mib, 100.0 - share(point->second.far_lookups, of.lookups)});
  }
  html += page::panels({page::line_chart("Share that is hot, percent", "MiB of hot rows",
                                         {std::move(inputs), std::move(near)})});
  return html + "<h2>Cutoffs</h2>\n" + table_of(of) + page::kPageEnd;
}

}  // namespace recmill::cli
