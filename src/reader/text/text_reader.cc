// SPDX-License-Identifier: Apache-2.0
#include "reader/text/text_reader.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "reader/data_files.h"
#include "reader/lines/byte_stream.h"
#include "reader/lines/row_source.h"
#include "reader/lines/window_read_ahead.h"
#include "reader/row/plain_text_parser.h"
#include "reader/row_order.h"
#include "reader/text/text_boundary.h"

namespace recmill::reader {
namespace {

std::vector<TextLayout> layouts_of(const FileRules& rules) {
  std::vector<TextLayout> layouts;
  for (const RowRule& rule : rules.rules) layouts.push_back(rule.layout);
  return layouts;
}

// [rules]: the column of this name; -1: there is none.
std::vector<int> columns_of_key(const FileRules& rules, const std::string& key) {
  std::vector<int> columns;
  for (const RowRule& rule : rules.rules)
    columns.push_back(key.empty() ? -1 : rule.layout.column_named(key));
  return columns;
}

class TextReader final : public Reader {
 public:
  TextReader(const DataOptions& options, Subset subset, uint64_t seed, ThreadPool& pool,
             Files& files, std::vector<std::string> paths, FileRules rules, ParserKind parser)
      : options_(options),
        shuffle_(subset == Subset::train ? options.shuffle.kind : ShuffleKind::none),
        seed_(seed),
        pool_(pool),
        files_(files),
        paths_(std::move(paths)),
        rules_(std::move(rules)),
        key_columns_(columns_of_key(rules_, options.scored.key)),
        parser_(layouts_of(rules_), parser) {}

  const DataSchema& schema() const override { return parser_.schema(); }

  Result<int64_t> rows() override {
    RECMILL_RETURN_IF_ERROR(find_rows());
    return bounds_.back();
  }

  Status read(int64_t epoch, int64_t first, int64_t count, ColumnBatch& batch) override {
    RECMILL_RETURN_IF_ERROR(find_rows());
    RECMILL_CHECK(epoch >= 0 && first >= 0 && count >= 0, std::to_string(first));
    if (epoch != epoch_) {
      order_ = order_of_epoch(bounds_, shuffle_, seed_, epoch);
      epoch_ = epoch;
    }
    const int64_t end = std::min(first + count, order_.rows());
    parser_.clear(batch, std::max<int64_t>(end - first, 0));
    batch.first = first;
    while (first + batch.samples < end) {
      RECMILL_RETURN_IF_ERROR(append_from_slot(first + batch.samples, end, batch));
    }
    handed_out_ += batch.samples;
    return {};
  }

  KeySource key_source() const override { return {paths_, false}; }

  ReaderCounts counts() const override {
    ReaderCounts counts;
    counts.rows = handed_out_;
    counts.bad_rows = source_ == nullptr ? 0 : source_->bad_rows();
    return counts;
  }

 private:
  // Opens the indexes, at the first call.
  Status find_rows() {
    const std::lock_guard lock(finding_);
    if (source_ != nullptr) return {};
    FileRules rules = rules_;
    if (const RowSplit split = rules.rules[0].split.rule(); split.lacks_boundary()) {
      for (RowRule& rule : rules.rules) rule.split = {};
      RECMILL_ASSIGN_OR_RETURN(
          const int64_t boundary,
          find_text_boundary(files_, options_.cache, paths_, rules, split.eval_fraction(), pool_));
      for (RowRule& rule : rules.rules) {
        RECMILL_ASSIGN_OR_RETURN(rule.split,
                                 TextSplit::make(split.with_boundary(boundary), rule.layout));
      }
    }
    RECMILL_ASSIGN_OR_RETURN(
        auto source, RowSource::open(files_, paths_, options_.cache, std::move(rules), pool_));
    int64_t rows = source->rows();
    const RowSplit& split = source->split();
    if (rows == 0 && !split.keeps_all()) return split.empty_side();
    if (options_.rows > 0) rows = std::min(rows, options_.rows);
    // Unshuffled, a window is a block (1 MiB of Criteo), so that text stays in the cache.
    bounds_ = shuffle_ == ShuffleKind::window ? equal_windows(rows, options_.shuffle.window)
                                              : source->block_bounds(rows);
    source_ = std::move(source);
    ahead_ = std::make_unique<WindowReadAhead>(
        [this](int64_t epoch, int64_t slot, TextWindow& window) {
          return load(epoch, slot, window);
        },
        options_.prefetch);
    return {};
  }

  // Runs on the read-ahead thread.
  Status load(int64_t epoch, int64_t slot, TextWindow& window) {
    if (epoch != ahead_epoch_) {
      ahead_order_ = order_of_epoch(bounds_, shuffle_, seed_, epoch);
      ahead_epoch_ = epoch;
    }
    const int64_t number = ahead_order_.windows[slot];
    const int64_t size = bounds_[number + 1] - bounds_[number];
    RECMILL_RETURN_IF_ERROR(source_->load(bounds_[number], size, window));
    if (shuffle_ == ShuffleKind::none) return {};
    window.permute(order_in_window(size, shuffle_, seed_, epoch, number));
    return {};
  }

  // Appends the rows from `position` on that are in the same slot, up to `end`.
  Status append_from_slot(int64_t position, int64_t end, ColumnBatch& batch) {
    const int64_t slot = order_.slot_of(position);
    RECMILL_ASSIGN_OR_RETURN(TextWindow* const window, ahead_->get(epoch_, slot, order_.slots()));
    const int64_t from = position - order_.starts[slot];
    const int64_t count = std::min(end, order_.starts[slot + 1]) - position;
    const auto rows = std::span(window->rows).subspan(from, count);
    const BadRow bad = parser_.append(window->text(), rows, pool_, batch);
    if (bad.row >= 0) return bad.status.at(window->place_of(rows[bad.row]));
    return options_.scored.numbers ? append_keys(*window, from, count, batch.keys) : Status();
  }

  // Of `count` rows of the window from `first` on.
  Status append_keys(const TextWindow& window, int64_t first, int64_t count, RowKeys& keys) const {
    std::vector<std::string> cells;
    for (auto row = static_cast<size_t>(first); row < static_cast<size_t>(first + count); ++row) {
      const TextWindow::Place place = window.place_in_file(row);
      keys.files.push_back(place.file);
      keys.numbers.push_back(place.number);
      const uint32_t rule = window.rows[row].layout;
      if (key_columns_[rule] < 0) continue;
      RECMILL_RETURN_IF_ERROR(split_cells(rules_.rules[rule].layout, window.row(row), cells));
      keys.cells.push_back(std::move(cells[key_columns_[rule]]));
    }
    return {};
  }

  const DataOptions options_;
  const ShuffleKind shuffle_;
  const uint64_t seed_;
  ThreadPool& pool_;
  Files& files_;
  const std::vector<std::string> paths_;
  const FileRules rules_;               // their split by time may lack the boundary
  const std::vector<int> key_columns_;  // [rules], of the column that tells rows apart; -1: none
  TextParser parser_;

  std::mutex finding_;
  std::unique_ptr<RowSource> source_;  // null before the rows are found
  std::vector<int64_t> bounds_;
  EpochOrder order_;
  int64_t epoch_ = -1;
  int64_t handed_out_ = 0;
  // The read-ahead thread's own:
  EpochOrder ahead_order_;
  int64_t ahead_epoch_ = -1;
  std::unique_ptr<WindowReadAhead> ahead_;  // last: its thread uses the others
};

// The cells of the first row of a file; none of one that is empty.
Result<std::vector<std::string>> read_header(const DataOptions& options, const std::string& path,
                                             Files& files) {
  RECMILL_ASSIGN_OR_RETURN(auto stream, open_byte_stream(files, path));
  std::string text(1 << 20, '\0');
  RECMILL_ASSIGN_OR_RETURN(const size_t size, stream->read(text));
  text.resize(size);
  TextLayout layout;
  layout.delimiter = options.delimiter.empty() ? "," : options.delimiter;
  layout.quote = options.quote.empty() ? 0 : options.quote[0];
  std::vector<uint32_t> ends;
  const std::string_view content = after_byte_order_mark(text);
  std::vector<std::string> cells;
  if (is_blank_line(content.substr(blank_lines(content, layout)), layout)) return cells;
  find_row_ends(content, layout, ends);
  if (ends.empty()) ends.push_back(static_cast<uint32_t>(content.size()));
  const TextRow row = trim_row(content.data(), 0, ends[0], layout);
  const Status status = split_cells(layout, content.substr(row.begin, row.size), cells);
  if (!status.ok()) return status.at(path + ":1");
  return cells;
}

// Of json_lines: by the first rows of all files, evaluation's too.
Result<TextLayout> layout_of_json(const DataOptions& options, Files& files) {
  constexpr size_t kHeadBytes = 256 << 10;
  RECMILL_ASSIGN_OR_RETURN(const auto paths, data_files(options, Subset::all, files));
  std::vector<std::string> heads;
  for (const std::string& path : paths) {
    RECMILL_ASSIGN_OR_RETURN(auto stream, open_byte_stream(files, path));
    std::string& head = heads.emplace_back(kHeadBytes, '\0');
    RECMILL_ASSIGN_OR_RETURN(const size_t size, stream->read(head));
    head = after_byte_order_mark({head.data(), size});
  }
  return json_layout(options, heads);
}

// Whether every row at the begin of a file has one cell fewer than `layout`.
Result<bool> lacks_one_cell(const TextLayout& layout, const std::string& path, Files& files) {
  std::string text(1 << 20, '\0');
  RECMILL_ASSIGN_OR_RETURN(auto stream, open_byte_stream(files, path));
  RECMILL_ASSIGN_OR_RETURN(const size_t size, stream->read(text));
  const std::string_view content = after_byte_order_mark(std::string_view(text).substr(0, size));
  std::vector<uint32_t> ends;
  find_row_ends(content, layout, ends);
  if (ends.empty()) ends.push_back(static_cast<uint32_t>(content.size()));
  uint32_t begin = 0;
  std::vector<std::string> cells;
  bool any = false;
  for (const uint32_t end : ends) {
    const TextRow row = trim_row(content.data(), std::exchange(begin, end), end, layout);
    const std::string_view cells_of_row = content.substr(row.begin, row.size);
    if (is_blank_line(cells_of_row, layout)) continue;
    if (!split_cells(layout, cells_of_row, cells).ok()) return false;
    if (cells.size() + 1 != layout.columns.size()) return false;
    any = true;
  }
  return any;
}

// Has rows without a label taken: those whose label is missing, and, where there is no header to
// ask, those of files whose rows are all short of one cell.
Status admit_rows_without_label(const DataOptions& options, const std::vector<std::string>& paths,
                                Files& files, FileRules& rules) {
  if (options.scored.labels || options.format == DataFormat::libsvm) return {};
  for (RowRule& rule : rules.rules) {
    const int label = rule.layout.column_of(ColumnRole::label);
    if (label >= 0) rule.layout.columns[label].may_be_empty = true;
  }
  const TextLayout& layout = rules.rules[0].layout;
  const int label = layout.column_of(ColumnRole::label);
  if (layout.header || label < 0) return {};
  for (size_t file = 0; file < paths.size(); ++file) {
    RECMILL_ASSIGN_OR_RETURN(const bool lacks_it,
                             lacks_one_cell(rules.rules[0].layout, paths[file], files));
    if (!lacks_it) continue;
    if (rules.rules.size() == 1) {
      RowRule without = rules.rules[0];
      without.layout.columns.erase(without.layout.columns.begin() + label);
      rules.rules.push_back(std::move(without));
    }
    rules.of_file[file] = 1;
  }
  return {};
}

// The layouts of csv files with headers, by which each finds its columns; one that is empty has
// that of the first that is not.
Result<FileRules> rules_by_header(const DataOptions& options, const std::vector<std::string>& paths,
                                  Files& files) {
  DataOptions bare = options;  // what no header would mend
  bare.header = false;
  RECMILL_RETURN_IF_ERROR(csv_layout(bare, {}).status());
  FileRules rules;
  std::vector<std::string> fingerprints;
  for (const std::string& path : paths) {
    rules.of_file.push_back(0);
    RECMILL_ASSIGN_OR_RETURN(const auto header, read_header(options, path, files));
    if (header.empty()) continue;
    auto layout = csv_layout(options, header);
    if (!layout.ok()) return layout.status().at(path + ":1");
    if (!rules.rules.empty()) follow_schema(rules.rules[0].layout.schema, *layout);
    const std::string fingerprint = layout->fingerprint();
    const auto known = std::ranges::find(fingerprints, fingerprint);
    rules.of_file.back() = static_cast<uint32_t>(known - fingerprints.begin());
    if (known != fingerprints.end()) continue;
    fingerprints.push_back(fingerprint);
    rules.rules.emplace_back().layout = *std::move(layout);
  }
  if (rules.rules.empty()) return Status::Failed(paths[0] + ": is empty");
  return rules;
}

// The rules of all files, without their split.
Result<FileRules> rules_of(const DataOptions& options, const std::vector<std::string>& paths,
                           Files& files) {
  if (options.format == DataFormat::csv && options.header) {
    return rules_by_header(options, paths, files);
  }
  RowRule rule;
  if (options.format == DataFormat::json_lines) {
    RECMILL_ASSIGN_OR_RETURN(rule.layout, layout_of_json(options, files));
    return FileRules::same(std::move(rule), paths.size());
  }
  if (options.format == DataFormat::csv) {
    RECMILL_ASSIGN_OR_RETURN(rule.layout, csv_layout(options, {}));
    return FileRules::same(std::move(rule), paths.size());
  }
  RECMILL_ASSIGN_OR_RETURN(const auto label, LabelRule::make(options.label));
  if (options.format == DataFormat::libsvm) {
    RECMILL_ASSIGN_OR_RETURN(rule.layout, libsvm_layout(options.libsvm, label));
  } else {
    RECMILL_ASSIGN_OR_RETURN(rule.layout, criteo_layout(options.criteo, label));
  }
  return FileRules::same(std::move(rule), paths.size());
}

}  // namespace

Result<std::unique_ptr<Reader>> open_text_reader(const DataOptions& options, Subset subset,
                                                 uint64_t seed, ThreadPool& pool, Files& files,
                                                 ParserKind parser) {
  RECMILL_ASSIGN_OR_RETURN(auto paths, data_files(options, subset, files));
  RECMILL_ASSIGN_OR_RETURN(auto rules, rules_of(options, paths, files));
  RECMILL_RETURN_IF_ERROR(admit_rows_without_label(options, paths, files, rules));
  for (const int column : columns_of_key(rules, options.scored.key)) {
    if (options.scored.key.empty() || column >= 0) continue;
    return Status::BadRequest("--key: the data has no column '" + options.scored.key + "'");
  }
  RECMILL_ASSIGN_OR_RETURN(const auto split, RowSplit::make(options.split, subset));
  for (RowRule& rule : rules.rules) {
    RECMILL_ASSIGN_OR_RETURN(rule.split, TextSplit::make(split, rule.layout));
    rule.on_bad_row = options.on_bad_row;
    rule.bad_row_limit = options.bad_row_limit;
  }
  return std::unique_ptr<Reader>(new TextReader(options, subset, seed, pool, files,
                                                std::move(paths), std::move(rules), parser));
}

}  // namespace recmill::reader
