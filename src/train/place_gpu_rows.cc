// SPDX-License-Identifier: Apache-2.0
#include "train/place_gpu_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "store/fit_tables.h"
#include "table/embedding_table.h"
#include "train/sample_lookups.h"

namespace recmill::train {
namespace {

int64_t table_bytes(const TableSpec& spec) {
  return table::EmbeddingTable::bytes(spec, table::RowShare(spec.rows, 0, 1));
}

store::GpuBatches::Size size_of(int64_t samples, const std::vector<double>& lookups) {
  store::GpuBatches::Size size{samples};
  for (const double of_sample : lookups)
    size.lookups.push_back(
        static_cast<int64_t>(std::ceil(of_sample * static_cast<double>(samples))));
  return size;
}

}  // namespace

int64_t usable_bytes(const GpuRunOptions& options, int64_t free) {
  if (options.memory_gib == 0.0) return free;
  constexpr double kGiB = 1 << 30;
  return static_cast<int64_t>(std::min(static_cast<double>(free), options.memory_gib * kGiB));
}

store::GpuBatches gpu_batches(const ResolvedRun& run) {
  const TrainOptions& train = run.options.train;
  const auto lookups = sample_lookups(run);
  constexpr int64_t kInHand = 3;  // being made, being trained, being scored
  store::GpuBatches batches;
  const DataOptions& data = run.options.data;
  const int64_t evaluated = data.format == DataFormat::synthetic
                                ? std::min(train.eval_batch_size, data.synthetic.eval_rows)
                                : train.eval_batch_size;
  batches.largest = size_of(std::max(train.batch_size, evaluated), lookups);
  batches.trained = size_of(train.batch_size, lookups);
  batches.shards = run.shards;
  batches.prepared = train.queue + kInHand;
  batches.certain = std::ranges::none_of(run.spec.features, [](const FeatureSpec& feature) {
    return feature.pooling == Pooling::none;
  });
  return batches;
}

std::vector<GpuMemory> place_gpu_rows(const ResolvedRun& run, int64_t besides, int64_t usable) {
  const ModelSpec& model = run.spec;
  if (run.options.gpu.rows != GpuRowsIn::fit)
    return std::vector<GpuMemory>(model.tables.size(), run.options.gpu.rows == GpuRowsIn::host
                                                           ? GpuMemory::host
                                                           : GpuMemory::device);
  std::vector<store::TableTraffic> tables;
  for (const TableSpec& spec : model.tables) tables.push_back({table_bytes(spec)});
  const auto lookups = sample_lookups(run);
  for (size_t f = 0; f < model.features.size(); ++f) {
    const int table = model.features[f].table;
    const int64_t of_row = table::EmbeddingTable::row_bytes(model.tables[table]);
    tables[table].bytes_a_sample += lookups[f] * static_cast<double>(of_row);
  }
  return store::fit_tables(tables, usable - besides);
}

std::string placed_text(const ModelSpec& model, std::span<const GpuMemory> rows) {
  constexpr size_t kMostNames = 8;
  constexpr double kMiB = 1 << 20;
  int64_t bytes[2] = {};
  std::vector<std::string> of_host;
  for (size_t t = 0; t < rows.size(); ++t) {
    bytes[rows[t] == GpuMemory::host ? 1 : 0] += table_bytes(model.tables[t]);
    if (rows[t] == GpuMemory::host) of_host.push_back(model.tables[t].name);
  }
  std::string names;
  for (size_t i = 0; i < std::min(kMostNames, of_host.size()); ++i)
    names += (i == 0 ? ": " : ", ") + of_host[i];
  if (of_host.size() > kMostNames)
    names += fmt::format(" and {} more", of_host.size() - kMostNames);
  return fmt::format(
      "rows of {} tables ({:.1f} MiB) are in the GPU's memory, of {} ({:.1f} MiB) in the host's{}",
      rows.size() - of_host.size(), static_cast<double>(bytes[0]) / kMiB, of_host.size(),
      static_cast<double>(bytes[1]) / kMiB, names);
}

}  // namespace recmill::train
