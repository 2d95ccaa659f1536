// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "disk/row_bits.h"
#include "disk/row_database.h"
#include "schema/table_spec.h"
#include "table/home/served_rows.h"

namespace recmill::disk {

/// Rows in a database, by (table, row): those that were put. What a put replaces is kept for the
/// newest image of an earlier step, by (step, table, row): an image reads through those behind it.
/// So after a kill the rows go back to any image that is there, and as much is read for that as has
/// changed since. In memory are a bit for each row, and one for each image.
class DiskVersions final : public table::ServedRows {
 public:
  DiskVersions(std::unique_ptr<RowDatabase> database, std::vector<TableSpec> tables);
  /// Bytes of memory beside the database's, with the images of a commit, the next one and a
  /// checkpoint.
  static int64_t need(std::span<const TableSpec> tables);

  Status read(const table::FetchedRows& rows, std::vector<bool>& touched) override;
  /// All of it or nothing, also when the process is killed.
  Status put(std::span<const table::PutRows> rows, int64_t step) override;
  /// It is there until it is dropped, also when the process is killed.
  Status cut(int64_t step) override;
  Status change(int64_t step, std::span<const table::PutRows> rows) override;
  Status drop(int64_t step) override;
  /// Also to an image that an earlier process has left. A kill in between loses nothing.
  Status go_back(int64_t step) override;
  Result<ImageRows> read_image(int64_t step, int table, int64_t first, size_t bytes) override;
  Sizes sizes() const override;

  bool has(int64_t step) const { return find(step) != images_.end(); }
  /// Rows of an image, as read() does.
  Status read_at(int64_t step, const table::FetchedRows& rows, std::vector<bool>& touched);
  /// Steps of the images that an earlier process has left, ascending.
  Result<std::vector<int64_t>> images_left() const;
  /// All rows are initial ones, and there is no image.
  Status clear();

  RowDatabase& database() { return *database_; }
  const std::vector<TableSpec>& tables() const { return tables_; }
  int64_t record_bytes(int table) const { return bytes_[static_cast<size_t>(table)]; }

 private:
  struct Image {
    int64_t step = 0;
    RowBits kept;
  };
  using Images = std::deque<Image>;
  /// Values that a database has found, while they are written to other keys.
  class Moved;

  Images::const_iterator find(int64_t step) const;
  const Image* keeper_of(Images::const_iterator from, int table, int64_t row) const;
  Status get(Space space, int table, std::span<const int64_t> rows,
             std::span<const std::string> keys, std::span<const size_t> places,
             std::span<std::byte> records, std::vector<bool>& touched) const;
  Status remove_kept(int64_t step, bool whole);

  const std::unique_ptr<RowDatabase> database_;
  const std::vector<TableSpec> tables_;
  std::vector<int64_t> bytes_;  // [tables], of a record
  RowBits there_;               // rows that may be in the database; others are not
  int64_t touched_ = 0;         // bits that were set since it was empty
  Images images_;               // oldest first
};

}  // namespace recmill::disk
