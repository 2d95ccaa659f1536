// SPDX-License-Identifier: Apache-2.0
#include "run/hotset/choose_hot_rows.h"

#include <algorithm>
#include <numeric>

#include "run/gpu/gpu_memory.h"
#include "run/gpu/gpu_run.h"
#include "run/gpu/place_gpu_rows.h"
#include "run/hotset/hot_folder.h"
#include "run/hotset/run_hot_set.h"
#include "run/memory.h"

namespace recmill::train {
namespace {

/// Bytes of a GPU's memory that its ranks may give to hot rows, each as much. As if all ranks were
/// on this machine.
Result<int64_t> bytes_of_gpus(const ResolvedRun& run) {
  RECMILL_ASSIGN_OR_RETURN(const auto gpu, open_gpu(run.options));
  const int64_t usable = usable_bytes(run.options.gpu, gpu->driver().free_bytes());
  RECMILL_ASSIGN_OR_RETURN(const int gpus, gpus_of_machine(run.options.device));
  RankOnHost place;
  place.ranks.resize(run.ranks);
  std::iota(place.ranks.begin(), place.ranks.end(), 0);
  int64_t least = usable;
  for (; place.number < run.ranks; ++place.number) {
    const auto ranks = ranks_of_same_gpu(place, gpus);
    for (const GpuPlan& plan : plan_gpu(run, usable, ranks))
      least = std::min(least, usable / std::ssize(ranks) - plan.need.device.total(plan.rank));
  }
  return std::max<int64_t>(0, least / 10 * 9);
}

}  // namespace

Result<int64_t> free_for_hot_rows(const ResolvedRun& run) {
  if (stores_by_hot_set(run.options)) return bytes_of_gpus(run);
  return available_bytes() / run.ranks;
}

bool stores_by_hot_set(const RunOptions& options) {
  const PlacementOptions& placement = options.placement;
  if (options.embedding.store == StoreKind::placed && placement.plan.empty() &&
      placement.planner == placement::PlannerKind::hot_cold)
    return true;
  return options.device != DeviceKind::cpu && options.gpu.rows == GpuRowsIn::hot &&
         options.embedding.store == StoreKind::local;
}

Status choose_hot_rows(ResolvedRun& run, const JobIdentity& identity, World& world, Files& files,
                       Progress::Style style) {
  run.hot_set = nullptr;
  if (!stores_by_hot_set(run.options)) return {};
  if (run.hot_folder != nullptr) {  // its inputs are hot by its rows
    run.hot_set = std::shared_ptr<const HotSet>(run.hot_folder, &run.hot_folder->set);
    return {};
  }
  int64_t free = 0;
  if (run.options.hotset.bytes == 0 && run.options.hotset.plan.empty()) {
    RECMILL_ASSIGN_OR_RETURN(free, free_for_hot_rows(run));
  }
  RECMILL_ASSIGN_OR_RETURN(run.hot_set, find_hot_set(run, free, identity, world, files, style));
  return {};
}

}  // namespace recmill::train
