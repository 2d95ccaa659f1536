// SPDX-License-Identifier: Apache-2.0
#include "reader/text_parser.h"

#include <algorithm>
#include <cstring>

#include "reader/plain_text_parser.h"

namespace recmill::reader {
namespace {

constexpr int64_t kRowsPerTask = 512;

// Writes one row's values at row `at` of `batch`, its bags at the end of `ids`.
void store_row(const RowValues& values, int64_t at, ColumnBatch& batch,
               std::vector<IdColumn>& ids) {
  batch.labels[at] = values.label;
  for (size_t c = 0; c < batch.dense.size(); ++c) batch.dense[c][at] = values.dense[c];
  if (!batch.sample_weights.empty()) batch.sample_weights[at] = values.sample_weight;
  if (!batch.times.empty()) batch.times[at] = values.time;
  if (!batch.groups.empty()) batch.groups[at] = values.group;
  for (size_t c = 0; c < ids.size(); ++c) {
    ids[c].ids.insert(ids[c].ids.end(), values.ids[c].begin(), values.ids[c].end());
    ids[c].weights.insert(ids[c].weights.end(), values.weights[c].begin(), values.weights[c].end());
    ids[c].offsets.push_back(static_cast<int64_t>(ids[c].ids.size()));
  }
}

// Appends a piece's bags to the column that `offsets` already has room for.
void append_bags(const IdColumn& piece, int64_t at, IdColumn& column) {
  const auto base = static_cast<int64_t>(column.ids.size());
  for (size_t i = 1; i < piece.offsets.size(); ++i) {
    column.offsets[at + i] = base + piece.offsets[i];
  }
  column.ids.insert(column.ids.end(), piece.ids.begin(), piece.ids.end());
  column.weights.insert(column.weights.end(), piece.weights.begin(), piece.weights.end());
}

}  // namespace

TextParser::TextParser(TextLayout layout, ParserKind kind)
    : layout_(std::move(layout)), kind_(kind) {}
TextParser::~TextParser() = default;

void TextParser::clear(ColumnBatch& batch, int64_t rows) const {
  batch.samples = 0;
  batch.labels.resize(rows);
  batch.dense.resize(layout_.schema.dense.size());
  for (auto& column : batch.dense) column.resize(rows);
  batch.ids.resize(layout_.schema.ids.size());
  for (auto& column : batch.ids) {
    column.offsets.assign(rows + 1, 0);
    column.ids.clear();
    column.weights.clear();
  }
  batch.sample_weights.resize(layout_.schema.has_sample_weight ? rows : 0);
  batch.times.resize(layout_.schema.has_time ? rows : 0);
  batch.groups.resize(layout_.schema.has_group ? rows : 0);
}

BadRow TextParser::append(const char* text, std::span<const TextRow> rows, Pool& pool,
                          ColumnBatch& batch) {
  const int64_t first = batch.samples;
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t tasks = (count + kRowsPerTask - 1) / kRowsPerTask;
  if (static_cast<int64_t>(pieces_.size()) < tasks) pieces_.resize(tasks);
  bad_.assign(tasks, {});
  pool.run(tasks, [&](int64_t task) {
    auto& piece = pieces_[task];
    piece.resize(layout_.schema.ids.size());
    for (IdColumn& column : piece) {
      column.offsets.assign(1, 0);
      column.ids.clear();
      column.weights.clear();
    }
    const int64_t begin = task * kRowsPerTask, end = std::min(count, begin + kRowsPerTask);
    RowValues values;
    for (int64_t i = begin; i < end; ++i) {
      Status status = parse_row(layout_, {text + rows[i].begin, rows[i].size}, values);
      if (!status.ok()) {
        bad_[task] = {i, std::move(status)};
        return;
      }
      store_row(values, first + i, batch, piece);
    }
  });
  for (const BadRow& bad : bad_) {
    if (bad.row >= 0) return bad;
  }
  pool.run(static_cast<int64_t>(batch.ids.size()), [&](int64_t column) {
    for (int64_t task = 0; task < tasks; ++task) {
      append_bags(pieces_[task][column], first + task * kRowsPerTask, batch.ids[column]);
    }
  });
  batch.samples += count;
  return {};
}

}  // namespace recmill::reader
