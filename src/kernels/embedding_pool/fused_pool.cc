// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding_pool/fused_pool.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/embedding_pool/empty_pieces.h"

namespace recmill::kernels {
namespace {

/// What the bytes of rows and outputs cost where nobody measured: 4 bytes a nanosecond, and as much
/// again for finding them.
double guessed_cost(const RowStorage& rows) {
  return 1.0 + static_cast<double>(rows.dim * bytes_of(rows.precision)) / 64.0;
}
/// Below this a task costs less than to hand it out, in nanoseconds.
constexpr double kLeastTask = 5000.0;

PoolKernel kernel_of(const Schedule& schedule) {
  auto kernel = find_pool_kernel(schedule);
  RECMILL_CHECK(kernel.ok(), kernel.status().message());
  return *std::move(kernel);
}

/// The default schedule, by what the bags are like.
const PoolKernel& default_kernel(const PoolTask& task) {
  static const PoolKernel bags = kernel_of(default_pool_schedule(Pooling::sum, false)),
                          one_each = kernel_of(default_pool_schedule(Pooling::sum, true)),
                          rows_copied = kernel_of(default_pool_schedule(Pooling::none, false));
  if (task.pooling == Pooling::none) return rows_copied;
  return task.bags.one_each ? one_each : bags;
}

/// The first pieces, as many as are of one feature; their samples follow each other.
std::span<const Piece> of_one_feature(std::span<const Piece> pieces) {
  size_t count = 1;
  while (count < pieces.size() && pieces[count].feature == pieces[0].feature) ++count;
  return pieces.first(count);
}

}  // namespace

int64_t scratch_bytes(const PoolKernel& kernel, const RowStorage& rows, Pooling pooling,
                      bool weighted) {
  if (!kernel.of->scratch_bytes) return 0;
  const FeatureShape shape{.rows = rows.count,
                           .dim = rows.dim,
                           .precision = rows.precision,
                           .pooling = pooling,
                           .weighted = weighted,
                           .bags = {.mean = 0.0, .longest = 0}};
  return kernel.of->scratch_bytes(shape, kernel.values);
}

Schedule default_pool_schedule(Pooling pooling, bool one_each) {
  return *parse_schedule(pooling == Pooling::none ? "rows_copied fetch=64"
                         : one_each               ? "one_each fetch=64 store=0 stage=0 ids=512"
                                                  : "bags fetch=64 held=8 store=0 stage=0 ids=512");
}

void default_pool_body(const PoolPiece& piece) {
  const PoolKernel& kernel = default_kernel(*piece.task);
  kernel.of->body(piece, kernel.values, nullptr);
}

Result<PoolKernel> find_pool_kernel(const Schedule& schedule,
                                    std::span<const PoolTemplate> templates) {
  for (const PoolTemplate& candidate : templates) {
    if (candidate.name != schedule.of) continue;
    PoolKernel kernel{&candidate, {}};
    RECMILL_ASSIGN_OR_RETURN(kernel.values, values_of(schedule, candidate));
    kernel.staging = stages(schedule);
    return kernel;
  }
  return Status::BadRequest("schedule '" + schedule.name() + "': there is no template '" +
                            schedule.of + "'");
}

bool PoolKernel::suits(const PoolTask& task) const {
  if (of->admits != nullptr && !of->admits(task.bags)) return false;
  return !staging || covers_table(task, 0, task.bags.samples);
}

bool stages(const Schedule& schedule) {
  return std::ranges::any_of(schedule.parameters, [](const ParameterValue& parameter) {
    return parameter.name == "stage" && parameter.value != 0;
  });
}

FusedPool::FusedPool(std::vector<PoolKernel> kernels, int64_t tile, PoolMapping mapping)
    : kernels_(std::move(kernels)), tile_(tile), mapping_(std::move(mapping)) {}

std::vector<FeatureWork> FusedPool::work(std::span<const PoolTask> tasks) const {
  RECMILL_CHECK(tasks.size() == kernels_.size());
  std::vector<FeatureWork> work(tasks.size());
  for (size_t f = 0; f < tasks.size(); ++f) {
    if (f + kCountsAhead < tasks.size()) tasks[f + kCountsAhead].bags.fetch_counts();
    const PoolTask& task = tasks[f];
    const PoolKernel& kernel = kernels_[f];
    const double guess = guessed_cost(task.rows);
    work[f] = {task.bags.offsets, task.bags.samples, task.bags.lookups(),
               kernel.per_lookup > 0.0 ? kernel.per_lookup : guess,
               kernel.per_sample > 0.0 ? kernel.per_sample : 2.0 * guess};
  }
  return work;
}

void FusedPool::map(std::span<const PoolTask> tasks, int threads, TaskMap& map) const {
  const auto features = work(tasks);
  switch (mapping_.kind) {
    case PoolMapping::Kind::actual_work:
      return map_tasks(features, {.threads = threads, .tile = tile_, .least_task = kLeastTask},
                       map);
    case PoolMapping::Kind::fixed:
      return map_fixed(features, mapping_.cuts, tile_, map);
    case PoolMapping::Kind::sample_blocks:
      return map_sample_blocks(features, mapping_.block, map);
  }
}

const PoolKernel& FusedPool::kernel_for(const PoolTask& task, int64_t feature) const {
  const PoolKernel& chosen = kernels_[feature];
  return chosen.of != nullptr && chosen.suits(task) ? chosen : default_kernel(task);
}

void FusedPool::run_task(std::span<const PoolTask> tasks, std::span<const Piece> pieces) const {
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> scratch;
  while (!pieces.empty()) {
    if (const size_t empty = zero_empty(tasks, pieces); empty > 0) {
      pieces = pieces.subspan(empty);
      continue;
    }
    const auto of_feature = of_one_feature(pieces);
    const int64_t first = of_feature.front().first;
    const PoolTask& task = tasks[of_feature.front().feature];
    const PoolKernel& kernel = kernel_for(task, of_feature.front().feature);
    const bool weighted = task.bags.weights != nullptr;
    const size_t lines = (scratch_bytes(kernel, task.rows, task.pooling, weighted) + 63) / 64;
    if (lines > scratch.size()) scratch.resize(lines);
    const bool staging = covers_table(task, first, of_feature.back().last);
    for (const Piece& piece : of_feature)
      kernel.of->body({&task, piece.first, piece.last, staging && piece.first == first},
                      kernel.values, scratch.empty() ? nullptr : scratch.front().bytes);
    pieces = pieces.subspan(of_feature.size());
  }
}

void FusedPool::run(std::span<const PoolTask> tasks, const TaskMap& map, ThreadPool& pool) const {
  RECMILL_CHECK(tasks.size() == kernels_.size());
  if (code_ != nullptr) return code_->run(*this, tasks, map, pool);
  const std::span<const Piece> pieces(map.pieces);
  pool.run(map.tasks(), [&](int64_t t) {
    run_task(tasks, pieces.subspan(map.begins[t], map.begins[t + 1] - map.begins[t]));
  });
}

}  // namespace recmill::kernels
