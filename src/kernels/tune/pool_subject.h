// SPDX-License-Identifier: Apache-2.0
// Tunes embedding_pool: lookups of a model's tables.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "batch/sparse_batch.h"
#include "device/buffer.h"
#include "kernels/embedding_pool/fused_pool.h"
#include "kernels/tune/tuner.h"
#include "schema/cluster_spec.h"

namespace recmill::kernels::tune {

/// One feature of the model: the table that it looks up, and how.
struct PooledFeature {
  RowStorage rows;
  Pooling pooling = Pooling::sum;
  bool weighted = false;
};

struct PoolSubjectOptions {
  DeviceSpec device;          // l2_bytes is replaced by the fused value's
  bool deterministic = true;  // only templates that keep the order of summation win
  int threads = 1;            // of the fused run
  std::span<const PoolTemplate> templates = pool_templates();
};

class PoolSubject final : public TuningSubject {
 public:
  /// `batches` hold the features in the order of `features`; both outlive the subject. Fails when
  /// the machine does not have the memory for outputs.
  static Result<std::unique_ptr<PoolSubject>> make(std::vector<PooledFeature> features,
                                                   std::span<const SparseBatch> batches,
                                                   const PoolSubjectOptions& options);

  /// Each feature alone in its class, as the batches show it.
  std::vector<FeatureClass> features() const;
  /// Takes the place of the grouping by what batches show; each feature is in one class.
  void set_classes(std::vector<FeatureClass> classes);

  const TuningWork& work() const override { return work_; }
  void keep_batches(std::span<const int64_t> kept) override;
  /// Every schedule that the templates have for a class.
  std::vector<Schedule> schedules(size_t of_class, const FusedParameters& value) const;
  /// Without those that stage a table which no batch covers: they would be the default schedule by
  /// other names, and the luckiest of many equals would pass for the fastest.
  std::vector<Candidate> candidates(size_t of_class, const FusedParameters& value) const override;
  Status check(size_t of_class, const Schedule& schedule, const FusedParameters& value) override;
  Status prepare(const std::vector<std::vector<Schedule>>& candidates, const FusedParameters& value,
                 const Choice* disturbing) override;
  void run(size_t of_class, size_t candidate, int64_t feature, int64_t batch) override;
  void disturb(int64_t feature, int64_t batch, int thread) override;
  Result<FusedRun> fuse(const Choice& choice) override;

  std::span<const PooledFeature> pooled() const { return features_; }
  /// What runs after fuse().
  const FusedPool& fused() const { return *fused_; }
  /// From now on fuse() takes this code, made for the schedules that it is called with; null: none.
  void use(std::shared_ptr<const PoolCode> code) { code_ = std::move(code); }

  /// The default schedules by class.
  std::vector<ChosenSchedule> defaults() const;

 private:
  PoolSubject() = default;
  PoolTask task(int64_t feature, int64_t batch, Buffer& output) const;
  bool is_covered(size_t of_class) const;  // the table of some feature of the class, by a batch
  struct Expected;
  Result<Expected*> expected(size_t of_class);
  void run_tiles(const PoolTask& task, const PoolKernel& kernel, int64_t tile) const;
  void run_pieces(const PoolTask& task, const PoolKernel& kernel) const;
  /// By feature; of a choice without schedules the default ones.
  Result<std::vector<PoolKernel>> kernels_of(const Choice& choice) const;
  void run_fused(int64_t batch, ThreadPool& pool);
  void count_batches();
  double bytes(size_t of_class) const;

  std::vector<PooledFeature> features_;
  std::vector<FeatureShape> shapes_;  // [features]
  std::vector<const SparseBatch*> batches_;
  PoolSubjectOptions options_;
  TuningWork work_;
  std::vector<int64_t> columns_;  // [features], where outputs begin
  int64_t stride_ = 0;            // of outputs, floats, whole cache lines
  std::vector<Buffer> outputs_;   // [threads]: the fused run's and the timed one's, then others'
  std::vector<std::vector<PoolKernel>> kernels_;  // [classes][candidates]
  std::vector<PoolKernel> disturbing_;            // [features]
  FusedParameters value_;
  std::unique_ptr<FusedPool> fused_;
  std::shared_ptr<const PoolCode> code_;

  // The reference's answer for a class's first feature, on a batch neither large nor small.
  struct Expected {
    PoolTask task;
    Buffer answer, found;
    std::map<std::string, Status> checked;  // by schedule
  };
  std::map<size_t, Expected> expected_;  // [classes]
};

}  // namespace recmill::kernels::tune
