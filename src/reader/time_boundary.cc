// SPDX-License-Identifier: Apache-2.0
#include "reader/time_boundary.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>

#include "base/hash.h"
#include "base/log.h"
#include "reader/row_source.h"
#include "reader/text_parser.h"

namespace recmill::reader {
namespace {

constexpr int64_t kLoadRows = 16384;
constexpr uint64_t kBins = 65536;

// The same rows, of which only the time is parsed.
TextLayout time_only(const TextLayout& layout) {
  TextLayout only = layout;
  only.schema = {};
  only.schema.has_time = true;
  for (TextColumn& column : only.columns) {
    if (column.spec.role != ColumnRole::time) column.spec.role = ColumnRole::ignore;
  }
  return only;
}

// One pass over all times.
template <typename Take>
Status each_time(RowSource& source, TextParser& parser, Pool& pool, Take take) {
  TextWindow window;
  ColumnBatch batch;
  for (int64_t first = 0; first < source.rows(); first += kLoadRows) {
    RECMILL_RETURN_IF_ERROR(source.load(first, kLoadRows, window));
    parser.clear(batch, static_cast<int64_t>(window.rows.size()));
    const BadRow bad = parser.append(window.text(), window.rows, pool, batch);
    if (bad.row >= 0) return bad.status.at(window.place_of(window.rows[bad.row]));
    for (const int64_t time : batch.times) take(time);
  }
  return {};
}

// The time of row `rank` in ascending order: the range that holds it is cut into bins, counted, and
// narrowed to one bin, until a bin is one time.
Result<int64_t> ranked_time(RowSource& source, int64_t rank, Pool& pool) {
  TextParser parser(time_only(source.rule().layout));
  int64_t least = std::numeric_limits<int64_t>::max(), most = std::numeric_limits<int64_t>::min();
  RECMILL_RETURN_IF_ERROR(each_time(source, parser, pool, [&](int64_t time) {
    least = std::min(least, time);
    most = std::max(most, time);
  }));
  while (least < most) {
    const uint64_t span = static_cast<uint64_t>(most) - static_cast<uint64_t>(least);
    const uint64_t width = span / kBins + 1;
    std::vector<int64_t> counts(span / width + 1);
    int64_t before = 0;
    RECMILL_RETURN_IF_ERROR(each_time(source, parser, pool, [&](int64_t time) {
      before += time < least;
      if (time < least || time > most) return;
      ++counts[(static_cast<uint64_t>(time) - static_cast<uint64_t>(least)) / width];
    }));
    size_t bin = 0;
    for (; before + counts[bin] <= rank; ++bin) before += counts[bin];
    least = static_cast<int64_t>(static_cast<uint64_t>(least) + bin * width);
    most = static_cast<int64_t>(
        std::min(static_cast<uint64_t>(most) - static_cast<uint64_t>(least), width - 1) +
        static_cast<uint64_t>(least));
  }
  return least;
}

}  // namespace

Result<int64_t> find_time_boundary(Files& files, const std::string& cache,
                                   const std::vector<std::string>& paths, const RowRule& rule,
                                   double eval_fraction, Pool& pool) {
  std::string key = "\n" + rule.fingerprint() + '\n' + std::to_string(eval_fraction);
  for (const std::string& path : paths) {
    RECMILL_ASSIGN_OR_RETURN(const auto file, files.open(path));
    RECMILL_ASSIGN_OR_RETURN(const int64_t changed, files.changed_at(path));
    key += '\n' + std::filesystem::absolute(path).lexically_normal().string() + ' ' +
           std::to_string(file->size()) + ' ' + std::to_string(changed);
  }
  const std::string place = cache + "/" + std::to_string(hash_bytes(key)) + ".boundary";
  if (!cache.empty() && files.exists(place)) {
    const auto text = read_text(files, place);
    int64_t boundary = 0;
    if (text.ok() && text->ends_with(key)) {
      const char* const end = text->data() + text->size() - key.size();
      if (std::from_chars(text->data(), end, boundary).ptr == end) return boundary;
    }
  }
  RECMILL_ASSIGN_OR_RETURN(auto source, RowSource::open(files, paths, cache, rule, pool));
  const int64_t rows = source->rows();
  const auto share = static_cast<int64_t>(eval_fraction * static_cast<double>(rows));
  RECMILL_ASSIGN_OR_RETURN(const int64_t boundary,
                           ranked_time(*source, rows - std::clamp<int64_t>(share, 1, rows), pool));
  if (!cache.empty()) {
    const Status written = write_atomically(files, place, std::to_string(boundary) + key);
    if (!written.ok()) log_warning("the boundary of a split is not kept: " + written.message());
  }
  return boundary;
}

}  // namespace recmill::reader
