// SPDX-License-Identifier: Apache-2.0
#include "remote/row_versions.h"

#include <algorithm>
#include <array>
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

void RowVersions::put(const table::PutRows& rows, int64_t step) {
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

// A row is new itself, and so is what the newest earlier image keeps of it.
int64_t RowVersions::growth(const table::PutRows& rows, int64_t step) const {
  const int64_t bytes = shapes_[rows.table].record_bytes + RecordMap::kMostBytesBeside;
  const auto later =
      std::ranges::find_if(images_, [&](const Image& of) { return of.step >= step; });
  const bool keeps = later != images_.begin();
  int64_t grown = 0;
  for (const int64_t row : rows.rows) {
    if (find(rows.table, row) == nullptr) grown += bytes;
    if (keeps && !std::prev(later)->kept[rows.table].contains(row)) grown += bytes;
  }
  return grown;
}

void RowVersions::cut(int64_t step) {
  RECMILL_CHECK(images_.empty() || images_.back().step < step, std::to_string(step));
  images_.push_back({step, no_rows()});
}

// A row that no image from that one on has was not put later than any of them. One that an image
// has was not put between.
void RowVersions::change(int64_t step, const table::PutRows& rows) {
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

// Memory is far away: of a few rows at a time first their entries are asked for, then their
// records, and then these are copied.
Status MemoryRows::read(const table::FetchedRows& rows, std::vector<bool>& touched) {
  constexpr size_t kAtOnce = 64;
  const auto record_bytes = static_cast<size_t>(shapes_[rows.table].record_bytes);
  std::array<const std::byte*, kAtOnce> found{};
  touched.assign(rows.rows.size(), false);
  for (size_t first = 0; first < rows.rows.size(); first += kAtOnce) {
    const auto some = rows.rows.subspan(first, std::min(kAtOnce, rows.rows.size() - first));
    for (const int64_t row : some) versions_.prefetch(rows.table, row);
    for (size_t i = 0; i < some.size(); ++i) {
      found[i] = versions_.find(rows.table, some[i]);
      for (size_t at = 0; found[i] != nullptr && at < record_bytes; at += 64)
        __builtin_prefetch(found[i] + at);
    }
    std::byte* to = rows.records.data() + first * record_bytes;
    for (size_t i = 0; i < some.size(); ++i, to += record_bytes) {
      if (found[i] == nullptr) continue;
      touched[first + i] = true;
      std::memcpy(to, found[i], record_bytes);
    }
  }
  return {};
}

Status MemoryRows::put(std::span<const table::PutRows> rows, int64_t step) {
  for (const table::PutRows& of : rows) versions_.put(of, step);
  if (step <= read_step_) read_table_ = -1;
  return {};
}

Status MemoryRows::cut(int64_t step) {
  versions_.cut(step);
  return {};
}

Status MemoryRows::change(int64_t step, std::span<const table::PutRows> rows) {
  for (const table::PutRows& of : rows) versions_.change(step, of);
  read_table_ = -1;
  return {};
}

Status MemoryRows::drop(int64_t step) {
  versions_.drop(step);
  read_table_ = -1;
  return {};
}

Status MemoryRows::go_back(int64_t step) {
  versions_.go_back(step);
  read_table_ = -1;
  return {};
}

Result<table::ServedRows::ImageRows> MemoryRows::read_image(int64_t step, int table, int64_t first,
                                                            size_t bytes) {
  if (read_table_ != table || read_step_ != step) {
    read_rows_ = versions_.touched_at(step, table);
    read_table_ = table;
    read_step_ = step;
  }
  const auto record_bytes = static_cast<size_t>(shapes_[table].record_bytes);
  const auto begin = std::ranges::lower_bound(read_rows_, first);
  const auto most = static_cast<std::ptrdiff_t>(bytes / record_bytes + 1);
  const auto end = begin + std::min(most, read_rows_.end() - begin);
  ImageRows image{{begin, end}, {}, end == read_rows_.end() ? -1 : *end};
  image.records.reserve(image.rows.size() * record_bytes);
  for (const int64_t row : image.rows) {
    const std::byte* record = versions_.find_at(step, table, row);
    image.records.insert(image.records.end(), record, record + record_bytes);
  }
  return image;
}

table::ServedRows::Sizes MemoryRows::sizes() const {
  return {versions_.touched_rows(), versions_.bytes(), versions_.image_bytes()};
}

int64_t MemoryRows::growth(std::span<const table::PutRows> rows, int64_t step) const {
  int64_t grown = 0;
  for (const table::PutRows& of : rows) grown += versions_.growth(of, step);
  return grown;
}

}  // namespace recmill::remote
