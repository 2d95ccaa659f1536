// SPDX-License-Identifier: Apache-2.0
// All features of a batch in one call, each by the schedule that was chosen for it (RecFlex,
// section IV-B): the way that needs no compiler.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "device/thread_pool.h"
#include "kernels/embedding_pool/pool_template.h"
#include "kernels/schedule/fixed_map.h"
#include "kernels/schedule/task_map.h"

namespace recmill::kernels {

/// A schedule with its body, ready to run.
struct PoolKernel {
  const PoolTemplate* of = nullptr;  // null: the default schedule
  std::vector<int64_t> values;       // of its parameters
  // What a lookup and a sample cost, in nanoseconds where it was measured; 0: guessed.
  double per_lookup = 0.0;
  double per_sample = 0.0;
  bool staging = false;  // stages(), of the schedule

  /// Whether it is right for the task's bags, and these cover the table if it stages it; where not,
  /// the default schedule does the task.
  bool suits(const PoolTask& task) const;
};

/// Whether the schedule reads the table before its lookups.
bool stages(const Schedule& schedule);

/// The kernel of `schedule`. Fails, naming it, when no template is called so, or has not such
/// values.
Result<PoolKernel> find_pool_kernel(const Schedule& schedule,
                                    std::span<const PoolTemplate> templates = pool_templates());

/// Bytes that a running piece needs besides, of a feature with such rows, whatever its bags are:
/// those of a batch may be other than any before. All that is said of bags to the template is 0.
int64_t scratch_bytes(const PoolKernel& kernel, const RowStorage& rows, Pooling pooling,
                      bool weighted);

/// What features have that nobody tuned.
Schedule default_pool_schedule(Pooling pooling, bool one_each);

/// A piece by the default schedule.
void default_pool_body(const PoolPiece& piece);

/// How a batch is given to threads: by the actual work, or as the baselines of fixed_map.h do.
struct PoolMapping {
  enum class Kind { actual_work, fixed, sample_blocks };
  Kind kind = Kind::actual_work;
  std::vector<FixedCut> cuts = {};  // fixed: [threads + 1]
  int64_t block = 0;                // sample_blocks: samples of a task
};

class FusedPool;

/// Another way to run a FusedPool: code made for its schedules (kernels/codegen). Bitwise the same.
class PoolCode {
 public:
  virtual ~PoolCode() = default;
  /// FusedPool::run() of `fused`, from any thread.
  virtual void run(const FusedPool& fused, std::span<const PoolTask> tasks, const TaskMap& map,
                   ThreadPool& pool) const = 0;
};

class FusedPool {
 public:
  /// One kernel a feature, in the order of the tasks; `tile`: samples of one piece, at most.
  explicit FusedPool(std::vector<PoolKernel> kernels, int64_t tile = kWholeFeature,
                     PoolMapping mapping = {});

  /// The work of each feature of a batch.
  std::vector<FeatureWork> work(std::span<const PoolTask> tasks) const;

  /// Counts the work of each feature of a batch and maps it to tasks. Outputs are not looked at, so
  /// that it can be done as soon as the bags are there.
  void map(std::span<const PoolTask> tasks, int threads, TaskMap& map) const;

  /// Pools all of them: bitwise embedding_pool_reference() of each task, whatever the map.
  void run(std::span<const PoolTask> tasks, const TaskMap& map, ThreadPool& pool) const;

  /// From now on run() is that of `code`, which was made for the same kernels; null: its own.
  void use(std::shared_ptr<const PoolCode> code) { code_ = std::move(code); }

  std::span<const PoolKernel> kernels() const { return kernels_; }
  /// The feature's kernel, or the default one where it is not right for the task's bags.
  const PoolKernel& kernel_for(const PoolTask& task, int64_t feature) const;

  /// Runs pieces one after the other on the calling thread, each by its template's body.
  void run_task(std::span<const PoolTask> tasks, std::span<const Piece> pieces) const;

 private:
  std::vector<PoolKernel> kernels_;
  int64_t tile_;
  PoolMapping mapping_;
  std::shared_ptr<const PoolCode> code_;
};

}  // namespace recmill::kernels
