// SPDX-License-Identifier: Apache-2.0
#include "run/gpu/gpu_lookups.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "batch/feature_layout.h"
#include "run/gpu/gpu_plan.h"
#include "run/gpu/gpu_run.h"
#include "run/gpu/place_gpu_rows.h"
#include "run/sample_lookups.h"

namespace recmill::train {
namespace {

using kernels::tune::GpuPooledRows;
using kernels::tune::GpuPoolSubject;
using kernels::tune::GpuTunerOptions;

/// Of all candidates of a feature whose bags have at most so many lookups.
int64_t answer_bytes(const ResolvedRun& run, size_t feature, double rows_out, int64_t longest) {
  const FeatureSpec& of = run.spec.features[feature];
  const TableSpec& table = run.spec.tables[of.table];
  kernels::FeatureShape shape{table.rows, table.dim, table.precision, of.pooling, of.weighted, {}};
  shape.bags.longest = longest;
  const auto rows = table::EmbeddingTable::layout(table, table::RowShare(table.rows, 0, 1));
  const auto functions =
      kernels::tune::gpu_tuning_functions(shape, rows, run.options.train.deterministic);
  const auto of_one = static_cast<int64_t>(std::ceil(rows_out)) * table.dim;
  return reserved_bytes(std::ssize(functions) * of_one * int64_t{sizeof(float)});
}

// Those of one feature after the other are in the same memory.
void add_answers(const ResolvedRun& run, const BatchesRequest& request, store::GpuLedger& ledger) {
  constexpr int64_t kLong = 1 << 20;
  constexpr double kNotOneEach = 2.0;  // on average
  const auto samples = static_cast<double>(first_batch_samples(run, request));
  const auto lookups = sample_lookups(run);
  int64_t certain = 0, most = 0;
  for (size_t f = 0; f < run.spec.features.size(); ++f) {
    const bool pooled = is_pooled(run.spec.features[f].pooling);
    const double rows = pooled ? samples : samples * lookups[f];
    most = std::max(most, answer_bytes(run, f, rows, kLong));
    if (pooled)
      certain = std::max(certain, answer_bytes(run, f, rows, lookups[f] < kNotOneEach ? 1 : 2));
  }
  const std::string what = "answers of candidates";
  if (certain > 0) ledger.device.items.push_back({what, 0, certain});
  if (most > certain)
    ledger.device.items.push_back(
        {what + ", beyond those of the shortest bags", 0, most - certain, /*certain=*/false});
}

}  // namespace

store::GpuLedger tuning_need(const ResolvedRun& run, const BatchesRequest& request,
                             std::span<const store::RowsAt> rows) {
  store::GpuBatches batches = gpu_batches(run);
  batches.certain = false;  // other ones are looked up here
  store::GpuLedger ledger = store::gpu_store_need(run.spec, batches, rows);
  add_answers(run, request, ledger);
  return ledger;
}

// Where training has them, or nearly so: it has layers beside.
Result<std::vector<store::RowsAt>> GpuLookups::places(const ResolvedRun& run,
                                                      const BatchesRequest& request) const {
  const int64_t usable = usable_bytes(run.options.gpu, gpu_->driver().free_bytes());
  const std::vector<store::RowsAt> nothing(run.spec.tables.size(), GpuMemory::host);
  const auto besides = tuning_need(run, request, nothing);
  GpuPlan plan{0, store::held_tables(run.spec, 1)[0], {}, {}};
  plan.rows = place_gpu_rows(run, plan.held, besides.device.total(0), usable);
  plan.need = tuning_need(run, request, plan.rows);
  RECMILL_RETURN_IF_ERROR(check_gpu_memory(run, std::span(&plan, 1), usable));
  return std::move(plan.rows);
}

Status GpuLookups::upload_rows(std::span<const store::RowsAt> places) {
  RECMILL_ASSIGN_OR_RETURN(
      auto staging, gpu_->allocate_pinned(table::GpuRows::kStagingBytes, "rows to be copied"));
  RECMILL_ASSIGN_OR_RETURN(auto stream, gpu_->open_stream());
  for (size_t t = 0; t < data_.tables.size(); ++t) {
    RECMILL_ASSIGN_OR_RETURN(auto of, table::GpuRows::allocate(data_.tables[t], *gpu_,
                                                               places[t].memory, places[t].near));
    RECMILL_RETURN_IF_ERROR(of.upload(data_.tables[t], staging, stream));
    rows_.push_back(std::move(of));
  }
  return {};
}

Result<std::unique_ptr<GpuLookups>> GpuLookups::make(const ResolvedRun& run,
                                                     const BatchesRequest& request,
                                                     ThreadPool& pool, Files& files) {
  const DeviceKind device = run.options.device;
  std::unique_ptr<GpuLookups> made(new GpuLookups());
  RECMILL_ASSIGN_OR_RETURN(
      made->gpu_,
      open_gpu(run.options, 0, device == DeviceKind::emulated ? &made->usage_ : nullptr));
  RECMILL_ASSIGN_OR_RETURN(const auto places, made->places(run, request));
  RECMILL_ASSIGN_OR_RETURN(made->data_, TuningData::make(run, request, pool, files));
  RECMILL_RETURN_IF_ERROR(made->upload_rows(places));
  std::vector<GpuPooledRows> features;
  for (const FeatureSpec& feature : run.spec.features) {
    const table::GpuRows& rows = made->rows_[feature.table];
    features.push_back({made->data_.tables[feature.table].rows(), rows.records(), feature.pooling,
                        feature.weighted});
    if (rows.near() == nullptr) continue;
    features.back().far = rows.far_records();
    features.back().near = rows.near();
  }
  kernels::tune::GpuPoolSubjectOptions options;
  options.deterministic = run.options.train.deterministic;
  options.seed = request.seed;
  RECMILL_ASSIGN_OR_RETURN(options.compile, compiler_for(run, device, *made->gpu_, pool, files));
  RECMILL_ASSIGN_OR_RETURN(
      made->subject_,
      GpuPoolSubject::make(*made->gpu_, std::move(features), made->data_.batches, options, pool));
  return made;
}

GpuTunerOptions gpu_tuner_options(DeviceKind device, const Gpu& gpu) {
  GpuTunerOptions options;
  options.blocks = kernels::tune::gpu_occupancies(gpu.properties());
  if (device != DeviceKind::emulated) return options;
  options.blocks.resize(1);
  options.visited = options.rounds = options.fused_rounds = 1;
  return options;
}

}  // namespace recmill::train
