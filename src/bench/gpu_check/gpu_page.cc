// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu_check/gpu_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/json/json.h"
#include "page/page.h"

namespace recmill::bench {
namespace {

constexpr const char* kTests = "gpu_check";

std::string text_of(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found == line.end() || !found->is_string() ? "" : found->get<std::string>();
}
double number_of(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found == line.end() || !found->is_number() ? 0.0 : found->get<double>();
}
bool is_test(const Json& line) {
  return text_of(line, "bench") == kTests;
}

/// "0.347", three digits and more where the number has them before its point.
std::string number_text(double value) {
  return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

/// One bar of a case: ours, or a rival's.
struct Bar {
  std::string who;
  double value = 0.0;
  double spread = 0.0;
};
/// Times of one case, or samples a second, and the limit that the same run measured.
struct CaseBars {
  std::string name, unit;
  double limit = 0.0;
  std::vector<Bar> bars;
};

/// Every case that has a time or a rate. A rival's time is its ratio times ours; its rate is that
/// part of ours.
std::vector<CaseBars> bars_of(std::span<const Json> lines) {
  std::vector<CaseBars> cases;
  for (const Json& line : lines) {
    const std::string metric = text_of(line, "metric");
    const bool is_rate = metric.find("samples_per_second") != std::string::npos;
    if (!is_rate && metric.find("time_per") == std::string::npos) continue;
    const std::string name = text_of(line, "bench") + " " + text_of(line, "case");
    auto of = std::ranges::find(cases, name, &CaseBars::name);
    const double ours = number_of(line, "value"), ratio = number_of(line, "ratio");
    if (of == cases.end()) {
      cases.push_back({name, text_of(line, "unit"), number_of(line, "limit"), {}});
      of = std::prev(cases.end());
      of->bars.push_back({"Recmill", ours, number_of(line, "spread")});
    }
    if (const std::string rival = text_of(line, "rival"); !rival.empty() && ratio > 0)
      of->bars.push_back({rival, is_rate ? ours / ratio : ours * ratio, number_of(line, "spread")});
  }
  return cases;
}

/// A bar for each contender; the line is the limit, which no time can be left of.
std::string picture(const CaseBars& of) {
  constexpr double kLeft = 260, kWidth = 640, kLine = 24, kTop = 14;
  double most = of.limit;
  for (const Bar& bar : of.bars) most = std::max(most, bar.value * (1 + bar.spread));
  if (most <= 0) return "";
  const double bottom = kTop + kLine * static_cast<double>(of.bars.size());
  std::string svg =
      fmt::format("<figure><svg viewBox=\"0 0 1060 {:.0f}\" role=\"img\" aria-label=\"{}\">\n",
                  bottom + 22, page::escaped(of.name));
  for (size_t i = 0; i < of.bars.size(); ++i) {
    const Bar& bar = of.bars[i];
    const double y = kTop + kLine * static_cast<double>(i), width = kWidth * bar.value / most;
    const double half = width * bar.spread;
    svg += fmt::format(
        "<text x=\"{}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text><rect x=\"{}\" y=\"{:.0f}\" "
        "width=\"{:.1f}\" height=\"15\" fill=\"var(--c{})\"/><line x1=\"{:.1f}\" y1=\"{:.1f}\" "
        "x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"var(--ink)\"/><text x=\"{:.1f}\" y=\"{:.0f}\">{} "
        "{}</text>\n",
        kLeft - 10, y + 12, page::escaped(bar.who), kLeft, y, width, std::min<size_t>(i, 5),
        kLeft + width - half, y + 7.5, kLeft + width + half, y + 7.5, kLeft + width + half + 6,
        y + 12, number_text(bar.value), page::escaped(of.unit));
  }
  if (of.limit > 0) {
    const double x = kLeft + kWidth * of.limit / most;
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"4\" x2=\"{0:.1f}\" y2=\"{1:.0f}\" stroke=\"var(--ink)\" "
        "stroke-dasharray=\"4 3\"/><text class=\"dim\" x=\"{0:.1f}\" y=\"{2:.0f}\" "
        "text-anchor=\"middle\">limit {3} {4}</text>\n",
        x, bottom + 2, bottom + 16, number_text(of.limit), page::escaped(of.unit));
  }
  return svg + "</svg></figure>\n";
}

std::string figures(std::span<const Json> lines) {
  double passed = 0, tests = 0;
  for (const Json& line : lines) {
    if (!is_test(line)) continue;
    passed += number_of(line, "value");
    tests += number_of(line, "limit");
  }
  std::string html = fmt::format(
      "<ul class=\"figures\"><li><b>{:.0f} of {:.0f}</b>tests passed</li>", passed, tests);
  for (const Json& line : lines) {
    if (is_test(line) || !text_of(line, "rival").empty()) continue;
    const double of_limit = number_of(line, "of_limit");
    if (of_limit == 0) continue;
    html +=
        fmt::format("<li><b>{:.0f} %</b>of the limit, {}: {}</li>", 100 * of_limit,
                    page::escaped(text_of(line, "case")), page::escaped(text_of(line, "metric")));
  }
  return html + "</ul>\n";
}

std::string table(std::span<const Json> lines) {
  std::string html =
      "<h2>All figures</h2>\n<div class=\"scroll\"><table><thead><tr><th class=\"text\">bench</th>"
      "<th class=\"text\">case</th><th class=\"text\">metric</th><th>value</th>"
      "<th class=\"text\">unit</th><th class=\"text\">rival</th><th>ratio</th><th>spread</th>"
      "<th>limit</th><th>of it</th></tr></thead><tbody>\n";
  const auto cell = [](double value, double times, const char* unit) {
    return value == 0 ? std::string("<td></td>")
                      : fmt::format("<td>{}{}</td>", number_text(value * times), unit);
  };
  for (const Json& line : lines) {
    html += "<tr>";
    for (const char* key : {"bench", "case", "metric"})
      html += "<td class=\"text\">" + page::escaped(text_of(line, key)) + "</td>";
    html += fmt::format("<td>{}</td>", number_text(number_of(line, "value")));
    for (const char* key : {"unit", "rival"})
      html += "<td class=\"text\">" + page::escaped(text_of(line, key)) + "</td>";
    html += cell(number_of(line, "ratio"), 1, "") + cell(number_of(line, "spread"), 100, " %") +
            cell(number_of(line, "limit"), 1, "") + cell(number_of(line, "of_limit"), 100, " %") +
            "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace

std::string gpu_page(std::span<const Json> lines) {
  std::string device, commit;
  for (const Json& line : lines) {
    if (device.empty()) device = text_of(line, "device");
    if (commit.empty()) commit = text_of(line, "commit");
  }
  std::string html = page::page_head("Recmill on " + (device.empty() ? "no GPU" : device));
  html += fmt::format(
      "<p>What <code>make gpu-check</code> found at commit {}. Times are medians by the GPU's own "
      "clock, of training by the host's, with half the distance between their quartiles; ratios "
      "are a rival's time to ours. The limit of a time is that of moving its bytes, each address "
      "once, as fast as a copy moves them in the same run; that of a rate is the data "
      "sheet's.</p>\n",
      page::escaped(commit));
  html += figures(lines);
  for (const CaseBars& of : bars_of(lines))
    html += "<h3>" + page::escaped(of.name) + "</h3>\n" + picture(of);
  return html + table(lines) + page::kPageEnd;
}

}  // namespace recmill::bench
