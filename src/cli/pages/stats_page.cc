// SPDX-License-Identifier: Apache-2.0
#include "cli/pages/stats_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "page/chart.h"
#include "page/page.h"

namespace recmill::cli {
namespace {

constexpr size_t kPictures = 200;                // columns that have one
constexpr uint64_t kHashes = uint64_t{1} << 53;  // and beyond: hardly an id that somebody wrote
constexpr size_t kBuckets = 12;                  // of a picture

std::string percent(double part, double whole) {
  return fmt::format("{:.1f} %", whole > 0 ? 100.0 * part / whole : 0.0);
}

/// "label 0.213": the mean where there are samples.
std::string label_text(double labels, int64_t samples) {
  return samples > 0 ? fmt::format("label {:.3f}", labels / static_cast<double>(samples)) : "";
}

/// Neighbours with the fewest cells become one until there are few enough.
std::vector<ValueBucket> merged(std::vector<ValueBucket> buckets) {
  while (buckets.size() > kBuckets) {
    size_t least = 0;
    for (size_t b = 1; b + 1 < buckets.size(); ++b) {
      const auto together = [&](size_t at) { return buckets[at].cells + buckets[at + 1].cells; };
      if (together(b) < together(least)) least = b;
    }
    ValueBucket& first = buckets[least];
    const ValueBucket& second = buckets[least + 1];
    first = {first.from, second.to, first.cells + second.cells, first.labels + second.labels};
    buckets.erase(buckets.begin() + static_cast<std::ptrdiff_t>(least) + 1);
  }
  return buckets;
}

/// A line of a picture: a share of the cells, and the label there.
page::Bar bar_of(const std::string& label, int64_t cells, double labels, int64_t all,
                 double longest, const char* color) {
  const double share = all > 0 ? static_cast<double>(cells) / static_cast<double>(all) : 0.0;
  return {label,
          percent(share, 1.0) + ", " + label_text(labels, cells),
          fmt::format("{} of {}", cells, all),
          {{longest > 0.0 ? share / longest : 0.0, color, false}}};
}

std::string dense_picture(const DenseColumnStats& column, int64_t samples) {
  const auto buckets = merged(column.buckets);
  int64_t most = column.missing;
  for (const ValueBucket& bucket : buckets) most = std::max(most, bucket.cells);
  const double longest = samples > 0 ? static_cast<double>(most) / static_cast<double>(samples) : 0;
  std::vector<page::Bar> bars;
  for (const ValueBucket& bucket : buckets) {
    const std::string range = bucket.from == bucket.to ? page::figure_text(bucket.from)
                                                       : page::figure_text(bucket.from) + " to " +
                                                             page::figure_text(bucket.to);
    bars.push_back(bar_of(range, bucket.cells, bucket.labels, samples, longest, "var(--c0)"));
  }
  if (column.missing > 0)
    bars.push_back(
        bar_of("missing", column.missing, column.missing_labels, samples, longest, "var(--c5)"));
  return fmt::format("<figure><h3>{}</h3>{}</figure>\n", page::escaped(column.name),
                     page::bar_list(bars));
}

std::string id_picture(const IdColumnStats& column, int64_t samples, bool hex) {
  const bool bags = column.longest > 1;
  double longest = 0.0;
  int64_t rest = column.lookups;
  for (const FrequentId& id : column.frequent) {
    rest -= id.lookups;
    if (column.lookups > 0)
      longest =
          std::max(longest, static_cast<double>(id.lookups) / static_cast<double>(column.lookups));
  }
  std::vector<page::Bar> bars;
  for (const FrequentId& id : column.frequent)
    bars.push_back(
        bar_of(hex || id.id >= kHashes ? fmt::format("{:x}", id.id) : std::to_string(id.id),
               id.lookups, id.labels, column.lookups, longest, "var(--c2)"));
  std::string html = fmt::format("<figure><h3>{}</h3>{}<figcaption>", page::escaped(column.name),
                                 page::bar_list(bars));
  if (rest > 0)
    html += fmt::format("The other {} ids take {} of the lookups. ",
                        column.cardinality - static_cast<int64_t>(column.frequent.size()),
                        percent(static_cast<double>(rest), static_cast<double>(column.lookups)));
  if (column.missing > 0)
    html += fmt::format("{} in {} of the samples, {}. ", bags ? "Empty" : "Missing",
                        percent(static_cast<double>(column.missing), static_cast<double>(samples)),
                        label_text(column.missing_labels, column.missing));
  return html + "</figcaption></figure>\n";
}

/// The least and the largest mean label of groups that have one sample in a hundred or more.
struct LabelSpan {
  double least = 1e300, most = -1e300;
  void add(int64_t count, double labels, int64_t all) {
    if (count == 0 || count * 100 < all) return;
    const double mean = labels / static_cast<double>(count);
    least = std::min(least, mean);
    most = std::max(most, mean);
  }
  std::string text() const {
    return least > most ? "" : fmt::format("{:.3f} to {:.3f}", least, most);
  }
};

std::string dense_table(const FeatureStats& stats) {
  std::string html =
      "<div class=\"scroll\"><table><tr><th class=\"text\">dense column</th><th>missing</th>"
      "<th>minimum</th><th>mean</th><th>maximum</th><th>below 0</th><th>0</th>"
      "<th>label by value</th></tr>\n";
  for (const DenseColumnStats& column : stats.dense) {
    int64_t below = 0, zero = 0;
    LabelSpan span;
    span.add(column.missing, column.missing_labels, stats.samples);
    for (const ValueBucket& bucket : merged(column.buckets))
      span.add(bucket.cells, bucket.labels, stats.samples);
    for (const ValueBucket& bucket : column.buckets) {
      if (bucket.from < 0) below += bucket.cells;
      if (bucket.from == 0 && bucket.to == 0) zero = bucket.cells;
    }
    const auto share = [&](int64_t cells) {
      return percent(static_cast<double>(cells), static_cast<double>(stats.samples));
    };
    html += fmt::format(
        "<tr><td class=\"text\">{}</td><td>{}</td><td>{:.6g}</td><td>{:.6g}</td><td>{:.6g}</td>"
        "<td>{}</td><td>{}</td><td>{}</td></tr>\n",
        page::escaped(column.name), share(column.missing), column.minimum, column.mean,
        column.maximum, share(below), share(zero), span.text());
  }
  return html + "</table></div>\n";
}

std::string id_table(const FeatureStats& stats) {
  std::string html =
      "<div class=\"scroll\"><table><tr><th class=\"text\">id column</th><th>missing</th>"
      "<th>ids</th><th>a bag</th><th>top 1 % take</th><th>top 10 % take</th><th>Zipf</th>"
      "<th>table rows</th><th>ids that collide</th><th>label by id</th></tr>\n";
  for (const IdColumnStats& column : stats.ids) {
    const int64_t bags = stats.samples - column.missing;
    const char* const about = column.exact ? "" : "~";
    LabelSpan span;
    span.add(column.missing, column.missing_labels, stats.samples);
    for (const FrequentId& id : column.frequent) span.add(id.lookups, id.labels, column.lookups);
    html += fmt::format(
        "<tr><td class=\"text\">{}</td><td>{}</td><td>{}{}</td><td>{:.2f}</td><td>{}</td>"
        "<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        page::escaped(column.name),
        percent(static_cast<double>(column.missing), static_cast<double>(stats.samples)), about,
        column.cardinality,
        bags > 0 ? static_cast<double>(column.lookups) / static_cast<double>(bags) : 0.0,
        percent(column.top_1_percent, 1), percent(column.top_10_percent, 1),
        column.zipf > 0 ? fmt::format("{:.2f}", column.zipf) : "",
        column.table_rows > 0 ? std::to_string(column.table_rows) : "",
        column.observed_collisions >= 0 ? std::to_string(column.observed_collisions)
        : column.table_rows > 0         ? fmt::format("~{:.0f}", column.expected_collisions)
                                        : "",
        span.text());
  }
  return html + "</table></div>\n";
}

}  // namespace

std::string stats_page(const std::string& name, const FeatureStats& stats, const IsHex& is_hex) {
  std::string html = page::page_head("Columns of " + name) +
                     fmt::format(
                         "<ul class=\"figures\"><li><b>{}</b>samples</li>"
                         "<li><b>{:.4f}</b>mean label</li><li><b>{}</b>dense columns</li>"
                         "<li><b>{}</b>id columns</li></ul>\n",
                         stats.samples, stats.label_mean, stats.dense.size(), stats.ids.size());
  html +=
      "<p>\"Label by\" is the least and the largest mean label among values, or among the most "
      "frequent ids, that take 1 % of the column or more: a column that tells nothing has the mean "
      "label everywhere.</p>\n";
  const auto of_first = [](size_t count) {
    return count > kPictures ? fmt::format("<p>The first {} of {}.</p>", kPictures, count) : "";
  };
  if (!stats.dense.empty()) {
    std::vector<std::string> pictures;
    for (size_t c = 0; c < std::min(kPictures, stats.dense.size()); ++c)
      pictures.push_back(dense_picture(stats.dense[c], stats.samples));
    html += "<h2>Dense columns</h2>\n" + dense_table(stats) + "<h2>Their values</h2>\n" +
            of_first(stats.dense.size()) + page::panels(pictures);
  }
  if (!stats.ids.empty()) {
    std::vector<std::string> pictures;
    for (size_t c = 0; c < std::min(kPictures, stats.ids.size()); ++c)
      pictures.push_back(
          id_picture(stats.ids[c], stats.samples, is_hex && is_hex(stats.ids[c].name)));
    html += "<h2>Id columns</h2>\n" + id_table(stats) +
            "<h2>Their most frequent ids</h2>\n<p>Ids of text are its hash.</p>" +
            of_first(stats.ids.size()) + page::panels(pictures);
  }
  return html + page::kPageEnd;
}

}  // namespace recmill::cli
