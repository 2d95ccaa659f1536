// SPDX-License-Identifier: Apache-2.0
#include "cli/pages/tuning_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "page/chart.h"
#include "page/page.h"

namespace recmill::cli {
namespace {

using kernels::BagStats;
using kernels::tune::ClassTimes;
using kernels::tune::FamilyTuning;
using kernels::tune::FeatureClass;
using kernels::tune::TuningRecord;

constexpr size_t kBars = 24;  // classes of a bar chart
constexpr size_t kNames = 6;  // features named of a class

/// One class, as the page tells it. Times are of all features of the class in one batch, on one
/// thread.
struct Row {
  const FeatureClass* of = nullptr;
  std::string schedule;
  double predicted = 0.0, measured = 0.0;  // nanoseconds
  double share = 0.0;                      // of the measured time of all classes
  double of_limit = 0.0;                   // its bytes' time at the memory's rate, over `measured`
  std::string names;
};

std::string names_of(const FeatureClass& of, const ModelSpec& model, bool tables) {
  std::string names;
  for (size_t i = 0; i < std::min(kNames, of.features.size()); ++i) {
    const auto number = static_cast<size_t>(of.features[i]);
    const size_t count = tables ? model.tables.size() : model.features.size();
    if (number >= count) continue;
    names += (names.empty() ? "" : ", ") +
             (tables ? model.tables[number].name : model.features[number].name);
  }
  if (of.features.size() > kNames)
    names += fmt::format(" and {} more", of.features.size() - kNames);
  return names;
}

/// The local stage's times at the value that was chosen.
const std::vector<ClassTimes>& chosen_classes(const FamilyTuning& family) {
  const auto at = std::ranges::find(family.times.values, family.choice.value,
                                    &kernels::tune::ValueTimes::value);
  return at->classes;
}

/// By measured time, the longest first.
std::vector<Row> rows_of(const TuningRecord& record, const FamilyTuning& family,
                         const ModelSpec& model) {
  const auto& measured = family.class_nanoseconds;
  const double all = std::max(1e-9, std::accumulate(measured.begin(), measured.end(), 0.0));
  const double rate =
      record.memory_rate / static_cast<double>(std::max<int64_t>(1, record.of.threads));
  const auto& classes = chosen_classes(family);
  std::vector<Row> rows;
  for (size_t c = 0; c < family.times.classes.size(); ++c) {
    const FeatureClass& of = family.times.classes[c];
    const auto features = static_cast<double>(of.features.size());
    const auto& schedule = family.choice.schedules[c].schedule;
    double predicted = 0.0;
    for (const auto& candidate : classes[c].candidates) {
      if (candidate.schedule == schedule) predicted = candidate.nanoseconds * features;
    }
    const double limit = rate > 0.0 ? classes[c].bytes * features / rate * 1e9 : 0.0;
    rows.push_back({&of, schedule.name(), predicted, measured[c], measured[c] / all,
                    measured[c] > 0.0 ? limit / measured[c] : 0.0,
                    names_of(of, model, family.times.family == "row_update")});
  }
  std::ranges::stable_sort(rows, std::ranges::greater(), &Row::measured);
  return rows;
}

/// Templates in the order of their time; each has a colour.
std::vector<std::string> templates_of(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const Row& row : rows) {
    const std::string name = row.schedule.substr(0, row.schedule.find(' '));
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string color_of(const Row& row, const std::vector<std::string>& templates) {
  const std::string name = row.schedule.substr(0, row.schedule.find(' '));
  const auto at = std::ranges::find(templates, name) - templates.begin();
  return fmt::format("var(--c{})", std::min<int64_t>(at, 5));
}

std::string legend_of(const std::vector<std::string>& templates) {
  std::vector<std::pair<std::string, std::string>> names;
  for (size_t i = 0; i < templates.size(); ++i)
    names.emplace_back(templates[i], fmt::format("var(--c{})", std::min<size_t>(i, 5)));
  return page::legend(names);
}

std::string title_of(const Row& row) {
  const BagStats& bags = row.of->shape.bags;
  return fmt::format("{}: {} rows of {}, {:.3g} lookups a sample, {}, {:.1f} % of the time",
                     row.names, row.of->shape.rows, row.of->shape.dim, bags.mean, row.schedule,
                     row.share * 100);
}

/// Lookups a sample against dimension, both in powers of two; areas are shares of time.
std::string scatter(const std::vector<Row>& rows, const std::vector<std::string>& templates) {
  constexpr double kLeft = 46, kTop = 34, kWidth = 560, kHeight = 230;
  constexpr double kRadius = 30;  // of all the time
  double most_lookups = 2.0, most_dim = 2.0;
  for (const Row& row : rows) {
    most_lookups = std::max(most_lookups, row.of->shape.bags.mean);
    most_dim = std::max(most_dim, static_cast<double>(row.of->shape.dim));
  }
  const double columns = std::ceil(std::log2(most_lookups)) + 4.0;  // from 1 / 16 on
  const double lines = std::ceil(std::log2(most_dim));
  const auto x_of = [&](double lookups) {
    return kLeft + kWidth * (std::log2(std::max(lookups, 1.0 / 16)) + 4.0) / columns;
  };
  const auto y_of = [&](double dim) { return kTop + kHeight * (1.0 - std::log2(dim) / lines); };
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 640 310\" role=\"img\" aria-label=\"lookups a sample against "
      "dimension\">\n");
  for (double p = -4; p <= columns - 4; p += 2) {
    const double x = x_of(std::exp2(p));
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/><text "
        "class=\"dim\" x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4:.4g}</text>\n",
        x, kTop, kTop + kHeight, kTop + kHeight + 16, std::exp2(p));
  }
  for (double p = 0; p <= lines; ++p) {
    const double y = y_of(std::exp2(p));
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{1}\" y1=\"{0:.1f}\" x2=\"{2}\" y2=\"{0:.1f}\"/><text "
        "class=\"dim\" x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.0f}</text>\n",
        y, kLeft, kLeft + kWidth, kLeft - 8, y + 4, std::exp2(p));
  }
  svg += fmt::format(
      "<text class=\"dim\" x=\"{}\" y=\"302\" text-anchor=\"middle\">lookups a sample (up: "
      "dimension)</text>\n",
      kLeft + kWidth / 2);
  for (const Row& row : rows) {
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\" fill-opacity=\".55\" "
        "stroke=\"{}\"><title>{}</title></circle>\n",
        x_of(row.of->shape.bags.mean), y_of(static_cast<double>(row.of->shape.dim)),
        2.0 + kRadius * std::sqrt(row.share), color_of(row, templates), color_of(row, templates),
        page::escaped(title_of(row)));
  }
  return svg + "</svg>\n";
}

/// A bar a class: what was measured.
std::string bars(const std::vector<Row>& rows, const std::vector<std::string>& templates) {
  const size_t count = std::min(kBars, rows.size());
  double most = 1e-9;
  for (size_t i = 0; i < count; ++i) most = std::max(most, rows[i].measured);
  std::vector<page::Bar> bars;
  for (size_t i = 0; i < count; ++i) {
    const Row& row = rows[i];
    const FeatureClass& of = *row.of;
    bars.push_back({fmt::format("{} × {}, {:.3g} a sample, {} {}", of.shape.rows, of.shape.dim,
                                of.shape.bags.mean, of.features.size(),
                                of.features.size() == 1 ? "feature" : "features"),
                    fmt::format("{} ({:.1f} %), predicted {}", page::time_text(row.measured),
                                row.share * 100, page::time_text(row.predicted)),
                    title_of(row),
                    {{row.measured / most, color_of(row, templates), false}}});
  }
  return page::bar_list(bars);
}

std::string table(const std::vector<Row>& rows, bool updates, bool limited) {
  std::string html = fmt::format(
      "<div class=\"scroll\"><table><thead><tr><th class=\"text\">{}</th><th>number</th><th>rows"
      "</th><th>dim</th><th class=\"text\">precision</th><th>lookups a sample</th><th>deviation"
      "</th><th>longest</th><th>empty</th><th class=\"text\">{}</th><th class=\"text\">schedule"
      "</th><th>share of time</th><th>predicted</th><th>measured</th>{}</tr></thead><tbody>\n",
      updates ? "tables" : "features", updates ? "optimizer" : "pooling",
      limited ? "<th>of the memory limit</th>" : "");
  for (const Row& row : rows) {
    const auto& shape = row.of->shape;
    html += fmt::format(
        "<tr><td class=\"text names\" title=\"{0}\">{0}</td><td>{1}</td><td>{2}</td><td>{3}</td>"
        "<td class=\"text\">{4}</td><td>{5:.4g}</td><td>{6:.3g}</td><td>{7}</td><td>{8:.0f} %</td>"
        "<td class=\"text\">{9}</td><td class=\"text\"><code>{10}</code></td><td>{11:.2f} %</td>"
        "<td>{12}</td><td>{13}</td>{14}</tr>\n",
        page::escaped(row.names), row.of->features.size(), shape.rows, shape.dim,
        name_of(shape.precision), shape.bags.mean, shape.bags.deviation, shape.bags.longest,
        shape.bags.empty_share * 100,
        updates ? page::escaped(row.of->kind) : std::string(name_of(shape.pooling)),
        page::escaped(row.schedule), row.share * 100, page::time_text(row.predicted),
        page::time_text(row.measured),
        limited ? fmt::format("<td>{:.0f} %</td>", row.of_limit * 100) : "");
  }
  return html + "</tbody></table></div>\n";
}

/// What all features share in the fused kernel.
std::string value_text(const kernels::tune::FusedParameters& value, bool updates) {
  if (value.defaults) return "No schedules were faster fused than the default ones, which stay.";
  if (value.blocks > 0)
    return fmt::format("One value for the fused kernel: an occupancy of {} {} of an SM.",
                       value.blocks, value.blocks == 1 ? "block" : "blocks");
  return fmt::format(
      "One value for the fused kernel: tasks of at most {} {}, {} of a core's own cache.",
      value.tile, updates ? "floats" : "samples",
      value.l2_bytes > 0 ? fmt::format("{} KiB", value.l2_bytes / 1024) : "nothing");
}

/// A GPU's classes are timed by the local stage alone (docs/formats/tuning.md).
bool is_of_gpu(const FamilyTuning& family) {
  return std::ranges::any_of(family.times.values,
                             [](const auto& at) { return at.value.blocks > 0; });
}

std::string section(const TuningRecord& record, const FamilyTuning& family,
                    const ModelSpec& model) {
  const bool updates = family.times.family == "row_update";
  const auto rows = rows_of(record, family, model);
  const auto templates = templates_of(rows);
  const double threads = static_cast<double>(std::max<int64_t>(1, record.of.threads));
  size_t features = 0;
  for (const Row& row : rows) features += row.of->features.size();
  std::string html = fmt::format("<h2>{}</h2>\n<ul class=\"figures\">",
                                 updates ? "Backward and optimizer" : "Lookups");
  const auto figure = [&](const std::string& value, const std::string& what) {
    html += "<li><b>" + value + "</b>" + what + "</li>";
  };
  const std::string on =
      is_of_gpu(family) ? "" : fmt::format(", {} {}", threads, threads == 1 ? "thread" : "threads");
  const bool tuned = !family.choice.value.defaults;
  if (tuned) {
    figure(page::time_text(family.measured_nanoseconds), "a batch, tuned" + on);
    figure(page::time_text(family.task_nanoseconds / threads), "predicted" + on);
  }
  figure(
      page::time_text(family.default_nanoseconds),
      (tuned ? "with default schedules" : "a batch with the default schedules, which stay") + on);
  const std::string what = updates ? "table" : "feature";
  figure(fmt::format("{}", features), features == 1 ? what : what + "s");
  figure(fmt::format("{}", rows.size()), rows.size() == 1 ? "class" : "classes");
  html += "</ul>\n<p>" + value_text(family.choice.value, updates) + "</p>\n";
  html += "<h3>Dimension and lookups a sample</h3><figure class=\"narrow\">" +
          legend_of(templates) + scatter(rows, templates) +
          "<figcaption>A circle is a class of features that are alike; its area is its share of "
          "the time.</figcaption></figure>\n";
  html +=
      fmt::format("<h3>Time by class{}</h3><figure>", is_of_gpu(family) ? "" : ", on one thread") +
      bars(rows, templates) +
      fmt::format(
          "<figcaption>{}{}.</figcaption></figure>\n",
          is_of_gpu(family) ? "By the local stage, a schedule's share of the launch of all "
                              "candidates. Of one batch"
                            : "Measured in the run of all, and predicted by the local "
                              "stage. Of one batch on one thread",
          rows.size() > kBars ? fmt::format("; the {} longest of {}", kBars, rows.size()) : "");
  return html + "<h3>All classes</h3>" + table(rows, updates, record.memory_rate > 0.0);
}

/// What a share of the memory limit is; empty: the rate was not measured.
std::string limit_text(double memory_rate) {
  if (memory_rate <= 0.0) return "";
  return fmt::format(
      " The memory's rate, measured in the same run: {:.1f} GB/s by all threads. A class's share "
      "of the memory limit is the time that its bytes take at that rate (each row that a batch "
      "names once, ids, and what is written), as a share of its own time; tables that stay in a "
      "cache may be above 100 %.",
      memory_rate * 1e-9);
}

}  // namespace

std::string tuning_page(const TuningRecord& record, const ModelSpec& model) {
  const bool of_gpu = std::ranges::any_of(record.families, is_of_gpu);
  std::string html =
      page::page_head(record.of.workload + ": tuned kernels") +
      fmt::format("<p>{}{}; {}; commit {}.{}</p>\n", page::escaped(record.of.machine),
                  of_gpu ? "" : fmt::format(", {} threads", record.of.threads),
                  page::escaped(record.of.compiler), page::escaped(record.of.commit),
                  limit_text(record.memory_rate));
  for (const FamilyTuning& family : record.families) html += section(record, family, model);
  return html + page::kPageEnd;
}

}  // namespace recmill::cli
