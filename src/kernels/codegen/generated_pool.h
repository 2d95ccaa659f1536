// SPDX-License-Identifier: Apache-2.0
// Compiled kernels of a FusedPool's schedules, ready to run.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/codegen/library_cache.h"
#include "kernels/codegen/pool_prelude.h"
#include "kernels/codegen/pool_source.h"
#include "kernels/embedding_pool/fused_pool.h"

namespace recmill::kernels::codegen {

/// What is constant of one feature while its table lives.
struct GeneratedFeature {
  RowStorage rows;  // data and count may be other ones when it runs
  Pooling pooling = Pooling::sum;
  bool weighted = false;
  const PoolKernel* kernel = nullptr;  // null `of`: the default schedule, called by pointer
};

/// Floats of this machine's widest vectors.
int64_t vector_lanes();

/// What is generated for a feature whose schedule has a template.
PoolFunction pool_function(const GeneratedFeature& feature);

/// The functions that the features need, in their order; no value: none, the feature's schedule is
/// called by pointer.
std::vector<PoolFunction> pool_functions(std::span<const GeneratedFeature> features);

/// A feature whose table, bags or template a generated function was not made for goes through the
/// template's own body, so that the answer is right for every batch.
class GeneratedPool final : public PoolCode {
 public:
  /// Generates, compiles and loads what the features need. Fails as LibraryCache::load, and, naming
  /// library and schedule, where what it loads answers otherwise than the reference.
  static Result<std::shared_ptr<const GeneratedPool>> make(
      std::span<const GeneratedFeature> features, const PoolSourceOptions& options,
      LibraryCache& cache);

  void run(const FusedPool& fused, std::span<const PoolTask> tasks, const TaskMap& map,
           ThreadPool& pool) const override;

  /// Kernels, and functions in all of them.
  int64_t kernels() const { return static_cast<int64_t>(kernels_.size()); }
  int64_t functions() const;

 private:
  struct Kernel {
    std::shared_ptr<const Library> library;
    recmill_generated::Run run = nullptr;
    std::vector<PoolFunction> functions;
    int64_t scratch_bytes = 0;  // of a running piece, whatever its schedule
  };
  struct Place {
    int64_t kernel = 0, schedule = -1;  // of a feature; -1: by pointer
  };
  struct Bound;

  GeneratedPool() = default;
  static Result<Kernel> load(std::shared_ptr<const Library> library, PoolSource source);
  static Status check(const Kernel& kernel);
  /// How many of the first pieces one call of a kernel does: whole features, up to one of another
  /// kernel or without a lookup.
  size_t of_one_kernel(std::span<const PoolTask> tasks, std::span<const Piece> pieces) const;
  Bound bind(const FusedPool& fused, const PoolTask& task, int64_t feature) const;

  std::vector<Kernel> kernels_;
  std::vector<Place> places_;  // [features]
};

}  // namespace recmill::kernels::codegen
