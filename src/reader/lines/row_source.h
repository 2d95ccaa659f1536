// SPDX-License-Identifier: Apache-2.0
// The kept rows of a list of text files as one sequence, read in windows from any position.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reader/lines/byte_stream.h"
#include "reader/lines/row_index.h"

namespace recmill::reader {

/// Text of some rows, and where it came from. Memory is reused from load to load.
class TextWindow {
 public:
  std::vector<TextRow> rows;  // in the order of the data, until permute()

  struct Place {
    int32_t file = 0;    // of the source's
    int64_t number = 0;  // rows of the file before it
  };
  /// Row `i` becomes what row order[i] was.
  void permute(std::span<const uint32_t> order);
  const Place& place_in_file(size_t i) const { return places_[i]; }

  const char* text() const { return memory_.get() + kTextPadding; }
  std::string_view row(size_t i) const { return {text() + rows[i].begin, rows[i].size}; }
  /// "file:line" of a row.
  std::string place_of(const TextRow& row) const;

 private:
  friend class RowSource;
  struct Segment {  // text of one file
    const std::string* path;
    int64_t line;    // of its first byte
    uint32_t begin;  // in text()
  };
  void clear();
  char* grow(size_t bytes);  // room for as many more, past size_

  std::unique_ptr<char[]> memory_;  // kTextPadding, text, kTextPadding
  size_t capacity_ = 0, size_ = 0;  // of the text
  std::vector<Segment> segments_;
  std::vector<Place> places_;  // [rows]
};

class RowSource {
 public:
  /// Finds or makes the index of each file. An error where no file has a row.
  static Result<std::unique_ptr<RowSource>> open(Files& files, std::vector<std::string> paths,
                                                 const std::string& cache, FileRules rules,
                                                 ThreadPool& pool);

  int64_t rows() const { return first_.back(); }
  int64_t bad_rows() const;
  /// Of the first file.
  const TextLayout& layout() const { return rules_.of(0).layout; }
  /// By which rows were told apart.
  const RowSplit& split() const { return rules_.rules[0].split.rule(); }
  /// Where to cut the first `rows` rows so that each piece is in one block of one file, and no
  /// block is read twice: 0, the first rows of blocks, `rows`.
  std::vector<int64_t> block_bounds(int64_t rows) const;

  /// Replaces `window` by rows [first, first + count). One caller at a time.
  Status load(int64_t first, int64_t count, TextWindow& window);

 private:
  RowSource(Files& files, std::vector<std::string> paths, FileRules rules)
      : files_(files), paths_(std::move(paths)), rules_(std::move(rules)) {}
  Status load_file(size_t file, int64_t first, int64_t count, TextWindow& window);
  Status take_rows(size_t file, size_t block, int64_t skip, int64_t count, uint32_t begin,
                   TextWindow& window);
  Result<ByteStream*> stream_of(size_t file);

  Files& files_;
  const std::vector<std::string> paths_;
  const FileRules rules_;
  std::vector<RowIndex> indexes_;  // [files]
  std::vector<int64_t> first_{0};  // [files + 1], kept rows before each file
  struct OpenStream {
    size_t file;
    std::unique_ptr<ByteStream> stream;
  };
  std::vector<OpenStream> open_;  // those used last, at the back
  std::vector<uint32_t> ends_;
};

}  // namespace recmill::reader
