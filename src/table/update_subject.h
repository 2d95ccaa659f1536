// SPDX-License-Identifier: Apache-2.0
// Tunes row_update: backward and row optimizer of a model's tables. What the tuner calls a feature
// is a table here: a table is updated once a batch, by the lookups of all of its features.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "batch/sparse_batch.h"
#include "device/buffer.h"
#include "kernels/distinct_rows/distinct_rows.h"
#include "kernels/tune/tuner.h"
#include "schema/cluster_spec.h"
#include "table/table_update.h"

namespace recmill::table {

struct UpdateSubjectOptions {
  DeviceSpec device;  // l2_bytes is replaced by the fused value's
  int threads = 1;    // of the fused run
  int slices = 1;     // of a batch
  std::span<const kernels::RowUpdateTemplate> templates = kernels::row_update_templates();
};

/// Tables of one class are as large, have the same optimizer and precision, are looked up by
/// features of the same pooling, and their samples' lookups are alike (by all features together).
/// Frozen tables are in no class. What a schedule needs of prepare() (the distinct rows) is a part
/// of its time. A fused value's tile is TableUpdater's `task_floats`.
class UpdateSubject final : public kernels::tune::TuningSubject {
 public:
  /// `batches` hold the features in the order of model.features; they and the tables, each whole,
  /// outlive the subject. What is timed changes the tables: their state, and their weights by
  /// little. Fails when the machine does not have the memory for gradients.
  static Result<std::unique_ptr<UpdateSubject>> make(const ModelSpec& model,
                                                     std::span<EmbeddingTable> tables,
                                                     std::span<const SparseBatch> batches,
                                                     const UpdateSubjectOptions& options);

  ~UpdateSubject() override;

  /// Each table that is updated, alone in its class, as the batches show it.
  const std::vector<kernels::tune::FeatureClass>& features() const { return each_; }
  /// Takes the place of the grouping by what batches show; each table is in one class.
  void set_classes(std::vector<kernels::tune::FeatureClass> classes);

  const kernels::tune::TuningWork& work() const override { return work_; }
  void keep_batches(std::span<const int64_t> kept) override;
  std::vector<kernels::tune::Candidate> candidates(
      size_t of_class, const kernels::tune::FusedParameters& value) const override;
  /// Leaves the table as it was.
  Status check(size_t of_class, const kernels::Schedule& schedule,
               const kernels::tune::FusedParameters& value) override;
  Status prepare(const std::vector<std::vector<kernels::Schedule>>& candidates,
                 const kernels::tune::FusedParameters& value,
                 const kernels::tune::Choice* disturbing) override;
  void run(size_t of_class, size_t candidate, int64_t table, int64_t batch) override;
  void disturb(int64_t table, int64_t batch, int thread) override;
  Result<kernels::tune::FusedRun> fuse(const kernels::tune::Choice& choice) override;

 private:
  struct Lookups;
  struct Worker;
  struct Expected;

  UpdateSubject(std::span<EmbeddingTable> tables, const UpdateSubjectOptions& options);
  Status make_gradients(const ModelSpec& model, std::span<const SparseBatch> batches);
  void count_lookups(const ModelSpec& model);
  void count_batches();
  double bytes(size_t of_class) const;
  std::vector<kernels::tune::FeatureClass> grouped() const;
  const kernels::RowUpdateKernel& default_of(int64_t table, const Lookups& batch) const;
  int64_t lookups_of(int64_t table, const Lookups& batch) const;
  kernels::Schedule default_of_class(size_t of_class) const;
  Result<std::vector<kernels::RowUpdateKernel>> kernels_of(
      const kernels::tune::Choice& choice) const;
  kernels::TableLookups table_lookups(int64_t table, const Lookups& batch) const;
  TableUpdate update_of(int64_t table, const Lookups& batch, const DistinctRows& distinct,
                        const kernels::RowUpdateKernel& kernel) const;
  void update_one(Worker& worker, int64_t table, const Lookups& batch,
                  const kernels::RowUpdateKernel& kernel, const RowStep& step) const;
  std::unique_ptr<Worker> take_worker();
  void give_worker(std::unique_ptr<Worker> worker);
  Expected& expected(size_t of_class);
  Status compare(Expected& of, const kernels::Schedule& schedule);
  void run_fused(int64_t batch, ThreadPool& pool);

  const std::span<EmbeddingTable> tables_;
  const UpdateSubjectOptions options_;
  std::vector<std::vector<size_t>> features_of_;  // [tables]
  std::vector<size_t> first_;                     // [tables], in Lookups
  std::vector<std::unique_ptr<Lookups>> batches_;
  Buffer gradients_;
  std::vector<kernels::tune::FeatureClass> each_;
  kernels::tune::TuningWork work_;
  std::vector<bool> tuned_;  // [tables]: is in a class
  std::mutex workers_mutex_;
  std::vector<std::unique_ptr<Worker>> workers_;  // guarded by workers_mutex_: idle ones
  int64_t task_floats_ = kTaskFloats;             // of the workers
  std::vector<std::vector<kernels::RowUpdateKernel>> kernels_;  // [classes][candidates]
  std::map<size_t, std::unique_ptr<Expected>> expected_;        // [classes]
  std::vector<kernels::RowUpdateKernel> disturbing_, fused_;    // [tables], or empty: untuned
  std::unique_ptr<TableUpdater> updater_;                       // of the fused run
  kernels::DistinctRowsFinder finder_;                          // of the fused run
  std::vector<DistinctRows> distinct_;                          // [tables], of the fused run
};

}  // namespace recmill::table
