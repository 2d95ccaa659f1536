// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/status.h"
#include "disk/disk_versions.h"
#include "schema/table_spec.h"
#include "table/home/local_home.h"
#include "table/initial_rows.h"
#include "table/row_share.h"

namespace recmill::disk {

/// The rows of a LocalHome, in a database; those that nobody has put are made.
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
  Result<std::vector<int64_t>> images_left() const { return versions_.images_left(); }
  /// All rows are as in one of these, which stays, alone. A kill in between loses nothing.
  Result<std::shared_ptr<table::RowSnapshot>> go_back(int64_t step);
  /// From now on images that are let go stay, for a next process.
  void end_releases();
  /// All rows are initial ones.
  Status clear() { return versions_.clear(); }

  RowDatabase& database() { return versions_.database(); }

 private:
  class Image;

  void release(int64_t step);
  Status told(Status status);
  void make_others(const table::FetchedRows& rows, const std::vector<bool>& touched);

  DiskVersions versions_;
  const std::vector<table::RowShare> shares_;  // [tables]
  std::deque<table::InitialRows> initial_;     // [tables]
  // Of puts and of images, which are read on any thread; guards all that follows, and versions_ but
  // for fetches, which come when no put does.
  std::mutex mutex_;
  bool has_ended_ = false;        // end_releases() was called
  Status broken_;                 // since the database has failed
  std::map<int64_t, int> shown_;  // by step: how many have its image
};

}  // namespace recmill::disk
