// SPDX-License-Identifier: Apache-2.0
// Rows of text to columns, many at once.
#pragma once

#include <span>
#include <vector>

#include "batch/column_batch.h"
#include "device/thread_pool.h"
#include "reader/bad_row.h"
#include "reader/text/fast_text_parser.h"

namespace recmill::reader {

enum class ParserKind { plain, fast };

class TextParser {
 public:
  /// Rows have one of some layouts of the same schema (TextRow::layout).
  explicit TextParser(std::vector<TextLayout> layouts, ParserKind kind = ParserKind::fast);
  TextParser(const TextParser&) = delete;  // fast_ points into layouts_
  TextParser& operator=(const TextParser&) = delete;

  /// Makes `batch` an empty one of the schema, with room for `rows`; it is whole, and not to be
  /// used before, when as many were appended.
  void clear(ColumnBatch& batch, int64_t rows) const;

  /// Appends `rows` of `text` (readable for kTextPadding bytes beyond both of its ends) to
  /// `batch`; not more than clear() made room for. Returns the first row that cannot be parsed. The
  /// same batch for every number of threads.
  BadRow append(const char* text, std::span<const TextRow> rows, ThreadPool& pool,
                ColumnBatch& batch);

  const DataSchema& schema() const { return layouts_[0].schema; }

 private:
  BadRow parse(const char* text, std::span<const TextRow> rows, ParsedPiece& piece) const;
  BadRow parse_alike(const char* text, std::span<const TextRow> rows, int64_t first,
                     ParsedPiece& piece) const;

  const std::vector<TextLayout> layouts_;
  const std::vector<FastLayout> fast_;  // [layouts]
  const std::vector<bool> has_bags_;    // [id columns]: more than one id a row, or weights
  const ParserKind kind_;
  std::vector<ParsedPiece> pieces_;  // [tasks], reused
  std::vector<BadRow> bad_;          // [tasks]
};

}  // namespace recmill::reader
