// SPDX-License-Identifier: Apache-2.0
#include "reader/text/text_parser.h"

#include <algorithm>
#include <limits>

namespace recmill::reader {
namespace {

constexpr int64_t kRowsPerTask = 512;
constexpr float kNoLabel = std::numeric_limits<float>::quiet_NaN();

// [id columns]: whether a row may have more than one id, or weights.
std::vector<bool> columns_with_bags(const DataSchema& schema) {
  std::vector<bool> has_bags;
  for (const std::string& name : schema.ids) {
    has_bags.push_back(std::ranges::find(schema.bags, name) != schema.bags.end());
  }
  return has_bags;
}

// What the fast parser knows nothing of, the plain one reads.
ParserKind kind_for(const TextLayout& layout, ParserKind kind) {
  const bool known = layout.rows == RowForm::cells && layout.delimiter.size() == 1;
  return known ? kind : ParserKind::plain;
}

}  // namespace

TextParser::TextParser(std::vector<TextLayout> layouts, ParserKind kind)
    : layouts_(std::move(layouts)),
      fast_(layouts_.begin(), layouts_.end()),
      has_bags_(columns_with_bags(schema())),
      kind_(kind_for(layouts_[0], kind)) {}

void TextParser::clear(ColumnBatch& batch, int64_t rows) const {
  batch.samples = 0;
  batch.labels.resize(rows);
  batch.dense.resize(schema().dense.size());
  for (auto& column : batch.dense) column.resize(rows);
  batch.ids.resize(schema().ids.size());
  for (size_t c = 0; c < batch.ids.size(); ++c) {
    IdColumn& column = batch.ids[c];
    column.offsets.resize(rows + 1);
    column.offsets[0] = 0;
    column.ids.resize(has_bags_[c] ? 0 : rows);
    column.weights.clear();
  }
  batch.sample_weights.resize(schema().has_sample_weight ? rows : 0);
  batch.times.resize(schema().has_time ? rows : 0);
  batch.groups.resize(schema().has_group ? rows : 0);
  batch.keys = {};
}

// Rows of one layout, into the piece from its row `first` on.
BadRow TextParser::parse_alike(const char* text, std::span<const TextRow> rows, int64_t first,
                               ParsedPiece& piece) const {
  const uint32_t layout = rows[0].layout;
  size_t row = 0;
  RowValues values;
  if (layouts_[layout].column_of(ColumnRole::label) < 0) {
    std::fill_n(piece.batch->labels.begin() + piece.first + first, rows.size(), kNoLabel);
  }
  if (kind_ == ParserKind::fast) {
    row = static_cast<size_t>(parse_rows_fast(fast_[layout], text, rows, first, piece));
  }
  for (; row < rows.size(); ++row) {
    Status status = parse_row(layouts_[layout], {text + rows[row].begin, rows[row].size}, values);
    const int64_t at = first + static_cast<int64_t>(row);
    if (!status.ok()) return {at, std::move(status)};
    piece.store(at, values);
  }
  return {};
}

BadRow TextParser::parse(const char* text, std::span<const TextRow> rows,
                         ParsedPiece& piece) const {
  for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    end = rows.size();
    if (layouts_.size() > 1) {
      const auto other = [&](const TextRow& row) { return row.layout != rows[begin].layout; };
      end = std::find_if(rows.begin() + begin, rows.end(), other) - rows.begin();
    }
    BadRow bad =
        parse_alike(text, rows.subspan(begin, end - begin), static_cast<int64_t>(begin), piece);
    if (bad.row >= 0) return bad;
  }
  return {};
}

BadRow TextParser::append(const char* text, std::span<const TextRow> rows, ThreadPool& pool,
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
