// SPDX-License-Identifier: Apache-2.0
#include "page/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "page/page.h"

namespace recmill::page {
namespace {

constexpr double kWidth = 520.0, kHeight = 250.0;  // of a chart, in its own units
constexpr double kLeft = 62.0, kRight = 508.0, kTop = 12.0, kBottom = 200.0;  // of its curves

constexpr size_t kFewPoints = 10;  // are drawn as dots too: one alone makes no curve

bool is_finite(const ChartPoint& point) {
  return std::isfinite(point.x) && std::isfinite(point.y);
}

struct Axis {
  std::vector<double> ticks;
  double from = 0.0, to = 0.0;  // where the first and the last tick are drawn
  double at(double value) const {
    const double span = std::max(ticks.back() - ticks.front(), 1e-300);
    return from + (to - from) * (value - ticks.front()) / span;
  }
};

std::string grid(const Axis& x, const Axis& y, const std::string& x_name) {
  std::string svg;
  for (const double tick : y.ticks) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{:.0f}\" x2=\"{:.0f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text class=\"dim\" x=\"{:.0f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        kLeft, kRight, y.at(tick), y.at(tick), kLeft - 6.0, y.at(tick) + 4.5, figure_text(tick));
  }
  for (const double tick : x.ticks) {
    svg += fmt::format(
        "<text class=\"dim\" x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"{}\">{}</text>\n", x.at(tick),
        kBottom + 20.0, tick == x.ticks.back() ? "end" : "middle", figure_text(tick));
  }
  return svg + fmt::format(
                   "<text class=\"dim\" x=\"{:.0f}\" y=\"{:.0f}\" "
                   "text-anchor=\"middle\">{}</text>\n",
                   (kLeft + kRight) / 2.0, kBottom + 42.0, escaped(x_name));
}

std::string curve(const ChartSeries& series, const Axis& x, const Axis& y) {
  std::string line, dots;
  for (const ChartPoint& point : series.points) {
    if (!is_finite(point)) continue;
    line += fmt::format("{}{:.1f},{:.1f}", line.empty() ? "" : " ", x.at(point.x), y.at(point.y));
    dots += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"var(--c{})\">"
        "<title>{}: {:.6g}</title></circle>\n",
        x.at(point.x), y.at(point.y), series.color, escaped(series.name), point.y);
  }
  return fmt::format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"var(--c{})\" "
      "stroke-width=\"2\"/>\n{}",
      line, series.color, series.dots || series.points.size() < kFewPoints ? dots : "");
}

}  // namespace

std::string figure_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e9) return fmt::format("{:.4g} G", value * 1e-9);
  if (size >= 1e6) return fmt::format("{:.4g} M", value * 1e-6);
  if (size >= 1e4) return fmt::format("{:.4g} k", value * 1e-3);
  return fmt::format("{:.4g}", value);
}

std::vector<double> round_ticks(double least, double most, int count) {
  if (!(most > least)) {  // one value: a little to both sides of it
    const double around = least == 0.0 ? 1.0 : std::abs(least) * 0.1;
    return round_ticks(least - around, least + around, count);
  }
  const double rough = (most - least) / count;
  double step = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double times : {1.0, 2.0, 5.0, 10.0, 20.0}) {
    const double wide = step * times;
    const double first = std::floor(least / wide), last = std::ceil(most / wide);
    if (last - first > count && times < 20.0) continue;
    step = wide;
    break;
  }
  std::vector<double> ticks;
  const double first = std::floor(least / step), last = std::ceil(most / step);
  for (double tick = first; tick <= last; tick += 1.0) ticks.push_back(tick * step);
  return ticks;
}

std::string line_chart(const std::string& title, const std::string& x_name,
                       const std::vector<ChartSeries>& series) {
  std::vector<ChartPoint> all;
  std::vector<std::pair<std::string, std::string>> names;
  for (const ChartSeries& of : series) {
    std::ranges::copy_if(of.points, std::back_inserter(all), is_finite);
    if (std::ranges::any_of(of.points, is_finite))
      names.emplace_back(of.name, fmt::format("var(--c{})", of.color));
  }
  if (all.empty()) return "";
  const ChartPoint right = std::ranges::max(all, {}, &ChartPoint::x);
  const auto [low, high] = std::ranges::minmax(all, {}, &ChartPoint::y);
  std::vector<double> counts = round_ticks(0.0, std::max(right.x, 1.0), 5);
  std::erase_if(counts, [](double count) { return count != std::floor(count); });
  const Axis x{std::move(counts), kLeft, kRight};
  const Axis y{round_ticks(low.y, high.y, 5), kBottom, kTop};
  std::string html = fmt::format(
      "<figure><h3>{}</h3>{}<svg viewBox=\"0 0 {:.0f} {:.0f}\" "
      "role=\"img\" aria-label=\"{}\">\n{}",
      escaped(title), names.size() > 1 ? legend(names) : "", kWidth, kHeight, escaped(title),
      grid(x, y, x_name));
  for (const ChartSeries& of : series) html += curve(of, x, y);
  return html + "</svg></figure>\n";
}

std::string panels(const std::vector<std::string>& figures) {
  std::string html = "<div class=\"panels\">\n";
  for (const std::string& figure : figures) html += figure;
  return html + "</div>\n";
}

std::string bar_list(const std::vector<Bar>& bars) {
  std::string html = "<div class=\"bars\">\n";
  for (const Bar& bar : bars) {
    html += fmt::format("<span class=\"label\">{}</span><span class=\"bar\" title=\"{}\">",
                        escaped(bar.label), escaped(bar.title));
    for (const BarPiece& piece : bar.pieces) {
      html += fmt::format("<i style=\"width:{:.2f}%;background:{}{}\"></i>",
                          100.0 * std::clamp(piece.share, 0.0, 1.0), piece.color,
                          piece.pale ? ";opacity:.35" : "");
    }
    html += fmt::format("</span><span class=\"value\">{}</span>\n", escaped(bar.value));
  }
  return html + "</div>\n";
}

std::string bytes_text(double bytes) {
  static constexpr std::array kUnits{"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024.0 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024.0;
  return fmt::format("{:.4g} {}", bytes, kUnits[unit]);
}

std::string legend(const std::vector<std::pair<std::string, std::string>>& names_and_colors) {
  std::string html = "<p class=\"legend\">";
  for (const auto& [name, color] : names_and_colors) {
    html += fmt::format("<span><i style=\"background:{}\"></i>{}</span> ", color, escaped(name));
  }
  return html + "</p>\n";
}

}  // namespace recmill::page
