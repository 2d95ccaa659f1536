// SPDX-License-Identifier: Apache-2.0
#include "run/options/check_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/saturating.h"
#include "batch/feature_layout.h"
#include "run/sample_lookups.h"
#include "table/embedding_table.h"

namespace recmill::train {
namespace {

/// Where `given` says how many rows, or columns, table number `table` of the run has.
std::string key_of(const ResolvedRun& run, const RunOptions& given, size_t table, bool rows) {
  const std::string& name = run.spec.tables[table].name;
  for (size_t t = 0; t < given.tables.size(); ++t) {
    const preprocess::TableOptions& of = given.tables[t];
    if (of.name == name && (rows ? of.rows : of.dim).has_value())
      return fmt::format("tables[{}].{}", t, rows ? "rows" : "dim");
  }
  // Tables of lines come behind those that are listed.
  int64_t before = static_cast<int64_t>(given.tables.size());
  for (size_t line = 0; line < given.workload.lines.size(); ++line) {
    const auto listed = run.options.tables.begin() + before;
    const auto end = listed + given.workload.lines[line].count;
    const auto is_named = [&](const preprocess::TableOptions& of) { return of.name == name; };
    if (std::any_of(listed, end, is_named))
      return fmt::format("workload.lines[{}].{}", line, rows ? "rows" : "dims");
    before += given.workload.lines[line].count;
  }
  return rows ? "embedding.rows" : "embedding.dim";
}

}  // namespace

Status check_table_sizes(const ResolvedRun& run, const RunOptions& given) {
  int64_t bytes = 0;
  for (size_t t = 0; t < run.spec.tables.size(); ++t) {
    const TableSpec& table = run.spec.tables[t];
    constexpr int64_t kRowState = 4;  // of a row by itself
    const int64_t row = table::EmbeddingTable::row_bytes(table) + kRowState;
    bytes = saturating_sum({bytes, saturating_product({table.rows, row})});
    if (bytes > kMostBytes)
      return Status::BadRequest(fmt::format(
          "{}: the tables take more than 2^56 bytes, with '{}' of {} rows and dimension {}",
          key_of(run, given, t, table.rows >= table.dim), table.name, table.rows, table.dim));
  }
  return {};
}

// Rows that a batch looks up, pooled or one by one, and what is kept of each lookup.
Status check_batch_sizes(const ResolvedRun& run, const RunOptions& given) {
  const TrainOptions& train = run.options.train;
  const bool trains_more = train.batch_size >= train.eval_batch_size;
  const int64_t samples = std::max(train.batch_size, train.eval_batch_size);
  const auto lookups = sample_lookups(run);
  int64_t width = 0, ids = 0;
  for (size_t f = 0; f < run.spec.features.size(); ++f) {
    const FeatureSpec& feature = run.spec.features[f];
    const auto own = static_cast<int64_t>(std::ceil(lookups[f]));
    const int64_t steps = rows_out(feature.pooling, 1, own);
    width = saturating_sum({width, saturating_product({steps, run.spec.dim_of(f)})});
    ids = saturating_sum({ids, own});
    if (saturating_product({samples, width, int64_t{sizeof(float)}}) > kMostBytes)
      return Status::BadRequest(fmt::format(
          "{}: the rows that {} samples look up take more than 2^56 bytes, with feature '{}' of "
          "dimension {}",
          key_of(run, given, feature.table, /*rows=*/false), samples, feature.name,
          run.spec.dim_of(f)));
  }
  constexpr int64_t kOfLookup = 64;  // its id, row, place, and where its gradient goes
  if (saturating_product({samples, ids, kOfLookup}) <= kMostBytes) return {};
  return Status::BadRequest(
      fmt::format("train.{}: the lookups of {} samples take more than 2^56 bytes",
                  trains_more ? "batch_size" : "eval_batch_size", samples));
}

}  // namespace recmill::train
