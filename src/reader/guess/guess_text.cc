// SPDX-License-Identifier: Apache-2.0
#include "reader/guess/guess_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/hash.h"
#include "reader/file_ending.h"
#include "reader/guess/column_facts.h"
#include "reader/guess/file_kind.h"
#include "reader/guess/guess_json_lines.h"
#include "reader/lines/byte_stream.h"
#include "reader/lines/row_ends.h"
#include "reader/row/plain_text_parser.h"

namespace recmill::reader {
namespace {

constexpr size_t kSampleBytes = size_t{8} << 20;  // of all files
constexpr size_t kLeastBytes = size_t{64} << 10;  // of a file
constexpr size_t kMostBytes = size_t{4} << 20;    // read at once
constexpr size_t kMostFiles = 64;                 // that rows are taken from
constexpr size_t kMostCells = 6'000'000;
constexpr size_t kPlaces = 4;  // in a large file
constexpr double kCompression = 4;

using Row = std::vector<std::string>;

std::string numbered(std::string name, size_t number) {
  return name += std::to_string(number);
}

bool is_compressed(const std::string& path) {
  return has_ending(path, ".gz") || has_ending(path, ".zst") || has_ending(path, ".bz2");
}

/// Whole lines of a file from one place on, and whether they are all of it.
struct Piece {
  std::vector<std::string> lines;
  double bytes = 0;  // of these lines
  bool to_end = false;
};

Result<Piece> read_piece(ByteStream& stream, uint64_t from, size_t bytes, char quote) {
  if (from > 0) RECMILL_RETURN_IF_ERROR(stream.seek(from));
  std::string text(bytes, '\0');
  RECMILL_ASSIGN_OR_RETURN(const size_t size, stream.read(text));
  text.resize(size);
  Piece piece;
  piece.to_end = size < bytes;
  if (from > 0) text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);  // a row's end
  TextLayout layout;
  layout.quote = quote;
  std::vector<uint32_t> ends;
  find_row_ends(text, layout, ends);
  if (piece.to_end && !text.empty() && (ends.empty() || ends.back() < text.size())) {
    ends.push_back(static_cast<uint32_t>(text.size()));
  }
  for (size_t i = 0; i < ends.size(); ++i) {
    const TextRow row = trim_row(text.data(), i == 0 ? 0 : ends[i - 1], ends[i], layout);
    const std::string_view line = std::string_view(text).substr(row.begin, row.size);
    if (!is_blank_line(line, layout)) piece.lines.emplace_back(line);
  }
  piece.bytes = ends.empty() ? 0 : ends.back();
  if (from == 0 && !piece.lines.empty()) {
    piece.lines[0] = std::string(after_byte_order_mark(piece.lines[0]));
  }
  return piece;
}

/// The head of a file, which must be text that is known; no lines where it has but blank ones.
Result<Piece> read_head(Files& files, const std::string& path, size_t bytes, char quote) {
  RECMILL_ASSIGN_OR_RETURN(const auto stream, open_byte_stream(files, path));
  std::string start(kKindBytes, '\0');
  RECMILL_ASSIGN_OR_RETURN(const size_t size, stream->read(start));
  start.resize(size);
  RECMILL_RETURN_IF_ERROR(refuse_unknown(path, start));
  RECMILL_ASSIGN_OR_RETURN(const auto again, open_byte_stream(files, path));
  RECMILL_ASSIGN_OR_RETURN(Piece piece, read_piece(*again, 0, bytes, quote));
  if (!piece.lines.empty() || piece.to_end) return piece;
  return Status::Failed(
      fmt::format("{}: the first line does not end within {} MiB", path, bytes >> 20));
}

/// The cells of every line, where all have as many; else 0.
size_t cells_by(const std::string& delimiter, const std::vector<std::string>& lines) {
  TextLayout layout;
  layout.delimiter = delimiter;
  layout.quote = '"';
  Row cells;
  size_t count = 0;
  for (size_t i = 0; i < std::min<size_t>(lines.size(), 100); ++i) {
    if (!split_cells(layout, lines[i], cells).ok()) return 0;
    if (i > 0 && cells.size() != count) return 0;
    count = cells.size();
  }
  return count;
}

/// The delimiter that every row of the head has equally often, and most often; with the space
/// behind it where there always is one.
std::string guess_delimiter(const std::vector<std::string>& lines) {
  std::string best = ",";
  size_t most = 1;
  for (const char* candidate : {"\t", "::", ",", ";", "|", "\x01", " "}) {
    if (most > 1 && std::string_view(candidate) == " ") break;
    const size_t cells = cells_by(candidate, lines);
    if (cells <= most) continue;
    best = candidate;
    most = cells;
  }
  if (most > 1 && cells_by(best + " ", lines) == most) best += ' ';
  return best;
}

/// Cells that begin with no digit and are no numbers.
bool are_words(const Row& row) {
  return std::ranges::all_of(row, [](const std::string& cell) {
    const std::string_view bare = without_spaces(cell);
    return !bare.empty() && bare.find_first_of("0123456789") != 0 && !number_in(bare).has_value();
  });
}

/// Names: no numbers, no two of them equal, and only the first one may be empty. Where all columns
/// are words, no name comes again as a cell. Words on a line alone are names of no rows.
bool is_header(const std::vector<Row>& rows) {
  const Row& first = rows[0];
  if (rows.size() < 2) return first.size() > 1 && are_words(first);
  bool words_alone = true;
  std::unordered_set<std::string> names, cells;
  for (size_t c = 0; c < first.size(); ++c) {
    const std::string_view name = without_spaces(first[c]);
    if ((name.empty() && c > 0) || number_in(name).has_value()) return false;
    names.insert(std::string(name));
    words_alone = words_alone && !number_in(without_spaces(rows[rows.size() / 2][c])).has_value();
  }
  if (first.size() == 1 && first[0].empty()) return false;
  if (!words_alone) return true;
  for (size_t i = 1; i < std::min<size_t>(rows.size(), 1000); ++i) {
    for (size_t c = 0; c < first.size(); ++c) {
      if (!first[c].empty() && rows[i][c] == first[c]) return false;
    }
  }
  return names.size() == first.size();
}

bool looks_like_criteo(const std::vector<SampledColumn>& columns, const std::string& delimiter) {
  if (delimiter != "\t" || columns.size() != 40) return false;
  for (size_t row = 0; row < std::min<size_t>(columns[0].rows(), 10000); ++row) {
    if (columns[0][row] != "0" && columns[0][row] != "1") return false;
    for (size_t c = 1; c < 40; ++c) {
      const std::string_view cell = columns[c][row];
      if (cell.empty()) continue;
      if (c < 14 && !is_integer(cell)) return false;
      if (c >= 14 && (cell.size() < 6 || !parse_id(IdText::hex, cell).ok())) return false;
    }
  }
  return true;
}

bool looks_like_behavior_log(const std::vector<SampledColumn>& columns,
                             const std::string& delimiter) {
  if (delimiter != "," || columns.size() != 5) return false;
  std::unordered_set<std::string> kinds;
  for (size_t row = 0; row < std::min<size_t>(columns[0].rows(), 10000); ++row) {
    for (const size_t c : {0, 1, 2, 4}) {
      if (!is_integer(columns[c][row])) return false;
    }
    if (number_in(columns[3][row]).has_value()) return false;
    kinds.emplace(columns[3][row]);
    if (kinds.size() > 20) return false;
  }
  const auto time = parse_time(columns[4][columns[4].rows() / 2]);
  return time.ok() && *time > 500'000'000 && *time < 5'000'000'000;
}

bool is_json(std::string_view line) {
  return without_spaces(line).starts_with('{');
}

constexpr const char* kByPattern = "; name the files that are one data set by a pattern";

class TextSample {
 public:
  TextSample(Files& files, const std::vector<std::string>& paths) : files_(files), paths_(paths) {}

  Result<Sample> run() {
    RECMILL_RETURN_IF_ERROR(look_at_first());
    const size_t share = std::max(kSampleBytes / paths_.size(), kLeastBytes);
    const size_t every = (paths_.size() + kMostFiles - 1) / kMostFiles;
    sample_.whole = every == 1;
    double estimate = 0, sizes = 0, sampled_sizes = 0;
    for (size_t f = 0; f < paths_.size(); ++f) {
      RECMILL_ASSIGN_OR_RETURN(const auto opened, files_.open(paths_[f]));
      const auto size = static_cast<double>(opened->size());
      sizes += size;
      if (f % every != 0) {
        RECMILL_RETURN_IF_ERROR(agrees(f));
        continue;
      }
      sampled_sizes += size;
      RECMILL_ASSIGN_OR_RETURN(const double rows, take_file(f, share, size));
      estimate += rows;
    }
    if (sample_.data.format == DataFormat::json_lines) {
      sample_.columns = columns_of_json(json_, kMostCells);
      sample_.whole = sample_.whole && sample_.rows() == static_cast<int64_t>(json_.size());
    }
    if (sample_.rows() == 0) return Status::Failed(paths_[0] + ": has no rows");
    const double all = sampled_sizes > 0 ? estimate * sizes / sampled_sizes : estimate;
    sample_.estimated_rows = std::max(sample_.rows(), static_cast<int64_t>(all));
    find_format();
    return std::move(sample_);
  }

 private:
  /// Finds the first file that has rows, or else one with a line.
  Result<Piece> first_with_rows() {
    Piece best;
    for (size_t f = 0; f < paths_.size() && best.lines.size() < 2; ++f) {
      RECMILL_ASSIGN_OR_RETURN(Piece head, read_head(files_, paths_[f], kMostBytes, '"'));
      if (head.lines.size() <= best.lines.size()) continue;
      best = std::move(head);
      first_ = f;
    }
    if (best.lines.empty()) return Status::Failed(paths_[0] + ": is empty");
    return best;
  }

  Status look_at_first() {
    RECMILL_ASSIGN_OR_RETURN(const Piece head, first_with_rows());
    if (is_json(head.lines[0])) {
      sample_.data.format = DataFormat::json_lines;
      if (!columns_of_json({head.lines.data(), 1}, kMostCells).empty()) return {};
      return Status::BadRequest(paths_[first_] +
                                ":1: is not a JSON object with columns; rows are "
                                "read as one object on one line");
    }
    if (is_libsvm(head.lines[0])) {
      sample_.data.format = DataFormat::libsvm;
      sample_.data.header = false;
      sample_.columns.resize(2);
      sample_.columns[0].name = "label";
      sample_.columns[1].name = "features";
      return {};
    }
    sample_.data.format = DataFormat::csv;
    layout_.quote = '"';
    layout_.delimiter = guess_delimiter(head.lines);
    std::vector<Row> rows;
    Row cells;
    for (size_t i = 0; i < std::min<size_t>(head.lines.size(), 1000); ++i) {
      const bool whole = split_cells(layout_, head.lines[i], cells).ok();
      if (whole && (rows.empty() || cells.size() == rows[0].size())) rows.push_back(cells);
    }
    if (rows.empty()) return Status::Failed(paths_[first_] + ":1: is not a row of text");
    if (head.lines[0].starts_with('#') && rows.size() < std::min<size_t>(head.lines.size(), 1000))
      return Status::BadRequest(paths_[first_] + ":1: begins with a comment, which is not read");
    sample_.data.header = is_header(rows);
    sample_.data.delimiter = layout_.delimiter;
    sample_.columns.resize(rows[0].size());
    if (sample_.data.header) sample_.header = rows[0];
    for (size_t c = 0; c < rows[0].size(); ++c) {
      sample_.columns[c].name = sample_.data.header ? rows[0][c] : numbered("c", c);
    }
    return {};
  }

  /// The cells of a line; false where it is no row.
  bool cut(const std::string& line, Row& cells) const {
    if (sample_.data.format != DataFormat::libsvm) return split_cells(layout_, line, cells).ok();
    const std::string_view row = without_spaces(std::string_view(line).substr(0, line.find('#')));
    const size_t space = std::min(row.find_first_of(" \t"), row.size());
    cells = {std::string(row.substr(0, space)), std::string(without_spaces(row.substr(space)))};
    return true;
  }

  /// Whether the first line of a file is what it must be. Headers may have any order.
  Status agrees(size_t file) {
    RECMILL_ASSIGN_OR_RETURN(const Piece head, read_head(files_, paths_[file], kLeastBytes, '"'));
    return agrees(file, head);
  }
  Status agrees(size_t file, const Piece& head) {
    order_.clear();
    if (head.lines.empty()) return {};
    if (sample_.data.format == DataFormat::json_lines) {
      if (is_json(head.lines[0])) return {};
      return Status::BadRequest(paths_[file] + ": is not JSON, as " + paths_[first_] + " is" +
                                kByPattern);
    }
    Row cells;
    const bool whole = cut(head.lines[0], cells);
    const size_t columns = sample_.columns.size();
    if (whole && sample_.data.header && !find_order(cells)) {
      return Status::BadRequest(paths_[file] + ": its first line is not the header of " +
                                paths_[first_] + kByPattern);
    }
    if (whole && cells.size() == columns) return {};
    return Status::BadRequest(
        fmt::format("{}: its first line has {} cells, and that of {} has {}{}", paths_[file],
                    cells.size(), paths_[first_], columns, kByPattern));
  }

  /// The place in `header` of each column; false where it does not name the same columns.
  bool find_order(const Row& header) {
    if (header == sample_.header) return true;
    if (!std::ranges::is_permutation(header, sample_.header)) return false;
    for (const std::string& name : sample_.header) {
      order_.push_back(static_cast<size_t>(std::ranges::find(header, name) - header.begin()));
    }
    return true;
  }

  /// Takes rows of a file; returns how many it has, about.
  Result<double> take_file(size_t file, size_t share, double size) {
    const std::string& path = paths_[file];
    const bool compressed = is_compressed(path);
    const size_t places = compressed || size <= static_cast<double>(share) ? 1 : kPlaces;
    const size_t bytes = std::min(share / places + 1, kMostBytes);
    RECMILL_ASSIGN_OR_RETURN(Piece head,
                             read_head(files_, path, std::max(bytes, kLeastBytes), layout_.quote));
    RECMILL_RETURN_IF_ERROR(agrees(file, head));
    if (head.lines.empty()) return 0.0;
    if (sample_.data.format == DataFormat::csv && sample_.data.header)
      head.lines.erase(head.lines.begin());
    int64_t rows = take_lines(head.lines);
    double read = head.bytes;
    bool whole = head.to_end && rows == static_cast<int64_t>(head.lines.size());
    for (size_t place = 1; place < places && !head.to_end; ++place) {
      RECMILL_ASSIGN_OR_RETURN(const auto stream, open_byte_stream(files_, path));
      const auto from = static_cast<uint64_t>(size * static_cast<double>(place) / kPlaces);
      RECMILL_ASSIGN_OR_RETURN(const Piece piece, read_piece(*stream, from, bytes, layout_.quote));
      rows += take_lines(piece.lines);
      read += piece.bytes;
    }
    sample_.whole = sample_.whole && whole;
    if (head.to_end || read == 0) return static_cast<double>(rows);
    return static_cast<double>(rows) * size * (compressed ? kCompression : 1) / read;
  }

  /// Adds the lines that are whole rows; returns how many are.
  int64_t take_lines(const std::vector<std::string>& lines) {
    int64_t taken = 0;
    if (sample_.data.format == DataFormat::json_lines) {
      json_.insert(json_.end(), lines.begin(), lines.end());
      return static_cast<int64_t>(lines.size());
    }
    for (const std::string& line : lines) {
      const size_t cells = sample_.columns.size() * static_cast<size_t>(sample_.rows() + 1);
      const bool whole = cut(line, cells_);
      if (!whole || cells_.size() != sample_.columns.size()) continue;
      ++taken;
      if (cells > kMostCells) {
        sample_.whole = false;
        continue;
      }
      for (size_t c = 0; c < cells_.size(); ++c) {
        sample_.columns[c].add(cells_[order_.empty() ? c : order_[c]]);
      }
    }
    return taken;
  }

  void find_format() {
    if (sample_.data.header || sample_.data.format != DataFormat::csv) return;
    if (looks_like_criteo(sample_.columns, layout_.delimiter)) {
      sample_.data.format = DataFormat::criteo_tsv;
      for (size_t c = 0; c < 40; ++c) {
        sample_.columns[c].name = c == 0   ? "label"
                                  : c < 14 ? numbered("I", c)
                                           : numbered("C", c - 13);
      }
    } else if (looks_like_behavior_log(sample_.columns, layout_.delimiter)) {
      sample_.data.format = DataFormat::behavior_log;
      const char* const names[] = {"user", "item", "category", "behavior", "time"};
      for (size_t c = 0; c < 5; ++c) sample_.columns[c].name = names[c];
    }
  }

  Files& files_;
  const std::vector<std::string>& paths_;
  TextLayout layout_;
  Sample sample_;
  size_t first_ = 0;               // the file that the others are held against
  std::vector<size_t> order_;      // of the columns in this file's header; empty: as in the first's
  std::vector<std::string> json_;  // lines
  Row cells_;
};

}  // namespace

Result<Sample> sample_text(Files& files, const std::vector<std::string>& paths) {
  return TextSample(files, paths).run();
}

}  // namespace recmill::reader
