// SPDX-License-Identifier: Apache-2.0
#include "cli/lookahead_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "base/json/json.h"
#include "cli/pages/lookahead_page.h"
#include "config/run_config.h"
#include "lookahead/oracle.h"
#include "lookahead_plan/slot_tables.h"
#include "run/hotset/hot_folder.h"
#include "run/lookahead/count_lookahead.h"
#include "run/resolved_run.h"

namespace recmill::cli {
namespace {

Status check(const LookaheadArguments& arguments) {
  const auto least = [](const std::vector<int64_t>& values) {
    return values.empty() ? int64_t{-1} : *std::ranges::min_element(values);
  };
  const auto most = [](const std::vector<int64_t>& values) {
    return *std::ranges::max_element(values);
  };
  if (least(arguments.batches) < 0 || most(arguments.batches) > lookahead::kMostLookahead)
    return Status::BadRequest(fmt::format("--batches: must be 0 to {}", lookahead::kMostLookahead));
  if (least(arguments.prefetch) < 0) return Status::BadRequest("--prefetch: must not be negative");
  if (least(arguments.slots) < 0 || most(arguments.slots) > INT32_MAX)
    return Status::BadRequest(fmt::format("--slots: must be 0 to {}", INT32_MAX));
  if (arguments.ranks < 1) return Status::BadRequest("--ranks: must be at least 1");
  const auto too_few = [&](int64_t slots) {
    return slots > 0 && arguments.ranks > 1 && slots < 2 * arguments.ranks;
  };
  if (std::ranges::any_of(arguments.slots, too_few))
    return Status::BadRequest(
        fmt::format("--slots: must be 0 or at least {} with --ranks {}: each rank decides for a "
                    "share of each rank's slots",
                    2 * arguments.ranks, arguments.ranks));
  const size_t cases =
      arguments.batches.size() * arguments.prefetch.size() * arguments.slots.size();
  if (arguments.trace && cases > 1)
    return Status::BadRequest("--trace: takes one of --batches, of --prefetch and of --slots");
  return {};
}

Json line_of(const SlotTables& tables, const LookaheadStep& step) {
  Json fetch = Json::array(), last_use = Json::object(), evict = Json::array();
  for (const RowInSlot& fetched : step.fetch) fetch.push_back(tables.name_of(fetched.row));
  for (size_t i = 0; i < step.uses.size(); ++i)
    last_use[tables.name_of(step.uses[i].row)] = step.last_use[i];
  for (const RowInSlot& evicted : step.evict) evict.push_back(tables.name_of(evicted.row));
  return {{"iteration", step.step}, {"fetch", fetch}, {"last_use", last_use}, {"evict", evict}};
}

void print_table(const std::vector<train::LookaheadCount>& counts) {
  std::printf("%9s %8s %8s %11s %11s %11s %11s %11s  rows that are sent: none", "lookahead",
              "prefetch", "slots", "distinct", "fetched", "LRU", "static", "needed");
  for (const auto& [design, name] : EnumNames<CacheDesign>::names)
    std::printf(" %12s", std::string(name).c_str());
  std::printf("\n");
  for (const train::LookaheadCount& count : counts) {
    std::printf("%9ld %8ld %8s %11ld %11ld %11ld %11ld %11ld %24ld", count.of.lookahead,
                count.prefetch(),
                count.of.slots == 0 ? "any" : std::to_string(count.of.slots).c_str(),
                count.distinct, count.fetched, count.lru_fetched, count.static_fetched,
                count.slots_needed, count.none.total());
    for (const auto& moved : count.designs)
      std::printf(" %12s", moved ? std::to_string(moved->total()).c_str() : "-");
    std::printf("\n");
  }
}

}  // namespace

Status print_lookahead(const ConfigArguments& arguments, const LookaheadArguments& of, bool json,
                       bool quiet) {
  RECMILL_RETURN_IF_ERROR(check(of));
  RECMILL_ASSIGN_OR_RETURN(config::RunConfig config,
                           config::load_run_config(arguments.path, arguments.sets));
  config.options.train.ranks = of.ranks;
  auto run = train::resolve_run(config.options, posix_files());
  if (!run.ok()) return config.locate(run.status());
  RECMILL_RETURN_IF_ERROR(config.locate(train::open_hot_folder(*run, posix_files())));
  train::LookaheadRequest request;
  request.progress = progress_style(quiet);
  for (const int64_t lookahead : of.batches)
    for (const int64_t prefetch : of.prefetch)
      for (const int64_t slots : of.slots) request.cases.push_back({lookahead, prefetch, slots});
  const SlotTables tables(run->spec);
  if (of.trace)
    request.on_step = [&](const LookaheadStep& step) {
      std::puts(line_of(tables, step).dump().c_str());
    };
  const auto counts = train::count_lookahead(*run, request, posix_files());
  if (!counts.ok()) return config.locate(counts.status());
  if (!of.html.empty())
    RECMILL_RETURN_IF_ERROR(
        write_atomically(posix_files(), of.html, lookahead_page(config.options.name, *counts)));
  if (json) {
    for (const train::LookaheadCount& count : *counts)
      std::puts(train::to_json(count).dump().c_str());
  } else if (!of.trace) {
    print_table(*counts);
  }
  return {};
}

}  // namespace recmill::cli
