// SPDX-License-Identifier: Apache-2.0
#include "run/chosen_kernels.h"

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "base/made_folders.h"
#include "base/paths.h"
#include "device/processor.h"
#include "kernels/codegen/user_templates.h"
#include "run/generated_code.h"
#include "table/embedding_table.h"

namespace recmill::train {
namespace {

using kernels::codegen::GeneratedFeature;
using kernels::tune::ChosenSchedule;
using kernels::tune::FamilyTuning;
using kernels::tune::TuningRecord;

/// Calls set(feature or table, kernel) for everything that the family's choice names, of `count`.
template <class Find, class Set>
Status for_each_tuned(const FamilyTuning& family, size_t count, const std::string& source,
                      const Find& find, const Set& set) {
  for (size_t c = 0; c < family.choice.schedules.size(); ++c) {
    const auto kernel = find(family.choice.schedules[c]);
    if (!kernel.ok()) return Status::Failed(source + ": " + kernel.status().message());
    for (const int64_t i : family.times.classes[c].features) {
      if (i < 0 || i >= static_cast<int64_t>(count))
        return Status::Failed(source + ": " + family.times.family + ": there is no number " +
                              std::to_string(i));
      set(i, *kernel);
    }
  }
  return {};
}

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

/// Schedules, and the record that they are of; no record: the defaults.
struct ChosenByRecord {
  store::StoreKernels kernels;
  std::optional<TuningRecord> record = {};
};

Result<ChosenByRecord> chosen_by_record(const ResolvedRun& run, Files& files) {
  const KernelOptions& options = run.options.kernels;
  if (options.mode == KernelMode::standard) return ChosenByRecord{};
  const std::string path = tuning_record_path(run.options);
  auto record = read_tuning_record(path, files);
  auto chosen = record.ok() ? kernels_from(*record, run, path, files) : record.status();
  if (chosen.ok()) return ChosenByRecord{*std::move(chosen), *std::move(record)};
  RECMILL_RETURN_IF_ERROR(allow_default_schedules(options, chosen.status()));
  return ChosenByRecord{};
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

std::string tuning_record_path(const RunOptions& options) {
  if (!options.kernels.record.empty()) return options.kernels.record;
  const std::string of_device =
      options.device == DeviceKind::cpu ? "" : "." + std::string(name_of(options.device));
  return path_from(options.base, "tuned/" + options.name + of_device + ".json");
}

Result<TuningRecord> read_tuning_record(const std::string& path, Files& files) {
  if (!files.exists(path))
    return Status::Failed(whole_path(path) + ": no such tuning record; run `recmill tune` first");
  RECMILL_ASSIGN_OR_RETURN(const std::string text, read_text(files, path));
  return kernels::tune::parse_record(text, path);
}

Status write_record(const TuningRecord& record, const std::string& path, Files& files) {
  RECMILL_ASSIGN_OR_RETURN(const std::string text, kernels::tune::record_text(record));
  RECMILL_ASSIGN_OR_RETURN(const auto made, MadeFolders::make_for(files, path));
  return write_atomically(files, path, text);
}

Result<kernels::tune::TunedFor> tuned_for(const ResolvedRun& run, Files& files) {
  kernels::tune::TunedFor here{.machine = this_processor().name,
                               .compiler = kernels::tune::this_compiler(),
                               .commit = {},
                               .workload = run.options.name,
                               .model = run.tuned_model,
                               .threads = run.threads,
                               .deterministic = run.options.train.deterministic};
  RECMILL_ASSIGN_OR_RETURN(
      here.templates, kernels::codegen::templates_digest(run.options.kernels.templates, files));
  return here;
}

Result<store::StoreKernels> kernels_from(const TuningRecord& record, const ResolvedRun& run,
                                         const std::string& source, Files& files) {
  RECMILL_ASSIGN_OR_RETURN(const auto here, tuned_for(run, files));
  const std::string why = kernels::tune::foreign_because(record.of, here);
  if (!why.empty()) return Status::Failed(source + ": " + why + "; run `recmill tune` here");
  store::StoreKernels chosen;
  if (const FamilyTuning* pool = record.family("embedding_pool"); pool != nullptr) {
    chosen.pool.resize(run.spec.features.size());
    chosen.tile = pool->choice.value.tile;
    RECMILL_ASSIGN_OR_RETURN(const auto templates, pool_templates_of(run.options.kernels, files));
    RECMILL_RETURN_IF_ERROR(for_each_tuned(
        *pool, chosen.pool.size(), source,
        [&](const ChosenSchedule& of) -> Result<kernels::PoolKernel> {
          RECMILL_ASSIGN_OR_RETURN(auto kernel, kernels::find_pool_kernel(of.schedule, templates));
          if (kernel.of->order == kernels::Order::reorders && run.options.train.deterministic)
            return Status::Failed("schedule '" + of.schedule.name() +
                                  "' reorders sums, and train.deterministic is true");
          kernel.per_lookup = of.per_lookup;
          kernel.per_sample = of.per_sample;
          return kernel;
        },
        [&](int64_t feature, const kernels::PoolKernel& kernel) {
          chosen.pool[feature] = kernel;
        }));
  }
  if (const FamilyTuning* update = record.family("row_update"); update != nullptr) {
    chosen.row_update.assign(run.spec.tables.size(), kernels::default_row_update({}));
    chosen.update_floats = update->choice.value.tile;
    RECMILL_RETURN_IF_ERROR(for_each_tuned(
        *update, chosen.row_update.size(), source,
        [](const ChosenSchedule& of) { return kernels::row_update_kernel(of.schedule); },
        [&](int64_t table, const kernels::RowUpdateKernel& kernel) {
          chosen.row_update[table] = kernel;
        }));
  }
  return chosen;
}

Status allow_default_schedules(const KernelOptions& options, const Status& why) {
  if (options.on_missing_schedule == OnMissingSchedule::error) return why;
  log_warning(why.message() + "; default schedules run instead");
  return {};
}

Result<store::StoreKernels> choose_schedules(const ResolvedRun& run, Files& files) {
  RECMILL_ASSIGN_OR_RETURN(auto chosen, chosen_by_record(run, files));
  return std::move(chosen.kernels);
}

Result<store::StoreKernels> choose_kernels(const ResolvedRun& run, Files& files) {
  RECMILL_ASSIGN_OR_RETURN(auto chosen, chosen_by_record(run, files));
  if (chosen.record.has_value()) {
    tell_what_ranks_leave_out(chosen.kernels, run, tuning_record_path(run.options));
    RECMILL_RETURN_IF_ERROR(add_code(*chosen.record, run, files, chosen.kernels));
  }
  return std::move(chosen.kernels);
}

}  // namespace recmill::train
