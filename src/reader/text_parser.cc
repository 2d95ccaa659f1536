// SPDX-License-Identifier: Apache-2.0
#include "reader/text_parser.h"

#include <algorithm>

namespace recmill::reader {
namespace {

constexpr int64_t kRowsPerTask = 512;

// [id columns]: whether a row may have more than one id, or weights.
std::vector<bool> columns_with_bags(const TextLayout& layout) {
  std::vector<bool> has_bags(layout.schema.ids.size());
  for (const TextColumn& column : layout.columns) {
    if (column.spec.role != ColumnRole::id) continue;
    has_bags[column.target] =
        !column.spec.list_separator.empty() || !column.spec.weight_separator.empty();
  }
  return has_bags;
}

}  // namespace

TextParser::TextParser(TextLayout layout, ParserKind kind)
    : layout_(std::move(layout)),
      fast_(layout_),
      has_bags_(columns_with_bags(layout_)),
      kind_(kind) {}

void TextParser::clear(ColumnBatch& batch, int64_t rows) const {
  batch.samples = 0;
  batch.labels.resize(rows);
  batch.dense.resize(layout_.schema.dense.size());
  for (auto& column : batch.dense) column.resize(rows);
  batch.ids.resize(layout_.schema.ids.size());
  for (size_t c = 0; c < batch.ids.size(); ++c) {
    IdColumn& column = batch.ids[c];
    column.offsets.resize(rows + 1);
    column.offsets[0] = 0;
    column.ids.resize(has_bags_[c] ? 0 : rows);
    column.weights.clear();
  }
  batch.sample_weights.resize(layout_.schema.has_sample_weight ? rows : 0);
  batch.times.resize(layout_.schema.has_time ? rows : 0);
  batch.groups.resize(layout_.schema.has_group ? rows : 0);
}

BadRow TextParser::parse(const char* text, std::span<const TextRow> rows,
                         ParsedPiece& piece) const {
  const auto count = static_cast<int64_t>(rows.size());
  RowValues values;
  int64_t row = kind_ == ParserKind::fast ? parse_rows_fast(fast_, text, rows, piece) : 0;
  for (; row < count; ++row) {
    Status status = parse_row(layout_, {text + rows[row].begin, rows[row].size}, values);
    if (!status.ok()) return {row, std::move(status)};
    piece.store(row, values);
  }
  return {};
}

BadRow TextParser::append(const char* text, std::span<const TextRow> rows, Pool& pool,
                          ColumnBatch& batch) {
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t tasks = (count + kRowsPerTask - 1) / kRowsPerTask;
  if (static_cast<int64_t>(pieces_.size()) < tasks) pieces_.resize(tasks);
  bad_.assign(tasks, {});
  pool.run_ranges(count, kRowsPerTask, [&](int64_t begin, int64_t end) {
    const int64_t task = begin / kRowsPerTask;
    pieces_[task].begin(batch, has_bags_, batch.samples + begin, end - begin);
    bad_[task] = parse(text, rows.subspan(begin, end - begin), pieces_[task]);
    bad_[task].row += bad_[task].row < 0 ? 0 : begin;
  });
  for (const BadRow& bad : bad_) {
    if (bad.row >= 0) return bad;
  }
  const int64_t samples = batch.samples + count;
  const bool whole = samples == static_cast<int64_t>(batch.labels.size());
  pool.run(static_cast<int64_t>(batch.ids.size()), [&](int64_t column) {
    for (int64_t task = 0; task < tasks; ++task) {
      const int64_t begin = task * kRowsPerTask;
      pieces_[task].join(column, std::min(count - begin, kRowsPerTask));
    }
    IdColumn& ids = batch.ids[column];
    if (whole) ids.ids.resize(ids.offsets[samples]);
  });
  batch.samples = samples;
  return {};
}

}  // namespace recmill::reader
