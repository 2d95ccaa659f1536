// SPDX-License-Identifier: Apache-2.0
// Which rows of a file there are: one entry for every 4,096 rows of text, or for every slice of row
// groups, made in one pass over the file and kept in the cache folder (docs/formats/row_index.md).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/files.h"
#include "device/thread_pool.h"
#include "reader/lines/byte_stream.h"
#include "reader/lines/row_ends.h"
#include "reader/lines/text_split.h"

namespace recmill::reader {

inline constexpr int64_t kRowsPerBlock = 4096;

/// Text: rows [4096 b, 4096 (b + 1)) of a file, header and blank end apart. Row groups: a slice.
struct RowBlock {
  uint64_t offset = 0;  // of its first row in the decompressed file; row groups: 0
  int64_t line = 1;     // line number of its first row, from 1; row groups: row number, from 0
  int64_t kept = 0;     // rows before it that the subset keeps
  bool operator==(const RowBlock&) const = default;
};

struct RowIndex {
  uint64_t bytes = 0;  // of the decompressed file; row groups: 0
  int64_t rows = 0;
  int64_t kept = 0;  // rows that the subset keeps
  std::vector<RowBlock> blocks;
  std::vector<int64_t> bad;         // numbers of the rows that are skipped as bad, ascending
  std::vector<AccessPoint> access;  // compressed files: one for some 8 MiB of text
  bool operator==(const RowIndex&) const = default;
};

/// What makes a row of text count.
struct RowRule {
  TextLayout layout;
  TextSplit split;
  OnBadRow on_bad_row = OnBadRow::fail;
  int64_t bad_row_limit = 0;  // skip: more bad rows in a file are an error

  std::string fingerprint() const;
};

/// The rules of some files: those whose headers list the columns in the same order share one.
struct FileRules {
  /// One rule for all files.
  static FileRules same(RowRule rule, size_t files) {
    return {{std::move(rule)}, std::vector<uint32_t>(files, 0)};
  }
  const RowRule& of(size_t file) const { return rules[of_file[file]]; }
  std::string fingerprint() const;

  std::vector<RowRule> rules;     // they differ in their layouts' order of columns alone
  std::vector<uint32_t> of_file;  // [files], index into rules
};

/// One pass over a file, which may have no rows. A row without an end in 16 MiB and more bad rows
/// than the limit are errors that name file and line.
Result<RowIndex> scan_rows(Files& files, const std::string& path, const RowRule& rule,
                           ThreadPool& pool);

/// The index of `path` from the cache folder, where it is whole and that of this file under this
/// rule (CacheEntry); else what `scan` returns, which is kept there. An empty `cache` keeps none.
Result<RowIndex> find_or_scan(Files& files, const std::string& cache, const std::string& path,
                              const std::string& rule,
                              const std::function<Result<RowIndex>()>& scan);

/// The same by scan_rows().
Result<RowIndex> find_or_scan_rows(Files& files, const std::string& cache, const std::string& path,
                                   const RowRule& rule, ThreadPool& pool);

}  // namespace recmill::reader
