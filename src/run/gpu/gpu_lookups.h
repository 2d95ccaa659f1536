// SPDX-License-Identifier: Apache-2.0
// What lookups on a GPU are tuned and timed on.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "device/emulation/emulator.h"
#include "device/gpu/gpu.h"
#include "device/thread_pool.h"
#include "kernels/tune/gpu_tuner.h"
#include "run/resolved_run.h"
#include "run/tuning_data.h"
#include "store/gpu/gpu_memory.h"
#include "table/gpu/gpu_rows.h"

namespace recmill::train {

/// What tuning takes of a GPU where it reads such batches and rows are stored so: what lookups
/// take, as much as in training or nearly so, and answers of all candidates of a feature. For
/// certain its rows, and answers of what is pooled, one for each sample.
store::GpuLedger tuning_need(const ResolvedRun& run, const BatchesRequest& request,
                             std::span<const store::RowsAt> rows);

/// A run's tables where the GPU of options.device has them (gpu.rows), and batches to be looked up
/// there.
class GpuLookups {
 public:
  /// Fails as open_gpu(), compiler_for(), TuningData::make() and check_gpu_memory(): of one GPU,
  /// which has all rows. The pool and the files outlive it.
  static Result<std::unique_ptr<GpuLookups>> make(const ResolvedRun& run,
                                                  const BatchesRequest& request, ThreadPool& pool,
                                                  Files& files);

  kernels::tune::GpuPoolSubject& subject() { return *subject_; }
  Gpu& gpu() { return *gpu_; }
  /// Those that it was made with, whatever the subject was given since.
  std::span<const SparseBatch> batches() const { return data_.batches; }
  /// What all kernels needed so far, on the GPU that the CPU plays: there a kernel's time is what
  /// the emulator counts, the same each time (device/gpu/emulated_driver.h).
  const emulation::Usage& usage() const { return usage_; }

 private:
  GpuLookups() = default;
  Result<std::vector<store::RowsAt>> places(const ResolvedRun& run,
                                            const BatchesRequest& request) const;
  Status upload_rows(std::span<const store::RowsAt> places);

  emulation::Usage usage_;
  std::unique_ptr<Gpu> gpu_;
  TuningData data_;
  std::vector<table::GpuRows> rows_;
  std::unique_ptr<kernels::tune::GpuPoolSubject> subject_;
};

/// What is compared where nobody says: all occupancies; on the emulator one, where they are alike.
kernels::tune::GpuTunerOptions gpu_tuner_options(DeviceKind device, const Gpu& gpu);

}  // namespace recmill::train
