// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "disk/row_database.h"
#include "schema/table_spec.h"
#include "table/home/local_home.h"
#include "table/initial_rows.h"
#include "table/row_record.h"
#include "table/row_share.h"

namespace recmill::disk {

/// Rows in a database: those that were put, by (table, row); the others are made. What a put
/// replaces is kept for the newest image of an earlier step, by (step, table, row): an image reads
/// through those behind it. So after a kill the rows go back to any image that is there, and as
/// much is read for that as has changed since.
class DiskRows final : public table::HomeRows, public std::enable_shared_from_this<DiskRows> {
 public:
  /// `shares` [tables]: the rows that are here.
  DiskRows(std::unique_ptr<RowDatabase> database, std::vector<TableSpec> tables, uint64_t seed,
           std::vector<table::RowShare> shares);

  Status check(int table, std::span<const int64_t> rows, size_t record_bytes) const override;
  Status read(std::span<const table::FetchedRows> rows) override;
  Status replace(std::span<const table::PutRows> rows, int64_t step) override;
  /// It is there until it is let go, also when the process is killed.
  Result<std::shared_ptr<table::RowSnapshot>> image(int64_t step) override;

  /// Steps of the images that an earlier process has left, ascending.
  Result<std::vector<int64_t>> images_left() const;
  /// All rows are as in one of these, which stays, alone. A kill in between loses nothing.
  Result<std::shared_ptr<table::RowSnapshot>> go_back(int64_t step);
  /// From now on images that are let go stay, for a next process.
  void end_releases();
  /// All rows are initial ones.
  Status clear();

  RowDatabase& database() { return *database_; }

 private:
  class Image;
  struct Kept {
    int64_t step = 0;
    std::unordered_set<std::string> rows;  // keys of rows
  };

  std::string key_of(int table, int64_t row) const;
  Status remove_kept(int64_t step, std::vector<Change> with, bool whole);
  void release(int64_t step, const Kept* image);
  Status read_block(const Kept& image, int table, std::span<const int64_t> rows,
                    std::span<std::byte> records, std::vector<bool>& touched);
  Status read_table(const table::FetchedRows& of, std::vector<bool>& is_there);

  const std::unique_ptr<RowDatabase> database_;
  const std::vector<TableSpec> tables_;
  const std::vector<table::RowShare> shares_;  // [tables]
  std::vector<table::RowRecord> records_;      // [tables]
  std::deque<table::InitialRows> initial_;     // [tables]
  std::mutex mutex_;                          // of puts and of images, which are read on any thread
  bool has_ended_ = false;                    // end_releases() was called
  Status broken_;                             // since an image could not be let go
  std::deque<std::unique_ptr<Kept>> images_;  // oldest first; guarded by mutex_
};

}  // namespace recmill::disk
