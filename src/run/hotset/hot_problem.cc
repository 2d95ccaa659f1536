// SPDX-License-Identifier: Apache-2.0
#include "run/hotset/hot_problem.h"

#include "table/embedding_table.h"

namespace recmill::train {
namespace {

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

}  // namespace

hotset::HotProblem hot_problem(const ResolvedRun& run, int64_t free) {
  const HotsetOptions& options = run.options.hotset;
  hotset::HotProblem problem;
  for (const TableSpec& spec : run.spec.tables) problem.tables.push_back(problem_table(spec));
  problem.bytes = options.bytes > 0 ? options.bytes : free;
  problem.threshold = options.threshold;
  problem.fill = options.pick == HotPick::top;
  return problem;
}

}  // namespace recmill::train
