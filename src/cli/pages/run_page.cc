// SPDX-License-Identifier: Apache-2.0
#include "cli/pages/run_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json/json.h"
#include "cli/pages/profile_page.h"
#include "page/chart.h"
#include "page/page.h"

namespace recmill::cli {
namespace {

std::string seconds_text(double seconds) {
  if (seconds >= 7200.0) return fmt::format("{:.3g} h", seconds / 3600.0);
  if (seconds >= 120.0) return fmt::format("{:.3g} min", seconds / 60.0);
  return fmt::format("{:.3g} s", seconds);
}

std::string figures(const Json& summary) {
  std::string html = "<ul class=\"figures\">";
  const auto figure = [&](const std::string& value, const std::string& what) {
    html += "<li><b>" + page::escaped(value) + "</b>" + page::escaped(what) + "</li>";
  };
  const auto number = [&](const char* key, const char* format, const char* what) {
    if (summary.contains(key) && summary[key].is_number())
      figure(fmt::format(fmt::runtime(format), summary[key].get<double>()), what);
  };
  number("samples_per_second", "{:.0f}", "samples a second");
  number("iterations", "{:.0f}", "iterations");
  number("samples", "{:.0f}", "samples");
  if (summary.contains("seconds")) figure(seconds_text(summary["seconds"]), "of training");
  number("log_loss", "{:.5f}", "log loss");
  number("auc", "{:.5f}", "AUC");
  number("normalized_entropy", "{:.4f}", "normalized entropy");
  for (const auto& [key, value] : summary.items()) {
    if (!key.starts_with("best_") || !value.is_number()) continue;
    std::string name = key;
    std::ranges::replace(name, '_', ' ');
    figure(value.is_number_integer() ? value.dump() : fmt::format("{:.5f}", value.get<double>()),
           name);
  }
  number("ranks", "{:.0f}", summary.value("ranks", 0) == 1 ? "rank" : "ranks");
  number("threads", "{:.0f}",
         summary.value("threads", 0) == 1 ? "thread a process" : "threads a process");
  return html + "</ul>\n";
}

/// One metric of the lines of a kind.
page::ChartSeries series_of(const std::vector<Json>& lines, const std::string& kind,
                            const std::string& metric, const std::string& name, int color) {
  page::ChartSeries series{name, color, kind == "eval", {}};
  for (const Json& line : lines) {
    if (line.value("kind", "") != kind || !line.contains(metric) || !line[metric].is_number())
      continue;
    series.points.push_back(
        {static_cast<double>(line.value("iteration", int64_t{0})), line[metric].get<double>()});
  }
  return series;
}

std::string curves(const std::vector<Json>& lines) {
  std::vector<std::string> charts;
  const auto both = [&](const std::string& title, const std::string& metric) {
    charts.push_back(
        page::line_chart(title, "iterations",
                         {series_of(lines, "train", metric, "training, before its step", 0),
                          series_of(lines, "eval", metric, "evaluation", 1)}));
  };
  both("Log loss", "log_loss");
  both("AUC", "auc");
  charts.push_back(
      page::line_chart("Samples a second", "iterations",
                       {series_of(lines, "train", "samples_per_second", "samples a second", 2)}));
  return page::panels(charts);
}

}  // namespace

std::string run_page(const RunPage& run) {
  std::string html = page::page_head(run.name) + figures(run.summary);
  if (run.summary.contains("ending"))
    html += fmt::format("<p>Ending: {}. Commit {}.</p>\n",
                        page::escaped(run.summary["ending"].get<std::string>()),
                        page::escaped(run.summary.value("commit", "unknown")));
  html += "<h2>Metrics</h2>\n" + curves(run.metrics);
  if (run.summary.contains("profile")) html += profile_sections(run.summary["profile"]);
  return html + "<h2>Configuration</h2>\n<details><summary>as resolved</summary><pre>" +
         page::escaped(run.config) + "</pre></details>\n" + page::kPageEnd;
}

}  // namespace recmill::cli
