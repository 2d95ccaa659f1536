// SPDX-License-Identifier: Apache-2.0
// Pictures of HTML pages that are legible from 400 pixels on: a chart is narrow and several are
// beside each other where there is room; what is written at bars is text of the page, not of a
// picture that shrinks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace recmill::page {

struct ChartPoint {
  double x = 0.0, y = 0.0;
};

struct ChartSeries {
  std::string name;
  int color = 0;  // of the page's colours
  bool dots = false;
  std::vector<ChartPoint> points;  // x ascending
};

/// One figure: a title, a legend where there are several series, curves between axes with round
/// figures; x are counts, from 0 on. Points that are not finite are left out. Empty where no point
/// is left.
std::string line_chart(const std::string& title, const std::string& x_name,
                       const std::vector<ChartSeries>& series);

/// Figures one after the other, as many beside each other as the window has room for.
std::string panels(const std::vector<std::string>& figures);

struct BarPiece {
  double share = 0.0;  // of the whole width, 0 to 1
  std::string color;   // as CSS has it
  bool pale = false;
};
struct Bar {
  std::string label, value, title;
  std::vector<BarPiece> pieces;  // from the left
};
/// A line each: label, bar, value.
std::string bar_list(const std::vector<Bar>& bars);

/// From the least to the largest round figure, 1, 2 or 5 times a power of ten apart, at most
/// `count` steps; all of [least, most] lies between the first and the last.
std::vector<double> round_ticks(double least, double most, int count);

/// "12.5 k": four digits, from ten thousand on in thousands, millions or billions (k, M, G).
std::string figure_text(double value);

/// "1.2 KiB": four digits in the unit that suits.
std::string bytes_text(double bytes);

/// A coloured square and a word for each.
std::string legend(const std::vector<std::pair<std::string, std::string>>& names_and_colors);

}  // namespace recmill::page
