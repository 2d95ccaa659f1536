// SPDX-License-Identifier: Apache-2.0
#include "train/gpu_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace recmill::train {
namespace {

std::string mib(int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

/// "rank 1 takes".
std::string who_takes(const ResolvedRun& run, std::span<const GpuPlan> plans) {
  if (run.ranks == 1) return "the run takes";
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
  int64_t need = 0;
  for (const MemoryItem& item : largest) need += item.bytes;
  if (need <= usable) return {};
  std::ranges::stable_sort(largest, std::ranges::greater{}, &MemoryItem::bytes);
  const auto text = [](const MemoryItem& item) {
    return fmt::format("{} {}", item.what, mib(item.bytes));
  };
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(3, largest.size()); ++i)
    names += (i == 0 ? "" : ", ") + text(largest[i]);
  const GpuRowsIn rows = run.options.gpu.rows;
  const auto table = std::ranges::find_if(
      largest, [](const MemoryItem& item) { return item.what.starts_with("table "); });
  const std::string otherwise =
      rows != GpuRowsIn::device || table == largest.end()
          ? ""
          : "; the largest table: " + text(*table) +
                "; with \"fit\" or \"host\" rows stand in the host's memory";
  return Status::BadRequest(
      fmt::format("gpu.rows = \"{}\": {} {} of the GPU's memory, of which it has {}; "
                  "largest: {}{}",
                  name_of(rows), who_takes(run, plans), mib(need), mib(usable), names, otherwise));
}

}  // namespace recmill::train
