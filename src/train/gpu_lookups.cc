// SPDX-License-Identifier: Apache-2.0
#include "train/gpu_lookups.h"

#include <utility>

#include "train/gpu_plan.h"
#include "train/gpu_run.h"
#include "train/place_gpu_rows.h"

namespace recmill::train {
namespace {

using kernels::tune::GpuPooledRows;
using kernels::tune::GpuPoolSubject;
using kernels::tune::GpuTunerOptions;

}  // namespace

// Where training has them, or nearly so: it has layers beside.
Result<std::vector<GpuMemory>> GpuLookups::places(const ResolvedRun& run) const {
  const int64_t usable = usable_bytes(run.options.gpu, gpu_->driver().free_bytes());
  store::GpuBatches batches = gpu_batches(run);
  batches.certain = false;  // other ones are looked up here
  const std::vector<GpuMemory> nothing(run.spec.tables.size(), GpuMemory::host);
  const auto besides = store::gpu_store_need(run.spec, batches, nothing);
  GpuPlan plan{0, store::held_tables(run.spec, 1)[0], {}, {}};
  plan.rows = place_gpu_rows(run, plan.held, besides.device.total(0), usable);
  plan.need = store::gpu_store_need(run.spec, batches, plan.rows);
  RECMILL_RETURN_IF_ERROR(check_gpu_memory(run, std::span(&plan, 1), usable));
  return std::move(plan.rows);
}

Status GpuLookups::upload_rows(std::span<const GpuMemory> places) {
  RECMILL_ASSIGN_OR_RETURN(
      auto staging, gpu_->allocate_pinned(table::GpuRows::kStagingBytes, "rows to be copied"));
  RECMILL_ASSIGN_OR_RETURN(auto stream, gpu_->open_stream());
  for (size_t t = 0; t < data_.tables.size(); ++t) {
    RECMILL_ASSIGN_OR_RETURN(auto of, table::GpuRows::allocate(data_.tables[t], *gpu_, places[t]));
    RECMILL_RETURN_IF_ERROR(of.upload(data_.tables[t], staging, stream));
    rows_.push_back(std::move(of));
  }
  return {};
}

Result<std::unique_ptr<GpuLookups>> GpuLookups::make(const ResolvedRun& run,
                                                     const BatchesRequest& request, Pool& pool,
                                                     Files& files) {
  const DeviceKind device = run.options.device;
  std::unique_ptr<GpuLookups> made(new GpuLookups());
  RECMILL_ASSIGN_OR_RETURN(
      made->gpu_,
      open_gpu(run.options, 0, device == DeviceKind::emulated ? &made->usage_ : nullptr));
  RECMILL_ASSIGN_OR_RETURN(const auto places, made->places(run));
  RECMILL_ASSIGN_OR_RETURN(made->data_, TuningData::make(run, request, pool, files));
  RECMILL_RETURN_IF_ERROR(made->upload_rows(places));
  std::vector<GpuPooledRows> features;
  for (const FeatureSpec& feature : run.spec.features)
    features.push_back({made->data_.tables[feature.table].rows(),
                        made->rows_[feature.table].records(), feature.pooling, feature.weighted});
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
