// SPDX-License-Identifier: Apache-2.0
// The kept rows of files of row groups as one sequence, read in slices.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "batch/column_batch.h"
#include "reader/columnar/slice_decoder.h"
#include "reader/lines/row_index.h"
#include "reader/reader.h"
#include "reader/row_split.h"

namespace recmill::reader {

/// What makes a row of a row group count.
struct SliceRule {
  /// Fails where the columns lack what the split of `options` looks at.
  static Result<SliceRule> make(const DataOptions& options, Subset subset,
                                const ColumnarSchema& schema);

  RowSplit split;
  int column = -1;  // that the split looks at; -1: none, or the whole row
  OnBadRow on_bad_row = OnBadRow::fail;
  int64_t bad_row_limit = 0;
  int64_t window = 65536;  // rows of a slice at most
  DataFormat format = DataFormat::parquet;
  ScoredRows scored;
  bool key_is_integer = false;  // of scored.key

  bool keeps_all() const { return split.keeps_all() && on_bad_row == OnBadRow::fail; }
  /// The columns that must be decoded to tell which rows count.
  std::vector<size_t> looks_at(const ColumnarSchema& schema) const;
  std::string fingerprint(const ColumnarSchema& schema) const;
};

class SliceSource {
 public:
  SliceSource(std::vector<BoundFile> files, SliceRule rule, ThreadPool& pool);

  const ColumnarSchema& schema() const { return decoder_.schema(); }
  /// Finds the rows that count, before anything else: nothing is read where all do, else one pass
  /// over what rule.looks_at(), whose result `cache` keeps (row_index.h). Of them the first `limit`
  /// are taken; 0: all.
  Status find_rows(Files& files, const std::string& cache, int64_t limit);
  /// Gives up the slices outside of `ranges` of positions, ascending and apart, in which slices are
  /// whole.
  void keep_only(std::span<const RowRange> ranges);
  /// In the order of the data, each with a row at least.
  const std::vector<RowSlice>& slices() const { return slices_; }
  int64_t rows() const;
  int64_t bad_rows() const { return bad_rows_; }
  KeySource key_source() const;
  /// Replaces `batch` by the kept rows of a slice, as `order` permutes them; empty: as they are.
  Status load(const RowSlice& slice, std::span<const uint32_t> order, ColumnBatch& batch);

 private:
  using Slices = std::span<const RowSlice>;

  const std::string& path_of(const RowSlice& slice) const;
  Result<std::vector<RowIndex>> index(const SliceRule& rule, Files& files,
                                      const std::string& cache);
  Result<RowIndex> scan(const SliceRule& rule, Slices slices);
  std::vector<uint32_t> kept_rows(const SliceRule& rule, const RowSlice& slice,
                                  const std::vector<BadRow>& bad) const;
  Status read_times(const RowSlice& slice, std::span<const int64_t> skipped,
                    std::vector<int64_t>& times);
  Result<int64_t> find_boundary(Files& files, const std::string& cache);
  void take_first(int64_t limit);
  Status append_keys(const RowSlice& slice, const std::vector<uint32_t>& rows, int64_t count,
                     RowKeys& keys);

  SliceDecoder decoder_;
  SliceRule rule_;
  ThreadPool& pool_;
  std::vector<size_t> all_columns_;
  std::vector<RowSlice> slices_;
  int64_t bad_rows_ = 0;
  Files* files_ = nullptr;              // where the key's column is asked for
  std::vector<std::string> key_cells_;  // of key_file_
  int64_t key_file_ = -1;
};

}  // namespace recmill::reader
