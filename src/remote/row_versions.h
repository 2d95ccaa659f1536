// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "remote/record_map.h"
#include "remote/row_lists.h"
#include "table/home/served_rows.h"

namespace recmill::remote {

/// The touched rows of a server, and images of them as after steps, each of which keeps what later
/// puts replace. An image that is older than another one reads through it: a row that changes many
/// times between two images is kept once.
class RowVersions {
 public:
  explicit RowVersions(std::vector<TableShape> tables);

  /// Null: the row is an initial one.
  const std::byte* find(int table, int64_t row) const { return now_[table].find(row); }
  void prefetch(int table, int64_t row) const { now_[table].prefetch(row); }
  /// The puts of a row come in the order of their steps.
  void put(const table::PutRows& rows, int64_t step);
  /// What put() or change() would take, in bytes, at most.
  int64_t growth(const table::PutRows& rows, int64_t step) const;

  /// Makes an image as after `step`, which is later than those of all others, and than no put.
  void cut(int64_t step);
  bool has(int64_t step) const { return find_image(step) != nullptr; }
  /// Sets rows of an image as they are after its step, and with them later images and the rows
  /// themselves, but where they were put at a later step.
  void change(int64_t step, const table::PutRows& rows);
  void drop(int64_t step);
  /// All rows are as after `step`, whose image stays, alone.
  void go_back(int64_t step);
  /// All rows are initial ones, and there is no image.
  void clear();

  /// A row of an image; null: an initial one.
  const std::byte* find_at(int64_t step, int table, int64_t row) const;
  /// Those of an image that are touched, ascending.
  std::vector<int64_t> touched_at(int64_t step, int table) const;

  int64_t touched_rows() const;
  int64_t bytes() const;        // of rows as they are
  int64_t image_bytes() const;  // of what images keep

 private:
  using Tables = std::vector<RecordMap>;
  struct Image {
    int64_t step = 0;
    Tables kept;  // rows that were put later
  };

  Tables no_rows() const;
  const Image* find_image(int64_t step) const;
  void keep(Image& image, int table, int64_t row, const std::byte* record) const;
  void copy(int table, std::byte* to, const std::byte* from) const;

  const std::vector<TableShape> shapes_;
  Tables now_;
  std::deque<Image> images_;  // oldest first
};

/// A server's rows in memory.
class MemoryRows : public table::ServedRows {
 public:
  explicit MemoryRows(std::vector<TableShape> tables) : shapes_(tables), versions_(tables) {}

  Status read(const table::FetchedRows& rows, std::vector<bool>& touched) override;
  Status put(std::span<const table::PutRows> rows, int64_t step) override;
  Status cut(int64_t step) override;
  Status change(int64_t step, std::span<const table::PutRows> rows) override;
  Status drop(int64_t step) override;
  Status go_back(int64_t step) override;
  Result<ImageRows> read_image(int64_t step, int table, int64_t first, size_t bytes) override;
  Sizes sizes() const override;
  int64_t growth(std::span<const table::PutRows> rows, int64_t step) const override;

 private:
  const std::vector<TableShape> shapes_;
  RowVersions versions_;
  // Touched rows of an image that was read last:
  int64_t read_step_ = 0;
  int read_table_ = -1;
  std::vector<int64_t> read_rows_;
};

}  // namespace recmill::remote
