// SPDX-License-Identifier: Apache-2.0
#include "cli/pages/profile_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "page/chart.h"
#include "page/page.h"

namespace recmill::cli {
namespace {

constexpr double kMebi = 1024.0 * 1024.0;
constexpr double kWidth = 1000.0, kLane = 22.0;  // of a lane, in its own units

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

/// A stage of the steady steps, of all of them together.
struct StageTime {
  double computing = 0.0, waiting = 0.0;
};

double waiting_of(const Json& span) {
  const double length = span[2].get<double>() - span[1].get<double>();
  return span[0].get<std::string>() == "data" ? length : std::min(span[3].get<double>(), length);
}

std::map<std::string, StageTime> times_of(const Json& rank) {
  std::map<std::string, StageTime> times;
  for (const Json& span : rank["spans"]) {
    StageTime& of = times[span[0].get<std::string>()];
    of.waiting += waiting_of(span);
    of.computing += span[2].get<double>() - span[1].get<double>() - waiting_of(span);
  }
  return times;
}

/// A bar a rank: one step on average, stage after stage, what waits pale.
std::string step_bars(const Json& profile, const std::vector<std::string>& stages) {
  double longest = 1e-12;
  std::vector<page::Bar> bars;
  for (const Json& rank : profile) {
    const auto steps = std::max<int64_t>(1, rank["steps"].get<int64_t>());
    page::Bar bar{rank["name"].get<std::string>(), "", "", {}};
    double all = 0.0;
    const auto times = times_of(rank);
    for (const std::string& stage : stages) {
      const auto found = times.find(stage);
      if (found == times.end()) continue;
      const double computing = found->second.computing / static_cast<double>(steps);
      const double waiting = found->second.waiting / static_cast<double>(steps);
      bar.pieces.push_back({computing, color(stages, stage), false});
      bar.pieces.push_back({waiting, color(stages, stage), true});
      bar.title += fmt::format("{}{} {}", bar.title.empty() ? "" : ", ", stage,
                               page::time_text((computing + waiting) * 1e9));
      all += computing + waiting;
    }
    bar.value = page::time_text(all * 1e9);
    longest = std::max(longest, all);
    if (!bar.pieces.empty()) bars.push_back(std::move(bar));
  }
  for (page::Bar& bar : bars)
    for (page::BarPiece& piece : bar.pieces) piece.share /= longest;
  return page::bar_list(bars);
}

/// The mean over ranks of what each stage of a step took.
std::string step_table(const Json& profile, const std::vector<std::string>& stages) {
  std::string html =
      "<div class=\"scroll\"><table><tr><th class=\"text\">stage of a step</th><th>time</th>"
      "<th>share</th><th>of it waiting</th></tr>\n";
  std::map<std::string, StageTime> sums;
  double all = 0.0, steps = 0.0;
  for (const Json& rank : profile) {
    steps += rank["steps"].get<double>();
    for (const auto& [stage, time] : times_of(rank)) {
      sums[stage].computing += time.computing;
      sums[stage].waiting += time.waiting;
      all += time.computing + time.waiting;
    }
  }
  for (const std::string& stage : stages) {
    const StageTime& of = sums[stage];
    const double seconds = of.computing + of.waiting;
    if (seconds == 0.0) continue;
    html +=
        fmt::format("<tr><td class=\"text\">{}</td><td>{}</td><td>{:.1f} %</td><td>{}</td></tr>\n",
                    page::escaped(stage), page::time_text(seconds / steps * 1e9),
                    100.0 * seconds / all, page::time_text(of.waiting / steps * 1e9));
  }
  return html + "</table></div>\n";
}

std::string rectangle(double x, double width, const std::string& fill, bool pale,
                      const std::string& title) {
  return fmt::format(
      "<rect x=\"{:.2f}\" y=\"0\" width=\"{:.2f}\" height=\"{:.0f}\" fill=\"{}\" "
      "fill-opacity=\"{}\"><title>{}</title></rect>\n",
      x, width, kLane, fill, pale ? "0.3" : "1", page::escaped(title));
}

/// One rank's spans inside the window: its computing first, then, pale, its waiting, of each.
std::string lane(const Json& rank, std::pair<double, double> window,
                 const std::vector<std::string>& stages) {
  std::string made = fmt::format(
      "<div class=\"lane\"><span>{}</span><svg viewBox=\"0 0 {:.0f} {:.0f}\" "
      "preserveAspectRatio=\"none\">\n",
      page::escaped(rank["name"].get<std::string>()), kWidth, kLane);
  const double scale = kWidth / (window.second - window.first);
  for (const Json& span : rank["spans"]) {
    const double begin = span[1].get<double>(), end = span[2].get<double>();
    if (end <= window.first || begin >= window.second) continue;
    const std::string stage = span[0].get<std::string>();
    const double waiting = waiting_of(span);
    const std::string title =
        fmt::format("{}: {}, of it waiting {}", stage, page::time_text((end - begin) * 1e9),
                    page::time_text(waiting * 1e9));
    const double left = (std::max(begin, window.first) - window.first) * scale;
    const double right = (std::min(end, window.second) - window.first) * scale;
    const double computing = (right - left) * (1.0 - waiting / std::max(end - begin, 1e-12));
    made += rectangle(left, computing, color(stages, stage), false, title);
    made +=
        rectangle(left + computing, right - left - computing, color(stages, stage), true, title);
  }
  return made + "</svg></div>\n";
}

std::string time_axis(double seconds) {
  constexpr int kSteps = 4;
  std::string made = "<div class=\"ticks\">";
  for (int tick = 0; tick <= kSteps; ++tick)
    made += fmt::format("<span>{}</span>", page::time_text(seconds * 1e9 * tick / kSteps));
  return made + "</div>\n";
}

std::string timeline(const Json& profile, const std::vector<std::string>& stages) {
  const auto window = window_of(profile);
  std::string html = "<figure>\n";
  for (const Json& rank : profile) html += lane(rank, window, stages);
  return html + time_axis(window.second - window.first) +
         "<figcaption>The last steps before an evaluation, a checkpoint or the end, those that "
         "nothing disturbed. Full colour: computing; pale: waiting for other ranks, or for data; "
         "where in a stage it waited is not known, so that is drawn last.</figcaption></figure>\n";
}

std::string steady_steps(const Json& profile) {
  const bool any = std::ranges::any_of(profile, [](const Json& rank) {
    return !rank["spans"].empty() && rank["steps"].get<int64_t>() > 0;
  });
  if (!any)
    return "<h2>A step</h2>\n<p>No step of training was a steady one: the first warms up, and "
           "evaluations and checkpoints disturb.</p>\n";
  const auto steps = profile[0]["steps"].get<int64_t>();
  const auto stages = stages_of(profile);
  std::vector<std::pair<std::string, std::string>> names;
  for (const std::string& stage : stages) names.emplace_back(stage, color(stages, stage));
  return fmt::format("<h2>A step</h2>\n<p>The mean of {} steady {}.</p>\n{}{}{}", steps,
                     steps == 1 ? "step" : "steps", page::legend(names), step_bars(profile, stages),
                     step_table(profile, stages)) +
         "<h2>Steady steps</h2>\n" + page::legend(names) + timeline(profile, stages);
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
        page::escaped(line.rank), page::escaped(line.stage), line.seconds, line.share * 100,
        line.waiting, line.hidden, line.sent, line.received);
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
        page::escaped(of.rank), of.peak, of.rows, of.beyond());
  }
  return html + "</table></div>\n";
}

/// A rank's rows that a cache moved, by what for; of other stores nothing.
struct Moved {
  std::string rank;
  std::vector<int64_t> rows;  // [kMoved]
};
constexpr std::array kMoved{std::pair{"fetched", "fetched"},
                            std::pair{"written_back", "written back"},
                            std::pair{"gradients", "gradients"}, std::pair{"weights", "weights"},
                            std::pair{"handed_over", "handed over"}};

std::vector<Moved> moved_of(const Json& profile) {
  std::vector<Moved> all;
  for (const Json& rank : profile) {
    if (!rank.contains("moved_rows")) continue;
    Moved& of = all.emplace_back(Moved{rank["name"].get<std::string>(), {}});
    for (const auto& [key, title] : kMoved)
      of.rows.push_back(rank["moved_rows"][key].get<int64_t>());
  }
  return all;
}

std::string moved_text(const Json& profile) {
  const auto all = moved_of(profile);
  if (all.empty()) return "";
  std::string text = fmt::format("{:<24}", "rank, rows moved");
  for (const auto& [key, title] : kMoved) text += fmt::format(" {:>12}", title);
  for (const Moved& of : all) {
    text += fmt::format("\n{:<24}", of.rank);
    for (const int64_t rows : of.rows) text += fmt::format(" {:>12}", rows);
  }
  return text + "\n";
}

std::string moved_section(const Json& profile) {
  const auto all = moved_of(profile);
  if (all.empty()) return "";
  std::string html =
      "<h2>Rows that the cache moved</h2>\n<div class=\"scroll\"><table><tr><th "
      "class=\"text\">rank</th>";
  for (const auto& [key, title] : kMoved) html += fmt::format("<th>{}</th>", title);
  for (const Moved& of : all) {
    html += fmt::format("</tr>\n<tr><td class=\"text\">{}</td>", page::escaped(of.rank));
    for (const int64_t rows : of.rows) html += fmt::format("<td>{}</td>", rows);
  }
  return html + "</tr>\n</table></div>\n";
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
  return text + moved_text(profile);
}

std::string profile_sections(const Json& profile) {
  return steady_steps(profile) + "<h2>Stages of the whole run</h2>\n" + table(lines_of(profile)) +
         "<h2>Memory</h2>\n" + memory_table(memory_of(profile)) + moved_section(profile);
}

}  // namespace recmill::cli
