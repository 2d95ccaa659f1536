// SPDX-License-Identifier: Apache-2.0
#include "disk/disk_rows.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "table/home/block_of_records.h"

namespace recmill::disk {
namespace {

constexpr int64_t kAtOnce = 4096;  // rows of a batch or of a block
constexpr const char* kImageNote = "image/";

/// Ascends with the number, which is not negative.
std::string big_endian(uint64_t number, int bytes) {
  std::string text(static_cast<size_t>(bytes), '\0');
  for (int i = bytes - 1; i >= 0; --i, number >>= 8)
    text[static_cast<size_t>(i)] = static_cast<char>(number & 0xff);
  return text;
}

/// Steps begin at -1.
std::string step_key(int64_t step) {
  return big_endian(static_cast<uint64_t>(step + 1), 8);
}
int64_t step_of(std::string_view key) {
  uint64_t number = 0;
  for (const char c : key.substr(0, 8)) number = number << 8 | static_cast<unsigned char>(c);
  return static_cast<int64_t>(number) - 1;
}

}  // namespace

/// Reads rows as they were; lets them go when it does.
class DiskRows::Image final : public table::RowSnapshot {
 public:
  Image(std::shared_ptr<DiskRows> of, const Kept* kept)
      : of_(std::move(of)), step_(kept->step), kept_(kept) {}
  ~Image() override { of_->release(step_, kept_); }

  Status read(const std::function<Status(const table::RowBlock&)>& sink) override {
    return read_tables(sink, /*all=*/true);
  }
  bool knows_touched() const override { return true; }
  Status read_touched(const std::function<Status(const table::RowBlock&)>& sink) override {
    return read_tables(sink, /*all=*/false);
  }

 private:
  Status read_tables(const std::function<Status(const table::RowBlock&)>& sink, bool all) const {
    for (int t = 0; t < std::ssize(of_->tables_); ++t) {
      const TableSpec& spec = of_->tables_[static_cast<size_t>(t)];
      const table::RowShare& share = of_->shares_[static_cast<size_t>(t)];
      const auto bytes = static_cast<size_t>(of_->records_[static_cast<size_t>(t)].bytes());
      table::BlockOfRecords block(spec, t);
      std::vector<int64_t> rows;
      std::vector<std::byte> records;
      std::vector<bool> touched;
      const auto hand_out = [&]() -> Status {
        records.resize(rows.size() * bytes);
        RECMILL_RETURN_IF_ERROR(of_->read_block(*kept_, t, rows, records, touched));
        for (size_t i = 0; i < rows.size(); ++i)
          if (all || touched[i]) block.add(rows[i], records.data() + i * bytes);
        rows.clear();
        return block.hand_out(sink);
      };
      for (int64_t row = 0; row < spec.rows; ++row) {
        if (share.ranks() > 1 && !share.owns(row)) continue;
        rows.push_back(row);
        if (std::ssize(rows) == kAtOnce) RECMILL_RETURN_IF_ERROR(hand_out());
      }
      RECMILL_RETURN_IF_ERROR(hand_out());
    }
    return {};
  }

  const std::shared_ptr<DiskRows> of_;
  const int64_t step_;
  const Kept* const kept_;
};

DiskRows::DiskRows(std::unique_ptr<RowDatabase> database, std::vector<TableSpec> tables,
                   uint64_t seed, std::vector<table::RowShare> shares)
    : database_(std::move(database)), tables_(std::move(tables)), shares_(std::move(shares)) {
  for (const TableSpec& table : tables_) {
    records_.emplace_back(table);
    initial_.emplace_back(table, seed);
  }
}

std::string DiskRows::key_of(int table, int64_t row) const {
  return big_endian(static_cast<uint64_t>(table), 4) + big_endian(static_cast<uint64_t>(row), 8);
}

Status DiskRows::check(int table, std::span<const int64_t> rows, size_t record_bytes) const {
  if (table < 0 || table >= std::ssize(tables_))
    return Status::Failed("there is no table " + std::to_string(table));
  RECMILL_CHECK(static_cast<int64_t>(record_bytes) ==
                    std::ssize(rows) * records_[static_cast<size_t>(table)].bytes(),
                tables_[static_cast<size_t>(table)].name);
  return table::check_rows(tables_[static_cast<size_t>(table)].name,
                           shares_[static_cast<size_t>(table)], rows);
}

Status DiskRows::read(std::span<const table::FetchedRows> rows) {
  std::vector<bool> is_there;
  for (const table::FetchedRows& of : rows) RECMILL_RETURN_IF_ERROR(read_table(of, is_there));
  return {};
}

/// `is_there` [rows]: somebody has put it.
Status DiskRows::read_table(const table::FetchedRows& of, std::vector<bool>& is_there) {
  const auto bytes = static_cast<size_t>(records_[static_cast<size_t>(of.table)].bytes());
  std::vector<std::string> keys;
  for (const int64_t row : of.rows) keys.push_back(key_of(of.table, row));
  is_there.assign(keys.size(), false);
  Status wrong;
  RECMILL_RETURN_IF_ERROR(database_->get(Space::rows, keys, [&](size_t i, std::string_view value) {
    is_there[i] = true;
    if (value.size() == bytes)
      std::memcpy(of.records.data() + i * bytes, value.data(), bytes);
    else
      wrong = Status::Failed("table '" + tables_[static_cast<size_t>(of.table)].name + "': row " +
                             std::to_string(of.rows[i]) + " has another length in the database");
  }));
  RECMILL_RETURN_IF_ERROR(wrong);
  std::vector<float> aligned(bytes / sizeof(float) + 1);
  auto* const made = reinterpret_cast<std::byte*>(aligned.data());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (is_there[i]) continue;
    initial_[static_cast<size_t>(of.table)].make(of.rows[i], made);
    std::memcpy(of.records.data() + i * bytes, made, bytes);
  }
  return {};
}

Status DiskRows::replace(std::span<const table::PutRows> rows, int64_t step) {
  std::lock_guard lock(mutex_);
  RECMILL_RETURN_IF_ERROR(broken_);
  const auto behind =
      std::ranges::find_if(images_, [&](const auto& image) { return image->step >= step; });
  Kept* const image = behind == images_.begin() ? nullptr : std::prev(behind)->get();
  std::vector<Change> changes;
  std::vector<std::string> replaced;  // that no image keeps yet
  for (const table::PutRows& of : rows) {
    const auto bytes = static_cast<size_t>(records_[static_cast<size_t>(of.table)].bytes());
    for (size_t i = 0; i < of.rows.size(); ++i) {
      std::string key = key_of(of.table, of.rows[i]);
      if (image != nullptr && image->rows.insert(key).second) replaced.push_back(key);
      const auto* const record = reinterpret_cast<const char*>(of.records.data() + i * bytes);
      changes.push_back({Space::rows, std::move(key), {record, bytes}});
    }
  }
  if (!replaced.empty()) {
    std::vector<Change> kept;
    for (const std::string& key : replaced)
      kept.push_back({Space::kept, step_key(image->step) + key});
    RECMILL_RETURN_IF_ERROR(database_->get(
        Space::rows, replaced, [&](size_t i, std::string_view value) { kept[i].value = value; }));
    changes.insert(changes.begin(), std::make_move_iterator(kept.begin()),
                   std::make_move_iterator(kept.end()));
  }
  return changes.empty() ? Status() : database_->write(changes, /*syncs=*/false);
}

Result<std::shared_ptr<table::RowSnapshot>> DiskRows::image(int64_t step) {
  std::lock_guard lock(mutex_);
  RECMILL_RETURN_IF_ERROR(broken_);
  // One of the same step reads through the other, which changes nothing in it.
  const Change note{Space::notes, kImageNote + step_key(step)};
  RECMILL_RETURN_IF_ERROR(database_->write({&note, 1}, /*syncs=*/false));
  images_.push_back(std::make_unique<Kept>(Kept{step, {}}));
  return std::shared_ptr<table::RowSnapshot>(
      std::make_shared<Image>(shared_from_this(), images_.back().get()));
}

Status DiskRows::read_block(const Kept& image, int table, std::span<const int64_t> rows,
                            std::span<std::byte> records, std::vector<bool>& touched) {
  std::lock_guard lock(mutex_);
  RECMILL_RETURN_IF_ERROR(broken_);
  RECMILL_RETURN_IF_ERROR(read_table({table, rows, records}, touched));
  const auto bytes = static_cast<size_t>(records_[static_cast<size_t>(table)].bytes());
  // What the oldest image from this one on keeps.
  const auto first =
      std::ranges::find_if(images_, [&](const auto& one) { return one.get() == &image; });
  std::vector<std::string> keys;
  std::vector<size_t> places;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string key = key_of(table, rows[i]);
    for (auto at = first; at != images_.end(); ++at) {
      if (!(*at)->rows.contains(key)) continue;
      keys.push_back(step_key((*at)->step) + key);
      places.push_back(i);
      break;
    }
  }
  std::vector<float> aligned(bytes / sizeof(float) + 1);
  auto* const made = reinterpret_cast<std::byte*>(aligned.data());
  return database_->get(Space::kept, keys, [&](size_t i, std::string_view value) {
    std::byte* const record = records.data() + places[i] * bytes;
    touched[places[i]] = value.size() == bytes;
    if (value.size() == bytes) {
      std::memcpy(record, value.data(), bytes);
    } else {
      initial_[static_cast<size_t>(table)].make(rows[places[i]], made);
      std::memcpy(record, made, bytes);
    }
  });
}

/// The image before takes what it does not keep itself.
void DiskRows::release(int64_t step, const Kept* image) {
  std::lock_guard lock(mutex_);
  if (has_ended_) return;
  const auto found =
      std::ranges::find_if(images_, [&](const auto& one) { return one.get() == image; });
  if (found == images_.end()) return;
  Kept* const before = found == images_.begin() ? nullptr : std::prev(found)->get();
  const bool is_last_of_step =
      (before == nullptr || before->step != step) &&
      (std::next(found) == images_.end() || (*std::next(found))->step != step);
  std::vector<Change> changes;
  if (before != nullptr && before->step != step) {
    std::vector<std::string> keys, rows;
    for (const std::string& key : (*found)->rows) {
      if (!before->rows.insert(key).second) continue;
      keys.push_back(step_key(step) + key);
      rows.push_back(key);
    }
    const Status status = database_->get(Space::kept, keys, [&](size_t i, std::string_view value) {
      changes.push_back({Space::kept, step_key(before->step) + rows[i], std::string(value)});
    });
    if (!status.ok()) broken_ = status;
  } else if (before != nullptr) {
    before->rows.insert((*found)->rows.begin(), (*found)->rows.end());
  }
  images_.erase(found);
  const Status removed =
      is_last_of_step ? remove_kept(step, std::move(changes), /*whole=*/true) : Status();
  if (!removed.ok()) broken_ = removed;
}

/// `whole`: the image, too; else it is one of which nothing has changed.
Status DiskRows::remove_kept(int64_t step, std::vector<Change> with, bool whole) {
  const std::string first = step_key(step), end = step_key(step + 1);
  while (true) {
    RECMILL_ASSIGN_OR_RETURN(const auto some, database_->scan(Space::kept, first, end, kAtOnce));
    for (const auto& [key, value] : some) with.push_back({Space::kept, key, {}, true});
    if (some.empty() && whole) with.push_back({Space::notes, kImageNote + first, {}, true});
    RECMILL_RETURN_IF_ERROR(database_->write(with, /*syncs=*/false));
    with.clear();
    if (some.empty()) return {};
  }
}

Result<std::vector<int64_t>> DiskRows::images_left() const {
  std::vector<int64_t> steps;
  const std::string first = kImageNote;
  RECMILL_ASSIGN_OR_RETURN(const auto notes,
                           database_->scan(Space::notes, first, "image0", 1 << 20));
  for (const auto& [key, value] : notes)
    steps.push_back(step_of(std::string_view(key).substr(first.size())));
  return steps;
}

// From the newest on, so that of a row the oldest image from `step` on has the last word; and so
// are they removed, so that what is done again after a kill comes to the same.
Result<std::shared_ptr<table::RowSnapshot>> DiskRows::go_back(int64_t step) {
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
      for (const auto& [key, value] : some)
        changes.push_back({Space::rows, key.substr(8), value, value.empty()});
      RECMILL_RETURN_IF_ERROR(database_->write(changes, /*syncs=*/false));
      first = some.back().first + '\0';
    }
  }
  for (const int64_t of : steps) RECMILL_RETURN_IF_ERROR(remove_kept(of, {}, of != step));
  return image(step);
}

void DiskRows::end_releases() {
  std::lock_guard lock(mutex_);
  has_ended_ = true;
}

Status DiskRows::clear() {
  return database_->clear();
}

}  // namespace recmill::disk
