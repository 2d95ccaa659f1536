// SPDX-License-Identifier: Apache-2.0
#include "cli/profile_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/page.h"

namespace recmill::cli {
namespace {

constexpr double kMebi = 1024.0 * 1024.0;
constexpr double kWidth = 1060.0, kLane = 34.0, kTop = 40.0;  // of the picture, in pixels

/// One stage of one rank.
struct Line {
  std::string rank, stage;
  double seconds = 0.0, share = 0.0, waiting = 0.0, hidden = 0.0;
  double sent = 0.0, received = 0.0;  // MiB
};

/// Those in which time was spent.
std::vector<Line> lines_of(const Json& profile) {
  std::vector<Line> lines;
  for (const Json& rank : profile) {
    const double all = std::max(rank["seconds"].get<double>(), 1e-12);
    for (const auto& [stage, of] : rank["stages"].items()) {
      const double seconds = of["seconds"].get<double>();
      if (seconds == 0.0) continue;
      lines.push_back({rank["name"].get<std::string>(), stage, seconds, seconds / all,
                       of["waiting"].get<double>(), of["hidden"].get<double>(),
                       of["sent"].get<double>() / kMebi, of["received"].get<double>() / kMebi});
    }
  }
  return lines;
}

/// Stages in the order of an iteration; each has a colour.
std::vector<std::string> stages_of(const Json& profile) {
  std::vector<std::string> names;
  if (profile.empty()) return names;
  for (const auto& [stage, of] : profile[0]["stages"].items()) {
    if (of["seconds"].get<double>() > 0.0) names.push_back(stage);
  }
  return names;
}

std::string color(const std::vector<std::string>& stages, const std::string& stage) {
  const auto at = std::ranges::find(stages, stage) - stages.begin();
  return fmt::format("hsl({} 55% 50%)", at * 360 / std::max<int64_t>(1, std::ssize(stages)));
}

/// The time that all ranks have spans of.
std::pair<double, double> window_of(const Json& profile) {
  double begin = 0.0, end = 1e300;
  for (const Json& rank : profile) {
    const Json& spans = rank["spans"];
    if (spans.empty()) continue;
    begin = std::max(begin, spans.front()[1].get<double>());
    end = std::min(end, spans.back()[2].get<double>());
  }
  return {begin, std::max(end, begin + 1e-9)};
}

std::string rectangle(double x, double y, double width, const std::string& fill, double opacity,
                      const std::string& title) {
  return fmt::format(
      "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\" fill=\"{}\" "
      "fill-opacity=\"{:.2g}\"><title>{}</title></rect>\n",
      x, y, width, kLane - 10.0, fill, opacity, escaped(title));
}

/// One rank's spans inside the window: its computing first, then, pale, its waiting, of each.
std::string lane(const Json& rank, double y, std::pair<double, double> window,
                 const std::vector<std::string>& stages) {
  std::string made = fmt::format("<text x=\"0\" y=\"{:.0f}\">{}</text>\n", y - 4.0,
                                 escaped(rank["name"].get<std::string>()));
  const double scale = kWidth / (window.second - window.first);
  for (const Json& span : rank["spans"]) {
    const double begin = span[1].get<double>(), end = span[2].get<double>();
    if (end <= window.first || begin >= window.second) continue;
    const std::string stage = span[0].get<std::string>();
    const double waiting =
        stage == "data" ? end - begin : std::min(span[3].get<double>(), end - begin);
    const std::string title = fmt::format("{}: {}, of it waiting {}", stage,
                                          time_text((end - begin) * 1e9), time_text(waiting * 1e9));
    const double left = (std::max(begin, window.first) - window.first) * scale;
    const double right = (std::min(end, window.second) - window.first) * scale;
    const double computing = (right - left) * (1.0 - waiting / std::max(end - begin, 1e-12));
    made += rectangle(left, y, computing, color(stages, stage), 1.0, title);
    made +=
        rectangle(left + computing, y, right - left - computing, color(stages, stage), 0.3, title);
  }
  return made;
}

std::string legend(const std::vector<std::string>& stages) {
  std::string made = "<p>";
  for (const std::string& stage : stages) {
    made += fmt::format("<span style=\"color:{}\">&#9632;</span> {} &nbsp; ", color(stages, stage),
                        escaped(stage));
  }
  return made + "</p>\n";
}

std::string timeline(const Json& profile) {
  const auto stages = stages_of(profile);
  const auto window = window_of(profile);
  const double pitch = kLane + 18.0;
  std::string html = legend(stages);
  html += fmt::format("<figure><svg viewBox=\"0 0 {:.0f} {:.0f}\">\n", kWidth,
                      kTop + pitch * static_cast<double>(profile.size()));
  for (size_t rank = 0; rank < profile.size(); ++rank)
    html += lane(profile[rank], kTop - 12.0 + pitch * static_cast<double>(rank), window, stages);
  return html +
         fmt::format(
             "</svg><figcaption>The last {} of training. Full colour: computing; pale: waiting "
             "for other ranks, or for data; its place within a stage is not known, so it is "
             "drawn last.</figcaption></figure>\n",
             time_text((window.second - window.first) * 1e9));
}

std::string table(const std::vector<Line>& lines) {
  std::string html =
      "<div class=\"scroll\"><table><tr><th class=\"text\">rank</th><th class=\"text\">stage</th>"
      "<th>seconds</th><th>share</th><th>of it waiting</th><th>hidden</th><th>sent, "
      "MiB</th><th>received, "
      "MiB</th></tr>\n";
  for (const Line& line : lines) {
    html += fmt::format(
        "<tr><td class=\"text\">{}</td><td class=\"text\">{}</td><td>{:.3f}</td>"
        "<td>{:.1f} %</td><td>{:.3f}</td><td>{:.3f}</td><td>{:.2f}</td><td>{:.2f}</td></tr>\n",
        escaped(line.rank), escaped(line.stage), line.seconds, line.share * 100, line.waiting,
        line.hidden, line.sent, line.received);
  }
  return html +
         "</table></div>\n<p>Hidden: seconds that went on beside other stages, on top of those "
         "given.</p>\n";
}

/// What a rank's process held in memory at most, in MiB.
struct Memory {
  std::string rank;
  double peak = 0.0, rows = 0.0;
  double beyond() const { return peak - rows; }
};

std::vector<Memory> memory_of(const Json& profile) {
  std::vector<Memory> all;
  for (const Json& rank : profile)
    all.push_back({rank["name"].get<std::string>(), rank["peak_bytes"].get<double>() / kMebi,
                   rank["row_bytes"].get<double>() / kMebi});
  return all;
}

std::string memory_table(const std::vector<Memory>& ranks) {
  std::string html =
      "<div class=\"scroll\"><table><tr><th class=\"text\">rank</th><th>peak of its process, "
      "MiB</th><th>its rows, MiB</th><th>beyond them, MiB</th></tr>\n";
  for (const Memory& of : ranks) {
    html += fmt::format(
        "<tr><td class=\"text\">{}</td><td>{:.1f}</td><td>{:.1f}</td><td>{:.1f}</td></tr>\n",
        escaped(of.rank), of.peak, of.rows, of.beyond());
  }
  return html + "</table></div>\n";
}

}  // namespace

std::string profile_text(const Json& profile) {
  std::string text =
      fmt::format("{:<24} {:<16} {:>10} {:>7} {:>10} {:>10} {:>12} {:>12}\n", "rank", "stage",
                  "seconds", "share", "waiting", "hidden", "sent MiB", "received MiB");
  for (const Line& line : lines_of(profile)) {
    text +=
        fmt::format("{:<24} {:<16} {:>10.3f} {:>5.1f} % {:>10.3f} {:>10.3f} {:>12.2f} {:>12.2f}\n",
                    line.rank, line.stage, line.seconds, line.share * 100, line.waiting,
                    line.hidden, line.sent, line.received);
  }
  text += fmt::format("{:<24} {:>16} {:>10} {:>12}\n", "rank", "peak memory MiB", "rows MiB",
                      "beyond MiB");
  for (const Memory& of : memory_of(profile)) {
    text += fmt::format("{:<24} {:>16.1f} {:>10.1f} {:>12.1f}\n", of.rank, of.peak, of.rows,
                        of.beyond());
  }
  return text;
}

std::string profile_page(const std::string& name, const Json& profile) {
  return page_head(name + ": what ranks spent their time on") + timeline(profile) +
         "<h2>Stages</h2>\n" + table(lines_of(profile)) + "<h2>Memory</h2>\n" +
         memory_table(memory_of(profile)) + kPageEnd;
}

}  // namespace recmill::cli
