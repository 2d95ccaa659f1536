// SPDX-License-Identifier: Apache-2.0
#include "run/gpu/gpu_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "run/gpu/place_gpu_rows.h"

namespace recmill::train {
namespace {

std::string mib(int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

/// "rank 1 takes". Tuning has all tables on one GPU, whatever the run's ranks.
std::string who_takes(const ResolvedRun& run, std::span<const GpuPlan> plans) {
  const bool has_all = plans[0].held.tables.size() == run.spec.tables.size();
  if (plans.size() == 1 && has_all) return "the run takes";
  if (plans.size() == 1) return fmt::format("rank {} takes", plans[0].rank);
  std::string numbers;
  for (const GpuPlan& plan : plans)
    numbers += (numbers.empty() ? "" : ", ") + std::to_string(plan.rank);
  return "ranks " + numbers + " on one GPU take";
}

}  // namespace

Status check_gpu_memory(const ResolvedRun& run, std::span<const GpuPlan> plans, int64_t usable) {
  std::vector<MemoryItem> largest;
  for (const GpuPlan& plan : plans)
    largest.insert(largest.end(), plan.need.device.items.begin(), plan.need.device.items.end());
  std::erase_if(largest, [](const MemoryItem& item) { return !item.certain; });
  const auto is_table = [](const MemoryItem& item) { return item.what.starts_with("table "); };
  int64_t need = 0, tables = 0, hot = 0;
  for (const MemoryItem& item : largest) {
    need += item.bytes;
    hot += item.what == store::kHotRows ? item.bytes : 0;
    tables += is_table(item) ? item.bytes : 0;
  }
  if (need <= usable) return {};
  std::ranges::stable_sort(largest, std::ranges::greater{}, &MemoryItem::bytes);
  const auto text = [](const MemoryItem& item) {
    return fmt::format("{} {}", item.what, mib(item.bytes));
  };
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(3, largest.size()); ++i)
    names += (i == 0 ? "" : ", ") + text(largest[i]);
  const GpuRowsIn rows = run.options.gpu.rows;
  const bool helps = rows == GpuRowsIn::device && tables > 0 && need - tables <= usable;
  const std::string otherwise =
      helps ? "; the largest table: " + text(*std::ranges::find_if(largest, is_table)) +
                  "; with \"fit\" or \"host\" rows are stored in the host's memory"
      : rows == GpuRowsIn::hot && need - hot <= usable && hot > 0
          ? "; a smaller hotset.bytes leaves room"
          : "";
  const bool is_limit = usable_bytes(run.options.gpu, INT64_MAX) == usable;
  std::string key = fmt::format("gpu.rows = \"{}\"", name_of(rows));
  if (plans[0].cache > 0)
    key = run.options.lookahead.cache ? "lookahead.cache" : "embedding.store = \"cached\"";
  return Status::BadRequest(fmt::format(
      "{}: {} {} of the GPU's memory, of which {} {}; largest: {}{}", key, who_takes(run, plans),
      mib(need), is_limit ? "gpu.memory_gib leaves it" : "it has", mib(usable), names, otherwise));
}

}  // namespace recmill::train
