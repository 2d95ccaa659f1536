// SPDX-License-Identifier: Apache-2.0
#include "reader/text/text_pass.h"

namespace recmill::reader {

Status parse_all(RowSource& source, TextParser& parser, int64_t rows_at_once, ThreadPool& pool,
                 const std::function<Status(const ColumnBatch&, const TextWindow&)>& take) {
  TextWindow window;
  ColumnBatch batch;
  for (int64_t first = 0; first < source.rows(); first += rows_at_once) {
    RECMILL_RETURN_IF_ERROR(source.load(first, rows_at_once, window));
    parser.clear(batch, static_cast<int64_t>(window.rows.size()));
    const BadRow bad = parser.append(window.text(), window.rows, pool, batch);
    if (bad.row >= 0) return bad.status.at(window.place_of(window.rows[bad.row]));
    RECMILL_RETURN_IF_ERROR(take(batch, window));
  }
  return {};
}

}  // namespace recmill::reader
