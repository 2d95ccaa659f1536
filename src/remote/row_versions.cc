// SPDX-License-Identifier: Apache-2.0
#include "remote/row_versions.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/status.h"

namespace recmill::remote {

RowVersions::RowVersions(std::vector<TableShape> tables)
    : shapes_(std::move(tables)), now_(no_rows()) {}

RowVersions::Tables RowVersions::no_rows() const {
  Tables tables;
  for (const TableShape& shape : shapes_) tables.emplace_back(shape.record_bytes);
  return tables;
}

void RowVersions::copy(int table, std::byte* to, const std::byte* from) const {
  std::memcpy(to, from, static_cast<size_t>(shapes_[table].record_bytes));
}

const RowVersions::Image* RowVersions::find_image(int64_t step) const {
  const auto found = std::ranges::find(images_, step, &Image::step);
  return found == images_.end() ? nullptr : &*found;
}

/// The row as it is before it is changed, unless the image has it already. Null: an initial row.
void RowVersions::keep(Image& image, int table, int64_t row, const std::byte* record) const {
  RecordMap& kept = image.kept[table];
  if (kept.contains(row)) return;
  if (record != nullptr)
    copy(table, kept.make(row), record);
  else
    kept.make_initial(row);
}

void RowVersions::put(const TableRows& rows, int64_t step) {
  const auto later =
      std::ranges::find_if(images_, [&](const Image& of) { return of.step >= step; });
  Image* image = later == images_.begin() ? nullptr : &*std::prev(later);
  const std::byte* record = rows.records.data();
  for (const int64_t row : rows.rows) {
    if (image != nullptr) keep(*image, rows.table, row, find(rows.table, row));
    copy(rows.table, now_[rows.table].make(row), record);
    record += shapes_[rows.table].record_bytes;
  }
}

void RowVersions::cut(int64_t step) {
  RECMILL_CHECK(images_.empty() || images_.back().step < step, std::to_string(step));
  images_.push_back({step, no_rows()});
}

// A row that no image from that one on has was not put later than any of them. One that an image
// has was not put between.
void RowVersions::change(int64_t step, const TableRows& rows) {
  const auto image = std::ranges::find(images_, step, &Image::step);
  RECMILL_CHECK(image != images_.end(), std::to_string(step));
  const std::byte* record = rows.records.data();
  for (const int64_t row : rows.rows) {
    if (image != images_.begin())
      keep(*std::prev(image), rows.table, row, find_at(step, rows.table, row));
    const auto has_it = std::find_if(
        image, images_.end(), [&](const Image& of) { return of.kept[rows.table].contains(row); });
    RecordMap& table = has_it == images_.end() ? now_[rows.table] : has_it->kept[rows.table];
    copy(rows.table, table.make(row), record);
    record += shapes_[rows.table].record_bytes;
  }
}

void RowVersions::drop(int64_t step) {
  const auto image = std::ranges::find(images_, step, &Image::step);
  RECMILL_CHECK(image != images_.end(), std::to_string(step));
  if (image != images_.begin()) {  // the older one reads through it
    Tables& older = std::prev(image)->kept;
    for (int t = 0; t < std::ssize(older); ++t)
      image->kept[t].each([&](int64_t row, const std::byte* record) {
        if (older[t].contains(row)) return;
        if (record != nullptr)
          copy(t, older[t].make(row), record);
        else
          older[t].make_initial(row);
      });
  }
  images_.erase(image);
}

void RowVersions::go_back(int64_t step) {
  RECMILL_CHECK(has(step), std::to_string(step));
  for (bool is_there = false; !is_there; images_.pop_back()) {
    const Image& image = images_.back();
    is_there = image.step == step;
    for (int t = 0; t < std::ssize(now_); ++t)
      image.kept[t].each([&](int64_t row, const std::byte* record) {
        if (record != nullptr)
          copy(t, now_[t].make(row), record);
        else
          now_[t].make_initial(row);
      });
  }
  images_.clear();
  cut(step);
}

void RowVersions::clear() {
  images_.clear();
  now_ = no_rows();
}

const std::byte* RowVersions::find_at(int64_t step, int table, int64_t row) const {
  for (auto image = std::ranges::find(images_, step, &Image::step); image != images_.end(); ++image)
    if (image->kept[table].contains(row)) return image->kept[table].find(row);
  return find(table, row);
}

std::vector<int64_t> RowVersions::touched_at(int64_t step, int table) const {
  std::vector<int64_t> rows;
  now_[table].each([&](int64_t row, const std::byte*) {
    if (find_at(step, table, row) != nullptr) rows.push_back(row);
  });
  std::ranges::sort(rows);
  return rows;
}

int64_t RowVersions::touched_rows() const {
  int64_t rows = 0;
  for (const RecordMap& table : now_) rows += table.records();
  return rows;
}

int64_t RowVersions::bytes() const {
  int64_t bytes = 0;
  for (const RecordMap& table : now_) bytes += table.bytes();
  return bytes;
}

int64_t RowVersions::image_bytes() const {
  int64_t bytes = 0;
  for (const Image& image : images_)
    for (const RecordMap& table : image.kept) bytes += table.bytes();
  return bytes;
}

}  // namespace recmill::remote
