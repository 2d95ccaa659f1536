// SPDX-License-Identifier: Apache-2.0
#include "bench/placed/placed_shape.h"

#include "bench/bench.h"
#include "placement/planners.h"
#include "table/embedding_table.h"

namespace recmill::bench {

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
