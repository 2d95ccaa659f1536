// SPDX-License-Identifier: Apache-2.0
#include "run/gpu/place_gpu_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reader/open_reader.h"
#include "run/sample_lookups.h"
#include "store/gpu/fit_tables.h"
#include "table/embedding_table.h"

namespace recmill::train {
namespace {

double in_mib(int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

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

/// Samples of a batch of what has so many rows if it is synthetic.
int64_t largest_batch(const DataOptions& data, int64_t size, int64_t synthetic_rows) {
  if (data.rows > 0) size = std::min(size, data.rows);
  return data.format == DataFormat::synthetic ? std::min(size, synthetic_rows) : size;
}

/// 0: none.
int64_t largest_evaluation(const RunOptions& options) {
  const DataOptions& data = options.data;
  if (!reader::names_evaluation_rows(data)) return 0;
  return largest_batch(data, options.train.eval_batch_size, data.synthetic.eval_rows);
}
int64_t largest_training(const RunOptions& options) {
  if (options.train.epochs == 0) return 0;
  const DataOptions& data = options.data;
  return largest_batch(data, options.train.batch_size, data.synthetic.rows);
}

std::string hot_text(const ModelSpec& model, const store::HeldTables& held,
                     std::span<const store::RowsAt> rows) {
  int64_t hot = 0, all = 0, hot_bytes = 0, all_bytes = 0;
  for (const int t : held.tables) {
    TableSpec of_hot = model.tables[t];
    of_hot.rows = rows[t].near_rows(of_hot.rows);
    hot += of_hot.rows;
    hot_bytes += of_hot.rows == 0 ? 0 : table_bytes(of_hot);
    all += model.tables[t].rows;
    all_bytes += table_bytes(model.tables[t]);
  }
  return fmt::format(
      "{} hot rows ({:.1f} MiB) are in the GPU's memory, the {} others of {} tables ({:.1f} MiB) "
      "in "
      "the host's",
      hot, in_mib(hot_bytes), all - hot, held.tables.size(), in_mib(all_bytes - hot_bytes));
}

}  // namespace

int64_t usable_bytes(const GpuRunOptions& options, int64_t free) {
  if (options.memory_gib == 0.0) return free;
  constexpr double kGiB = 1 << 30;
  return static_cast<int64_t>(std::min(static_cast<double>(free), options.memory_gib * kGiB));
}

store::GpuBatches gpu_batches(const ResolvedRun& run) {
  const auto lookups = sample_lookups(run);
  store::GpuBatches batches;
  const int64_t trained = largest_training(run.options);
  const int64_t evaluated = largest_evaluation(run.options);
  batches.largest = size_of(std::max(trained, evaluated), lookups);
  batches.trained = size_of(trained, lookups);
  batches.slices = run.slices;
  batches.prepared = batches_in_hand(run.options);
  batches.certain = lookups_are_certain(run);
  return batches;
}

std::vector<store::RowsAt> place_gpu_rows(const ResolvedRun& run, const store::HeldTables& held,
                                          int64_t besides, int64_t usable) {
  const ModelSpec& model = run.spec;
  const GpuRowsIn rows = run.options.gpu.rows;
  if (rows == GpuRowsIn::hot && run.hot_set != nullptr)
    return store::rows_by_hot_set(*run.hot_set, held.tables);
  const bool on_host = rows == GpuRowsIn::host || rows == GpuRowsIn::hot;
  std::vector<store::RowsAt> places(model.tables.size(),
                                    on_host ? GpuMemory::host : GpuMemory::device);
  if (rows != GpuRowsIn::fit) return places;
  std::vector<double> bytes_a_sample(model.tables.size());
  const auto lookups = sample_lookups(run);
  for (const size_t f : held.features) {
    const int table = model.features[f].table;
    const int64_t of_row = table::EmbeddingTable::row_bytes(model.tables[table]);
    bytes_a_sample[table] += lookups[f] * static_cast<double>(of_row);
  }
  std::vector<store::TableTraffic> tables;
  for (const int t : held.tables)
    tables.push_back({table_bytes(model.tables[t]), bytes_a_sample[t]});
  const auto fitted = store::fit_tables(tables, usable - besides);
  for (size_t i = 0; i < fitted.size(); ++i) places[held.tables[i]] = fitted[i];
  return places;
}

std::string placed_text(const ModelSpec& model, const store::HeldTables& held,
                        std::span<const store::RowsAt> rows) {
  if (std::ranges::any_of(rows, &store::RowsAt::by_hot_set)) return hot_text(model, held, rows);
  constexpr size_t kMostNames = 8;
  int64_t bytes[2] = {};
  std::vector<std::string> of_host;
  for (const int t : held.tables) {
    bytes[rows[t].memory == GpuMemory::host ? 1 : 0] += table_bytes(model.tables[t]);
    if (rows[t].memory == GpuMemory::host) of_host.push_back(model.tables[t].name);
  }
  std::string names;
  for (size_t i = 0; i < std::min(kMostNames, of_host.size()); ++i)
    names += (i == 0 ? ": " : ", ") + of_host[i];
  if (of_host.size() > kMostNames)
    names += fmt::format(" and {} more", of_host.size() - kMostNames);
  return fmt::format(
      "rows of {} tables ({:.1f} MiB) are in the GPU's memory, of {} ({:.1f} MiB) in the host's{}",
      held.tables.size() - of_host.size(), in_mib(bytes[0]), of_host.size(), in_mib(bytes[1]),
      names);
}

}  // namespace recmill::train
