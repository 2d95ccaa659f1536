// SPDX-License-Identifier: Apache-2.0
#include "run/chosen_kernels.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/log.h"
#include "run/generated_code.h"
#include "table/embedding_table.h"

namespace recmill::train {
namespace {

using kernels::codegen::GeneratedFeature;
using kernels::tune::FamilyTuning;
using kernels::tune::TuningRecord;

/// What is constant of each feature's lookups in the run's store.
std::vector<GeneratedFeature> generated_features(const ResolvedRun& run,
                                                 const std::vector<kernels::PoolKernel>& kernels) {
  std::vector<GeneratedFeature> features;
  for (size_t f = 0; f < run.spec.features.size(); ++f) {
    const FeatureSpec& feature = run.spec.features[f];
    const TableSpec& table = run.spec.tables[feature.table];
    // Several ranks pool rows that were sent to them.
    kernels::RowStorage rows = kernels::RowStorage::of(nullptr, table.rows, table.dim);
    if (run.ranks == 1) {
      rows.precision = table.precision;
      rows.stride = table::EmbeddingTable::row_bytes(table);
    }
    features.push_back({rows, feature.pooling, feature.weighted, &kernels[f]});
  }
  return features;
}

bool wants_code(const KernelOptions& options, const FamilyTuning& pool) {
  if (options.generated != GeneratedCode::automatic)
    return options.generated == GeneratedCode::always;
  return is_worth_compiling(pool.code, options.dispatch == kernels::codegen::Dispatch::branches
                                           ? pool.code.branches
                                           : pool.code.pointers);
}

/// Generated code for the chosen schedules, where it is wanted.
Status add_code(const TuningRecord& record, const ResolvedRun& run, Files& files,
                store::StoreKernels& chosen) {
  const KernelOptions& options = run.options.kernels;
  const FamilyTuning* const pool = record.family("embedding_pool");
  if (pool == nullptr || !wants_code(options, *pool)) return {};
  auto code = generated_pool(run, generated_features(run, chosen.pool), options.dispatch, files);
  if (code.ok()) {
    chosen.code = *std::move(code);
    return {};
  }
  if (options.on_failed_compilation == OnFailedCompilation::error) return code.status();
  log_warning(code.status().message() + "; pre-built kernels run instead");
  return {};
}

/// Several ranks sum gradients by distinct rows (store/sharded/sharded_store.h).
void tell_what_ranks_leave_out(const store::StoreKernels& chosen, const ResolvedRun& run,
                               const std::string& path) {
  const auto others = std::ranges::count_if(
      chosen.row_update, [](const auto& kernel) { return !kernel.needs_distinct_rows(); });
  if (run.ranks > 1 && others > 0)
    log_warning_once(path + ": schedules of row_update of " + std::to_string(others) + " of " +
                     std::to_string(chosen.row_update.size()) +
                     " tables are for one rank; several ranks sum by distinct rows");
}

}  // namespace

Result<store::StoreKernels> kernels_of(const Schedules& schedules, const ResolvedRun& run,
                                       Files& files) {
  store::StoreKernels made;
  made.tile = schedules.tile;
  made.update_floats = schedules.update_floats;
  if (!schedules.pool.empty()) {
    RECMILL_ASSIGN_OR_RETURN(const auto templates, pool_templates_of(run.options.kernels, files));
    for (const auto& of : schedules.pool) {
      kernels::PoolKernel& kernel = made.pool.emplace_back();
      if (of.schedule.of.empty()) continue;
      RECMILL_ASSIGN_OR_RETURN(kernel, kernels::find_pool_kernel(of.schedule, templates));
      kernel.per_lookup = of.per_lookup;
      kernel.per_sample = of.per_sample;
    }
  }
  for (const kernels::Schedule& schedule : schedules.row_update) {
    made.row_update.push_back(kernels::default_row_update({}));
    if (schedule.of.empty()) continue;
    RECMILL_ASSIGN_OR_RETURN(made.row_update.back(), kernels::row_update_kernel(schedule));
  }
  return made;
}

Result<store::StoreKernels> choose_kernels(const ResolvedRun& run, Files& files) {
  RECMILL_ASSIGN_OR_RETURN(const TunedSchedules chosen, choose_schedules(run, {}, files));
  RECMILL_ASSIGN_OR_RETURN(auto kernels, kernels_of(chosen.schedules, run, files));
  if (chosen.record) {
    tell_what_ranks_leave_out(kernels, run, tuning_record_path(run.options));
    RECMILL_RETURN_IF_ERROR(add_code(*chosen.record, run, files, kernels));
  }
  return kernels;
}

}  // namespace recmill::train
