// SPDX-License-Identifier: Apache-2.0
#include "run/drift_warning.h"

#include <fmt/format.h>

#include "base/log.h"
#include "run/schedules.h"
#include "store/gpu/store_on_gpu.h"

namespace recmill::train {

using kernels::BagStats;
using kernels::tune::Drift;
using kernels::tune::DriftWatch;

namespace {

/// Where the store's schedules run; none: it has none, being the plain one of a run on a GPU.
std::optional<SchedulePlace> place_of(const ResolvedRun& run, store::EmbeddingStore& store) {
  if (run.options.device == DeviceKind::cpu) return SchedulePlace{};
  auto* const on_gpu = dynamic_cast<store::StoreOnGpu*>(&store);
  if (on_gpu == nullptr) return std::nullopt;
  return SchedulePlace{.gpu = on_gpu->gpu().properties()};
}

}  // namespace

std::string figures_of(const Drift& drift) {
  const auto bags = [](const BagStats& of) {
    if (of.one_each()) return std::string("exactly 1 lookup a sample");
    return fmt::format("{:.3g} lookups a sample (deviation {:.3g}, {:.3g} % of samples without)",
                       of.mean, of.deviation, of.empty_share * 100);
  };
  return fmt::format("{}, tuned for {}: distance {:.2f}, at most {:.2f} is good", bags(drift.now),
                     bags(drift.tuned), drift.distance, kernels::tune::kDriftDistance);
}

DriftWarning::DriftWarning(const ResolvedRun& run, store::EmbeddingStore& store, Files& files,
                           bool watches)
    : run_(run), path_(tuning_record_path(run.options)) {
  if (!watches || run.options.kernels.mode != KernelMode::tuned) return;
  const auto place = place_of(run, store);
  if (!place) return;
  const auto tuned = tuned_schedules(run, *place, files);
  // Without a good record kernels are not tuned, and the store has said so.
  if (!tuned.ok()) return;
  if (const auto* const family = tuned->record->family("embedding_pool"); family != nullptr)
    watch_.emplace(family->times.classes, run.spec.features.size());
}

Status DriftWarning::see(const SparseBatch& batch, int64_t /*iteration*/) {
  if (!watch_) return {};
  const auto found = watch_->see(batch);
  if (found.empty()) return {};
  const std::string others =
      found.size() == 1 ? "" : fmt::format(", and {} more features", found.size() - 1);
  log_warning(fmt::format("{}: feature '{}' has drifted: {}{}; `recmill tune {}` tunes again",
                          path_, run_.spec.features[found[0].feature].name, figures_of(found[0]),
                          others,
                          run_.options.device == DeviceKind::cpu ? "--if-drifted" : "--overwrite"));
  return {};
}

}  // namespace recmill::train
