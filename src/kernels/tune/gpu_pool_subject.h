// SPDX-License-Identifier: Apache-2.0
// A model's lookups on a GPU, to be tuned (RecFlex, section IV-A): all candidates of a class in one
// launch, and all features fused.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "batch/sparse_batch.h"
#include "device/thread_pool.h"
#include "kernels/codegen/gpu/compiled_gpu_pool.h"
#include "kernels/tune/feature_classes.h"
#include "kernels/tune/tuning.h"

namespace recmill::kernels::tune {

/// One feature of the model: the table that it looks up, and how.
struct GpuPooledRows {
  RowStorage rows;              // of the host, for the reference
  const u8* records = nullptr;  // the same, of the GPU
  Pooling pooling = Pooling::sum;
  bool weighted = false;
  // Of a table in two memories: codegen::GpuPoolRequest.
  const u8* far = nullptr;
  const NearRows* near = nullptr;

  /// What looks it up by a function, which becomes one of rows so stored.
  codegen::GpuPoolRequest request(codegen::PoolFunction function, size_t bags) const;
};

/// What is tried for a feature: its candidates, as far as its rows allow them, and the default
/// schedule, last, though it may be one of them.
std::vector<codegen::PoolFunction> gpu_tuning_functions(const FeatureShape& shape,
                                                        const RowStorage& rows, bool deterministic);

/// How the kernels are made that candidates are timed in: all in one.
codegen::GpuPoolSourceOptions gpu_tuning_options(int64_t blocks);

struct GpuPoolSubjectOptions {
  bool deterministic = true;  // only schedules that keep the order of summation
  uint64_t seed = 1;          // of the order of blocks
  codegen::CompileForGpu compile;
};

class GpuPoolSubject {
 public:
  /// `batches` hold the features in the order of `features`; both, the GPU and the pool, which
  /// copies bags for it, outlive the subject.
  static Result<std::unique_ptr<GpuPoolSubject>> make(Gpu& gpu, std::vector<GpuPooledRows> features,
                                                      std::span<const SparseBatch> batches,
                                                      const GpuPoolSubjectOptions& options,
                                                      ThreadPool& pool);

  const Gpu& gpu() const { return gpu_; }
  std::span<const FeatureClass> classes() const { return classes_; }
  int64_t batches() const { return std::ssize(batches_); }
  bool deterministic() const { return options_.deterministic; }

  /// Compiles what time_candidates() of all classes needs with any of `blocks`, together.
  Status compile_candidates(std::span<const int64_t> blocks);
  /// Runs all candidates of a class in one launch a batch, `blocks` blocks of an SM at a
  /// time, in random order among each other, between blocks of the default schedule that fill the
  /// GPU. A candidate's time is its share of the launch's by what its blocks took: what it would be
  /// of a GPU that is full (equation 3); of `visited` batches, `rounds` times. One whose answer is
  /// not the reference's is kept with the reason. Each schedule is one candidate.
  Result<ClassTimes> time_candidates(size_t of_class, int64_t blocks, int64_t visited,
                                     int64_t rounds);

  /// The default schedules by class.
  std::vector<Schedule> defaults() const;
  /// Schedules by class as those of each feature.
  std::vector<Schedule> by_feature(std::span<const Schedule> by_class) const;

  struct FuseOptions {
    int64_t blocks = 0;  // of an SM, exactly; 0: as many as fit
    codegen::Dispatch dispatch = codegen::Dispatch::branches;
    bool listed = false;  // codegen::GpuPoolSourceOptions
  };
  /// The fused kernels of all features.
  Result<codegen::CompiledGpuPool> fuse(std::span<const Schedule> by_feature,
                                        const FuseOptions& how);
  /// Seconds of the GPU for a batch's lookups; not the copy of bags to it, nor the mapping.
  Result<double> run_fused(const codegen::CompiledGpuPool& fused, int64_t batch,
                           const ArrangeGpuBlocks& arrange = nullptr);
  /// The blocks of the last run.
  std::span<const gpu::PoolBlock> mapped() const { return GpuFusedPool::blocks(bags_); }
  /// The same once, untimed; fails, naming the feature, where the answer is not the reference's.
  Status check_fused(const codegen::CompiledGpuPool& fused, std::span<const Schedule> by_feature,
                     int64_t batch, const ArrangeGpuBlocks& arrange = nullptr);
  /// Times each candidate of a class alone on the GPU, in a kernel of its own (the first straw man
  /// of RecFlex, section II-C).
  Result<ClassTimes> time_alone(size_t of_class, int64_t visited, int64_t rounds);
  /// From now on other batches are run; classes stay as they are.
  void set_batches(std::span<const SparseBatch> batches);

 private:
  GpuPoolSubject(Gpu& gpu, std::vector<GpuPooledRows> features,
                 std::span<const SparseBatch> batches, const GpuPoolSubjectOptions& options,
                 ThreadPool& pool)
      : gpu_(gpu),
        pool_(pool),
        features_(std::move(features)),
        batches_(batches),
        options_(options) {}
  Status open();
  std::vector<codegen::GpuPoolRequest> candidates_of(size_t of_class) const;
  JaggedView bags(int64_t feature, int64_t batch) const;
  int64_t rows_out(int64_t feature, int64_t batch) const;
  /// What one launch of a class's candidates took.
  struct Launch {
    double nanoseconds = 0.0;
    std::vector<double> shares;  // [candidates], of it
  };
  Result<Launch> launch(const codegen::CompiledGpuPool& candidates, size_t of_class, int64_t blocks,
                        int64_t batch);
  Result<double> timed(const std::function<Status()>& work);
  Result<std::vector<std::string>> check(size_t of_class, int64_t batch,
                                         std::span<const codegen::GpuPoolRequest> candidates);
  std::vector<gpu::PoolOutput> outputs_of(size_t of_class, size_t count, int64_t batch) const;
  std::vector<float> reference(int64_t feature, int64_t batch) const;
  Status reserve_outputs(size_t floats);
  Status spoil_outputs();
  int64_t floats_out(int64_t batch) const;

  Gpu& gpu_;
  ThreadPool& pool_;
  const std::vector<GpuPooledRows> features_;
  std::span<const SparseBatch> batches_;
  const GpuPoolSubjectOptions options_;
  std::vector<FeatureClass> classes_;
  std::vector<size_t> class_of_;  // [features]
  GpuStream stream_;
  GpuTimer timer_;
  GpuBags bags_;
  GpuBuffer outputs_, clocks_;
  PinnedBuffer found_;
};

}  // namespace recmill::kernels::tune
