// SPDX-License-Identifier: Apache-2.0
#include "reader/synthetic/synthetic_reader.h"

#include <algorithm>

namespace recmill::reader {
namespace {

constexpr int64_t block_rows = 512;

}  // namespace

SyntheticReader::SyntheticReader(std::shared_ptr<const PlantedModel> model, int64_t begin,
                                 int64_t end, ThreadPool& pool)
    : model_(std::move(model)), begin_(begin), end_(end), pool_(pool) {
  RECMILL_CHECK(0 <= begin && begin <= end);
}

Status SyntheticReader::read(int64_t /*epoch*/, int64_t first, int64_t count, ColumnBatch& batch) {
  RECMILL_CHECK(first >= 0 && count >= 0);
  count = std::clamp<int64_t>(end_ - begin_ - first, 0, count);
  const int64_t blocks = (count + block_rows - 1) / block_rows;
  if (static_cast<int64_t>(blocks_.size()) < blocks) blocks_.resize(static_cast<size_t>(blocks));
  pool_.run(blocks, [&](int64_t b) {
    const int64_t at = b * block_rows;
    model_->generate(begin_ + first + at, std::min(block_rows, count - at), blocks_[b]);
  });
  size_batch(first, count, batch);
  pool_.run(blocks, [&](int64_t b) { copy(blocks_[b], b * block_rows, batch); });
  pool_.run(static_cast<int64_t>(batch.ids.size()), [&](int64_t c) {
    const auto column = static_cast<size_t>(c);
    if (!model_->decides(column)) make_column(column, batch);
  });
  counts_.rows += count;
  return {};
}

/// A column that decides on no click, straight into the batch.
void SyntheticReader::make_column(size_t c, ColumnBatch& batch) const {
  const IdSource& source = model_->ids()[c];
  IdColumn& column = batch.ids[c];
  const int64_t first = begin_ + batch.first;
  column.offsets.resize(static_cast<size_t>(batch.samples) + 1);
  column.offsets[0] = 0;
  for (int64_t i = 0; i < batch.samples; ++i) {
    column.offsets[i + 1] = column.offsets[i] + source.length(first + i);
  }
  column.ids.resize(static_cast<size_t>(column.offsets.back()));
  const std::span<uint64_t> ids = column.ids;
  for (int64_t i = 0; i < batch.samples; ++i) {
    const int64_t at = column.offsets[i];
    source.cell(first + i, ids.subspan(at, column.offsets[i + 1] - at));
  }
}

/// Sizes the vectors and fills in the offsets of all columns that blocks hold: then these can be
/// copied in any order.
void SyntheticReader::size_batch(int64_t first, int64_t count, ColumnBatch& batch) const {
  const auto samples = static_cast<size_t>(count);
  batch.first = first;
  batch.samples = count;
  batch.labels.resize(samples);
  batch.dense.resize(schema().dense.size());
  for (auto& column : batch.dense) column.resize(samples);
  batch.ids.resize(schema().ids.size());
  for (size_t c = 0; c < batch.ids.size(); ++c) {
    IdColumn& column = batch.ids[c];
    column.weights.clear();
    if (!model_->decides(c)) continue;
    column.offsets.assign(1, 0);
    for (int64_t b = 0; b * block_rows < count; ++b) {
      const int64_t before = column.offsets.back();
      const std::vector<int64_t>& offsets = blocks_[b].offsets[c];
      for (size_t i = 1; i < offsets.size(); ++i) column.offsets.push_back(before + offsets[i]);
    }
    column.ids.resize(static_cast<size_t>(column.offsets.back()));
  }
  batch.sample_weights.clear();
  batch.groups.resize(schema().has_group ? samples : 0);
  batch.times.resize(schema().has_time ? samples : 0);
}

void SyntheticReader::copy(const SyntheticRows& rows, int64_t at, ColumnBatch& batch) const {
  std::copy(rows.labels.begin(), rows.labels.end(), batch.labels.begin() + at);
  for (size_t c = 0; c < batch.dense.size(); ++c) {
    std::copy(rows.dense[c].begin(), rows.dense[c].end(), batch.dense[c].begin() + at);
  }
  for (size_t c = 0; c < batch.ids.size(); ++c) {
    if (!model_->decides(c)) continue;
    uint64_t* out = batch.ids[c].ids.data() + batch.ids[c].offsets[at];
    for (int64_t position : rows.positions[c]) *out++ = model_->ids()[c].raw_id(position);
  }
  for (int64_t i = 0; i < rows.count; ++i) {
    if (schema().has_group) batch.groups[at + i] = model_->group(rows.first + i);
    if (schema().has_time) batch.times[at + i] = model_->time(rows.first + i);
  }
}

Result<std::unique_ptr<Reader>> open_synthetic_reader(const DataOptions& options, Subset subset,
                                                      ThreadPool& pool) {
  if (options.split.by != SplitKind::file) {
    return Status::BadRequest(
        "data.split.by: synthetic data holds out its last rows (data.synthetic.eval_rows), not "
        "by " +
        std::string(name_of(options.split.by)));
  }
  auto model = PlantedModel::build(options.synthetic, "data.synthetic");
  if (!model.ok()) return model.status();
  const SyntheticOptions& synthetic = model->options();
  const int64_t begin = subset == Subset::eval ? synthetic.rows : 0;
  int64_t end = synthetic.rows + (subset == Subset::train ? 0 : synthetic.eval_rows);
  if (options.rows > 0) end = begin + std::min(end - begin, options.rows);
  return std::unique_ptr<Reader>(std::make_unique<SyntheticReader>(
      std::make_shared<const PlantedModel>(*std::move(model)), begin, end, pool));
}

}  // namespace recmill::reader
