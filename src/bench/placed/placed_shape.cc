// SPDX-License-Identifier: Apache-2.0
#include "bench/placed/placed_shape.h"

#include <algorithm>

#include "bench/bench.h"
#include "placement/planners.h"
#include "table/embedding_table.h"

namespace recmill::bench {

FrozenShape small_shape(const std::string& name, int64_t dim, int64_t most_rows) {
  FrozenShape shape = *frozen_shape(name);
  shape.name += "_250k";
  if (dim > 0) shape.dim = dim;
  for (int64_t& rows : shape.rows) rows = std::min(rows, most_rows);
  return shape;
}

ModelSpec small_model(const FrozenShape& shape) {
  ModelSpec model = shape.spec();
  for (TableSpec& table : model.tables) table.optimizer.kind = OptimizerKind::rowwise_adagrad;
  return model;
}

placement::Problem small_problem(const ModelSpec& model, const AccessCounts& counts, int devices,
                                 const std::vector<LinkSpec>& links, bool training, bool dedup) {
  placement::Problem problem;
  for (const TableSpec& spec : model.tables)
    problem.tables.push_back({spec, table::EmbeddingTable::row_bytes(spec)});
  problem.counts = counts;
  problem.cluster = placement::equal_devices(
      devices, static_cast<int64_t>(1.05 * static_cast<double>(problem.total_bytes())) / devices);
  std::vector<double> bytes;
  for (const LinkSpec& link : links)
    if (link.byte_seconds > 0) bytes.push_back(link.byte_seconds);
  const double byte = median(bytes);
  for (LinkSpec& link : problem.cluster.links) link.byte_seconds *= byte;
  problem.samples = kRankSamples;
  problem.training = training;
  problem.dedup_fetch = dedup;
  return problem;
}

}  // namespace recmill::bench
