// SPDX-License-Identifier: Apache-2.0
#include "cli/pages/lookahead_page.h"

#include <fmt/format.h>

#include <utility>

#include "page/chart.h"
#include "page/page.h"

namespace recmill::cli {
namespace {

std::string case_name(const train::LookaheadCount& count) {
  return fmt::format(
      "{} batches ahead, {} fetched ahead, {}", count.of.lookahead, count.prefetch(),
      count.of.slots == 0 ? "as many slots as it takes" : fmt::format("{} slots", count.of.slots));
}

page::Bar bar(const std::string& label, int64_t rows, int64_t whole, int color) {
  const double share = whole == 0 ? 0.0 : static_cast<double>(rows) / static_cast<double>(whole);
  return {.label = label,
          .value = fmt::format("{} rows, {:.1f} %", page::figure_text(static_cast<double>(rows)),
                               100 * share),
          .title = fmt::format("{} rows", rows),
          .pieces = {{share > 1.0 ? 1.0 : share, fmt::format("var(--c{})", color)}}};
}

/// What is fetched, beside a fetch of every distinct row of each batch.
std::string fetched_bars(const train::LookaheadCount& count) {
  std::vector<page::Bar> bars{bar("this cache", count.fetched, count.distinct, 0)};
  if (count.of.slots > 0)
    bars.push_back(bar("rows used last (LRU)", count.lru_fetched, count.distinct, 1));
  bars.push_back(bar("hottest 0.1 %, static", count.static_fetched, count.distinct, 2));
  bars.push_back(bar("no cache", count.distinct, count.distinct, 5));
  return page::bar_list(bars);
}

std::string sent_table(const train::LookaheadCount& count) {
  std::string html =
      "<div class=\"scroll\"><table><tr><th class=\"text\">design</th><th>fetched</th><th>written "
      "back</th><th>gradients</th><th>weights</th><th>handed over</th><th>in all</th></tr>\n";
  const auto line = [&](std::string_view name, const MovedRows& moved) {
    html += fmt::format(
        "<tr><td class=\"text\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
        "<td>{}</td></tr>\n",
        name, moved.fetched, moved.written_back, moved.gradients, moved.weights, moved.handed_over,
        moved.total());
  };
  line("none", count.none);
  for (const auto& [design, name] : EnumNames<CacheDesign>::names)
    if (const auto& moved = count.designs[static_cast<size_t>(design)]) line(name, *moved);
  return html + "</table></div>\n";
}

}  // namespace

std::string lookahead_page(const std::string& name,
                           const std::vector<train::LookaheadCount>& counts) {
  std::string html = page::page_head(name + ": a cache that knows the next batches");
  if (!counts.empty())
    html += fmt::format(
        "<p>An epoch of training has {} batches, which look up {} rows, each counted once a batch. "
        "A cache that knows the next batches keeps the rows that they use, and fetches the others "
        "(BagPipe, section 3). Shares are of a fetch of every row for every batch.</p>\n",
        counts[0].batches, counts[0].distinct);
  for (const train::LookaheadCount& count : counts) {
    html += "<h2>" + page::escaped(case_name(count)) + "</h2>\n" + fetched_bars(count);
    html += fmt::format(
        "<p>Slots that it takes: {}. Rows that the next batch uses too: {}. Rows of a batch that "
        "one "
        "of {} ranks uses alone: {}.</p>\n<h3>Rows sent, of {} ranks</h3>\n",
        count.slots_needed, count.critical, count.ranks, count.one_rank, count.ranks);
    html += sent_table(count);
  }
  return html + page::kPageEnd;
}

}  // namespace recmill::cli
