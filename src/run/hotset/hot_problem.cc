// SPDX-License-Identifier: Apache-2.0
#include "run/hotset/hot_problem.h"

#include "store/gpu/held_tables.h"
#include "table/embedding_table.h"
#include "table/gpu/gpu_rows.h"

namespace recmill::train {
namespace {

/// Whether the hot rows of each table are near one GPU, that of the rank that has the table.
bool is_near_gpus(const RunOptions& options) {
  return options.device != DeviceKind::cpu && options.gpu.rows == GpuRowsIn::hot;
}

hotset::HotProblemTable problem_table(const TableSpec& spec) {
  hotset::HotProblemTable table;
  table.name = spec.name;
  table.rows = spec.rows;
  table.row_bytes =
      table::EmbeddingTable::bytes(spec, table::RowShare::whole(spec.rows, 0, 1, 0)) / spec.rows;
  const int64_t weights = static_cast<int64_t>(sizeof(float)) * spec.dim;
  table.always_hot = spec.rows < (hotset::kAlwaysHotBytes + weights - 1) / weights;
  return table;
}

/// Beside a row there is its number, where rounding asks for that.
void place_at_holders(const ResolvedRun& run, hotset::HotProblem& problem) {
  problem.devices = run.ranks;
  const auto of_ranks = store::held_tables(run.spec, run.ranks);
  for (int rank = 0; rank < run.ranks; ++rank)
    for (const int t : of_ranks[rank].tables) {
      problem.tables[t].device = rank;
      problem.tables[t].row_bytes += table::GpuRows::bytes_of_numbers(run.spec.tables[t], 1);
    }
}

}  // namespace

hotset::HotProblem hot_problem(const ResolvedRun& run, int64_t free) {
  const HotsetOptions& options = run.options.hotset;
  hotset::HotProblem problem;
  for (const TableSpec& spec : run.spec.tables) problem.tables.push_back(problem_table(spec));
  if (is_near_gpus(run.options)) place_at_holders(run, problem);
  problem.bytes = options.bytes > 0 ? options.bytes : free;
  problem.threshold = options.threshold;
  problem.fill = options.pick == HotPick::top;
  return problem;
}

}  // namespace recmill::train
