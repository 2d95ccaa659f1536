// SPDX-License-Identifier: Apache-2.0
// Writes checkpoints (docs/formats/checkpoint.md). Rows are handed over in pieces, as views; no
// more than a few blocks of them are ever copied.
//
//   auto writer = Writer::create(files, "runs/a/checkpoints", iteration);          // rank 0
//   auto part = PartWriter::create(files, (*writer)->path(), rank);                // each rank
//   part->add({"table/C1/weight", ElementType::float32, {rows, dim}}, first_row, bytes); ...
//   auto contents = part->finish();                                                // to rank 0
//   writer->finish(all_contents, properties);                                      // rank 0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json/json_fwd.h"
#include "base/made_folders.h"
#include "base/status.h"
#include "checkpoint/finite.h"
#include "checkpoint/format.h"

namespace recmill::checkpoint {

/// What one part file holds; small, and JSON on its way between ranks.
struct PartContents {
  Part part;
  std::vector<Entry> entries;
};
std::string encode(const PartContents& contents);
Result<PartContents> decode_part(const std::string& text);

/// One part file. For one thread. Errors name the file.
class PartWriter {
 public:
  static Result<std::unique_ptr<PartWriter>> create(Files& files, const std::string& path,
                                                    int number);
  static std::string name_of(int number) { return "part-" + std::to_string(number); }

  /// Adds rows [first_row, first_row + bytes.size() / row_bytes) of an entry. Rows of one entry may
  /// come in any order, and mixed with those of others (weights and state of a piece of a table);
  /// pieces that follow each other become one block. `columns`: those that `bytes` has of each row;
  /// none: all of them. Values that are not finite are an error (finite.h).
  Status add(const EntrySpec& entry, int64_t first_row, std::span<const std::byte> bytes,
             ColumnRange columns = {});
  /// Adds the rows of these numbers, ascending; for entries whose rows take bytes.
  Status add(const EntrySpec& entry, std::span<const int64_t> rows,
             std::span<const std::byte> bytes);
  /// Rows of the entry that are not added are those that the rule makes. Of all parts alike.
  Status add_rule(const EntrySpec& entry, const RowRule& rule);
  /// A whole entry.
  Status add(const EntrySpec& entry, std::span<const std::byte> bytes) {
    return add(entry, 0, bytes);
  }

  /// Writes what is left, syncs and closes.
  Result<PartContents> finish();

 private:
  /// Rows of one entry that are not written yet, at most a block.
  struct Pending {
    size_t entry = 0;  // into contents_.entries
    int64_t first_row = 0;
    std::vector<int64_t> listed;
    std::vector<std::byte> bytes;  // empty: nothing is pending
    ColumnRange columns;
  };
  PartWriter(std::string path, std::unique_ptr<WritableFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}
  Status add_rows(const EntrySpec& entry, RowBytes rows);
  Result<Pending*> pending_of(const EntrySpec& entry);
  Status append(Pending& pending, const RowBytes& rows);
  Status write(Pending& pending);
  Status write_block(size_t entry, const RowBytes& rows);

  const std::string path_;
  std::unique_ptr<WritableFile> file_;
  PartContents contents_;
  std::map<std::string, Pending> pending_;  // by entry name
};

/// What becomes of a whole checkpoint that is already where one is written.
enum class ExistingCheckpoint { keep, replace };

/// One checkpoint. Until finish() returns, nothing is there under its name; destroyed before, it
/// leaves nothing.
class Writer {
 public:
  /// `folder` is made if needed, and goes again where it stays empty; what an earlier attempt at
  /// the same step left is removed. A whole checkpoint of the step that is to be kept makes
  /// finish() fail.
  static Result<std::unique_ptr<Writer>> create(
      Files& files, const std::string& folder, int64_t step,
      ExistingCheckpoint existing = ExistingCheckpoint::keep);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  int64_t step() const { return step_; }
  /// The folder in which parts are written.
  const std::string& path() const { return beside_; }

  /// `parts` in order of their numbers. Checks that every element of every entry is there once.
  Status finish(std::vector<PartContents> parts, Json properties);

 private:
  Writer(Files& files, MadeFolders made, std::string folder, int64_t step,
         ExistingCheckpoint existing);
  Status publish();

  Files& files_;
  const MadeFolders made_;
  const std::string folder_;
  const int64_t step_;
  const ExistingCheckpoint existing_;
  const std::string beside_;
  bool finished_ = false;
};

}  // namespace recmill::checkpoint
