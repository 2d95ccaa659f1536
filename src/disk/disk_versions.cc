// SPDX-License-Identifier: Apache-2.0
#include "disk/disk_versions.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "table/row_record.h"

namespace recmill::disk {
namespace {

using table::FetchedRows;
using table::PutRows;

constexpr int64_t kAtOnce = 4096;  // rows of a batch
constexpr const char* kImageNote = "image/";

/// Ascends with the number, which is not negative.
void append_big_endian(std::string& text, uint64_t number, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    text += static_cast<char>(number >> shift & 0xff);
}

/// Steps begin at -1.
std::string step_key(int64_t step) {
  std::string key;
  append_big_endian(key, static_cast<uint64_t>(step + 1), 8);
  return key;
}
int64_t number_at(std::string_view key, size_t first, size_t bytes) {
  uint64_t number = 0;
  for (const char c : key.substr(first, bytes))
    number = number << 8 | static_cast<unsigned char>(c);
  return static_cast<int64_t>(number);
}

std::string row_key(int table, int64_t row) {
  std::string key;
  append_big_endian(key, static_cast<uint64_t>(table), 4);
  append_big_endian(key, static_cast<uint64_t>(row), 8);
  return key;
}
std::string kept_key(int64_t step, int table, int64_t row) {
  return step_key(step) + row_key(table, row);
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

/// Rows that an image is to keep: what they are now comes from some keys. An initial row, which has
/// none, is kept as an empty value.
class DiskVersions::Moved {
 public:
  explicit Moved(int64_t step) : step_(step) {}
  void add(int table, int64_t row) { to_.push_back(kept_key(step_, table, row)); }
  void add(int table, int64_t row, std::string from) {
    from_.push_back(std::move(from));
    places_.push_back(to_.size());
    add(table, row);
  }
  /// They live as long as this.
  Status append_changes(RowDatabase& database, Space from, std::vector<Change>& changes) {
    values_.resize(from_.size());
    RECMILL_RETURN_IF_ERROR(
        database.get(from, from_, [&](size_t i, std::string_view value) { values_[i] = value; }));
    const size_t first = changes.size();
    for (std::string& key : to_) changes.push_back({Space::kept, std::move(key)});
    for (size_t i = 0; i < values_.size(); ++i) changes[first + places_[i]].value = values_[i];
    return {};
  }

 private:
  const int64_t step_;
  std::vector<std::string> to_, from_, values_;
  std::vector<size_t> places_;  // of what comes from a key, among all
};

DiskVersions::DiskVersions(std::unique_ptr<RowDatabase> database, std::vector<TableSpec> tables)
    : database_(std::move(database)), tables_(std::move(tables)), there_(tables_) {
  for (const TableSpec& table : tables_) bytes_.push_back(table::RowRecord(table).bytes());
  there_.set_all();
}

int64_t DiskVersions::need(std::span<const TableSpec> tables) {
  int64_t bytes = 0;
  for (const TableSpec& table : tables) bytes += 4 * ((table.rows + 63) / 64) * 8;
  return bytes;
}

DiskVersions::Images::const_iterator DiskVersions::find(int64_t step) const {
  return std::ranges::find(images_, step, &Image::step);
}

/// The oldest image from that one on that keeps the row; null: it is as it is now.
const DiskVersions::Image* DiskVersions::keeper_of(Images::const_iterator from, int table,
                                                   int64_t row) const {
  const auto image =
      std::find_if(from, images_.end(), [&](const Image& of) { return of.kept.test(table, row); });
  return image == images_.end() ? nullptr : &*image;
}

/// `places` [keys]: of the rows, whose records and bits are set where the database has one.
Status DiskVersions::get(Space space, int table, std::span<const int64_t> rows,
                         std::span<const std::string> keys, std::span<const size_t> places,
                         std::span<std::byte> records, std::vector<bool>& touched) const {
  const auto bytes = static_cast<size_t>(record_bytes(table));
  Status wrong;
  RECMILL_RETURN_IF_ERROR(database_->get(space, keys, [&](size_t i, std::string_view value) {
    const size_t place = places[i];
    if (value.empty()) return;  // an image keeps an initial row
    touched[place] = value.size() == bytes;
    if (touched[place])
      std::memcpy(records.data() + place * bytes, value.data(), bytes);
    else
      wrong = Status::Failed("table '" + tables_[static_cast<size_t>(table)].name + "': row " +
                             std::to_string(rows[place]) + " has another length in the database");
  }));
  return wrong;
}

Status DiskVersions::read(const FetchedRows& of, std::vector<bool>& touched) {
  std::vector<std::string> keys;
  std::vector<size_t> places;
  touched.assign(of.rows.size(), false);
  for (size_t i = 0; i < of.rows.size(); ++i) {
    if (!there_.test(of.table, of.rows[i])) continue;
    keys.push_back(row_key(of.table, of.rows[i]));
    places.push_back(i);
  }
  return get(Space::rows, of.table, of.rows, keys, places, of.records, touched);
}

Status DiskVersions::read_at(int64_t step, const FetchedRows& of, std::vector<bool>& touched) {
  const auto image = find(step);
  if (image == images_.end())
    return Status::Failed("there is no image of step " + std::to_string(step));
  std::vector<std::string> kept_keys, keys;
  std::vector<size_t> kept_places, places;
  touched.assign(of.rows.size(), false);
  for (size_t i = 0; i < of.rows.size(); ++i) {
    const int64_t row = of.rows[i];
    if (const Image* keeper = keeper_of(image, of.table, row)) {
      kept_keys.push_back(kept_key(keeper->step, of.table, row));
      kept_places.push_back(i);
    } else if (there_.test(of.table, row)) {
      keys.push_back(row_key(of.table, row));
      places.push_back(i);
    }
  }
  RECMILL_RETURN_IF_ERROR(
      get(Space::kept, of.table, of.rows, kept_keys, kept_places, of.records, touched));
  return get(Space::rows, of.table, of.rows, keys, places, of.records, touched);
}

Status DiskVersions::put(std::span<const PutRows> rows, int64_t step) {
  const auto behind =
      std::ranges::find_if(images_, [&](const Image& image) { return image.step >= step; });
  Image* const image = behind == images_.begin() ? nullptr : &*std::prev(behind);
  Moved replaced(image == nullptr ? 0 : image->step);
  std::vector<Change> changes, puts;
  for (const PutRows& of : rows) {
    const auto bytes = static_cast<size_t>(record_bytes(of.table));
    for (size_t i = 0; i < of.rows.size(); ++i) {
      const int64_t row = of.rows[i];
      std::string key = row_key(of.table, row);
      const bool is_new = there_.set(of.table, row);
      touched_ += is_new ? 1 : 0;
      if (image != nullptr && image->kept.set(of.table, row)) {
        if (is_new)
          replaced.add(of.table, row);
        else
          replaced.add(of.table, row, key);
      }
      puts.push_back({Space::rows, std::move(key), text_of(of.records.subspan(i * bytes, bytes))});
    }
  }
  RECMILL_RETURN_IF_ERROR(replaced.append_changes(*database_, Space::rows, changes));
  std::ranges::move(puts, std::back_inserter(changes));
  return changes.empty() ? Status() : database_->write(changes, /*syncs=*/false);
}

Status DiskVersions::cut(int64_t step) {
  const Change note{Space::notes, kImageNote + step_key(step)};
  RECMILL_RETURN_IF_ERROR(database_->write({&note, 1}, /*syncs=*/false));
  images_.push_back({step, RowBits(tables_)});
  return {};
}

// A row that no image from that one on keeps was not put later than any of them. One that an image
// keeps was not put between.
Status DiskVersions::change(int64_t step, std::span<const PutRows> rows) {
  const auto found = find(step);
  if (found == images_.end())
    return Status::Failed("there is no image of step " + std::to_string(step));
  Image* const before = found == images_.begin()
                            ? nullptr
                            : &images_[static_cast<size_t>(found - images_.begin()) - 1];
  Moved of_rows(before == nullptr ? 0 : before->step),
      of_kept(before == nullptr ? 0 : before->step);
  std::vector<Change> changes, puts;
  for (const PutRows& of : rows) {
    const auto bytes = static_cast<size_t>(record_bytes(of.table));
    for (size_t i = 0; i < of.rows.size(); ++i) {
      const int64_t row = of.rows[i];
      const Image* const keeper = keeper_of(found, of.table, row);
      std::string key =
          keeper == nullptr ? row_key(of.table, row) : kept_key(keeper->step, of.table, row);
      const bool is_new = keeper == nullptr && there_.set(of.table, row);
      touched_ += is_new ? 1 : 0;
      if (before != nullptr && before->kept.set(of.table, row)) {
        if (is_new)
          of_rows.add(of.table, row);
        else
          (keeper == nullptr ? of_rows : of_kept).add(of.table, row, key);
      }
      puts.push_back({keeper == nullptr ? Space::rows : Space::kept, std::move(key),
                      text_of(of.records.subspan(i * bytes, bytes))});
    }
  }
  RECMILL_RETURN_IF_ERROR(of_rows.append_changes(*database_, Space::rows, changes));
  RECMILL_RETURN_IF_ERROR(of_kept.append_changes(*database_, Space::kept, changes));
  std::ranges::move(puts, std::back_inserter(changes));
  return changes.empty() ? Status() : database_->write(changes, /*syncs=*/false);
}

// The image before takes what it does not keep itself, some at a time: until the last one has gone
// both keep the same.
Status DiskVersions::drop(int64_t step) {
  const auto found = find(step);
  if (found == images_.end())
    return Status::Failed("there is no image of step " + std::to_string(step));
  const auto number = static_cast<size_t>(found - images_.begin());
  for (int t = 0; number > 0 && t < std::ssize(tables_); ++t) {
    Image& before = images_[number - 1];
    for (int64_t row = found->kept.next(t, 0); row >= 0;) {
      Moved some(before.step);
      for (int64_t i = 0; i < kAtOnce && row >= 0; ++i, row = found->kept.next(t, row + 1))
        if (before.kept.set(t, row)) some.add(t, row, kept_key(step, t, row));
      std::vector<Change> changes;
      RECMILL_RETURN_IF_ERROR(some.append_changes(*database_, Space::kept, changes));
      if (!changes.empty()) RECMILL_RETURN_IF_ERROR(database_->write(changes, /*syncs=*/false));
    }
  }
  images_.erase(found);
  return remove_kept(step, /*whole=*/true);
}

/// `whole`: the image, too; else it is one of which nothing has changed.
Status DiskVersions::remove_kept(int64_t step, bool whole) {
  const std::string first = step_key(step), end = step_key(step + 1);
  while (true) {
    std::vector<Change> changes;
    RECMILL_ASSIGN_OR_RETURN(const auto some, database_->scan(Space::kept, first, end, kAtOnce));
    for (const auto& [key, value] : some) changes.push_back({Space::kept, key, {}, true});
    if (some.empty() && whole) changes.push_back({Space::notes, kImageNote + first, {}, true});
    if (!changes.empty()) RECMILL_RETURN_IF_ERROR(database_->write(changes, /*syncs=*/false));
    if (some.empty()) return {};
  }
}

Result<std::vector<int64_t>> DiskVersions::images_left() const {
  std::vector<int64_t> steps;
  const std::string first = kImageNote;
  RECMILL_ASSIGN_OR_RETURN(const auto notes,
                           database_->scan(Space::notes, first, "image0", 1 << 20));
  for (const auto& [key, value] : notes) steps.push_back(number_at(key, first.size(), 8) - 1);
  return steps;
}

// From the newest on, so that of a row the oldest image from `step` on has the last word; and so
// are they removed, so that what is done again after a kill comes to the same.
Status DiskVersions::go_back(int64_t step) {
  RECMILL_ASSIGN_OR_RETURN(auto steps, images_left());
  if (std::ranges::find(steps, step) == steps.end())
    return Status::Failed("there is no image of step " + std::to_string(step));
  std::ranges::reverse(steps);
  for (const int64_t of : steps) {
    if (of < step) continue;
    std::string first = step_key(of);
    while (true) {
      RECMILL_ASSIGN_OR_RETURN(const auto some,
                               database_->scan(Space::kept, first, step_key(of + 1), kAtOnce));
      if (some.empty()) break;
      std::vector<Change> changes;
      for (const auto& [key, value] : some) {
        changes.push_back({Space::rows, key.substr(8), value, value.empty()});
        const auto table = static_cast<int>(number_at(key, 8, 4));
        const int64_t row = number_at(key, 12, 8);
        if (value.empty() && there_.test(table, row)) {
          there_.clear(table, row);
          --touched_;
        } else if (!value.empty()) {
          touched_ += there_.set(table, row) ? 1 : 0;
        }
      }
      RECMILL_RETURN_IF_ERROR(database_->write(changes, /*syncs=*/false));
      first = some.back().first + '\0';
    }
  }
  for (const int64_t of : steps) RECMILL_RETURN_IF_ERROR(remove_kept(of, /*whole=*/of != step));
  images_.clear();
  images_.push_back({step, RowBits(tables_)});
  return {};
}

Result<table::ServedRows::ImageRows> DiskVersions::read_image(int64_t step, int table,
                                                              int64_t first, size_t bytes) {
  const auto record_bytes_of_row = static_cast<size_t>(record_bytes(table));
  const auto most = static_cast<int64_t>(bytes / record_bytes_of_row + 1);
  std::vector<int64_t> rows;
  const int64_t end = tables_[static_cast<size_t>(table)].rows;
  int64_t row = there_.next(table, first);
  for (; row >= 0 && row < end && std::ssize(rows) < most; row = there_.next(table, row + 1))
    rows.push_back(row);
  ImageRows image{{}, {}, row < end ? row : -1};
  std::vector<std::byte> records(rows.size() * record_bytes_of_row);
  std::vector<bool> touched;
  RECMILL_RETURN_IF_ERROR(read_at(step, {table, rows, records}, touched));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!touched[i]) continue;
    image.rows.push_back(rows[i]);
    const auto record = records.begin() + static_cast<std::ptrdiff_t>(i * record_bytes_of_row);
    image.records.insert(image.records.end(), record,
                         record + static_cast<std::ptrdiff_t>(record_bytes_of_row));
  }
  return image;
}

table::ServedRows::Sizes DiskVersions::sizes() const {
  return {touched_, there_.bytes(), there_.bytes() * std::ssize(images_)};
}

Status DiskVersions::clear() {
  RECMILL_RETURN_IF_ERROR(database_->clear());
  there_ = RowBits(tables_);
  touched_ = 0;
  images_.clear();
  return {};
}

}  // namespace recmill::disk
