// SPDX-License-Identifier: Apache-2.0
#include "disk/disk_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "table/home/block_of_records.h"

namespace recmill::disk {
namespace {

constexpr int64_t kAtOnce = 4096;         // rows of a block
constexpr size_t kBytesAtOnce = 1 << 20;  // of records, of touched rows

}  // namespace

/// Reads rows as they were; lets them go when it does.
class DiskRows::Image final : public table::RowSnapshot {
 public:
  Image(std::shared_ptr<DiskRows> of, int64_t step) : of_(std::move(of)), step_(step) {}
  ~Image() override { of_->release(step_); }

  Status read(const std::function<Status(const table::RowBlock&)>& sink) override {
    for (int t = 0; t < std::ssize(of_->shares_); ++t) RECMILL_RETURN_IF_ERROR(read_table(t, sink));
    return {};
  }
  bool knows_touched() const override { return true; }
  Status read_touched(const std::function<Status(const table::RowBlock&)>& sink) override {
    for (int t = 0; t < std::ssize(of_->shares_); ++t)
      RECMILL_RETURN_IF_ERROR(read_touched_of(t, sink));
    return {};
  }

 private:
  Status read_table(int t, const std::function<Status(const table::RowBlock&)>& sink) const {
    const TableSpec& spec = of_->versions_.tables()[static_cast<size_t>(t)];
    const table::RowShare& share = of_->shares_[static_cast<size_t>(t)];
    const auto bytes = static_cast<size_t>(of_->versions_.record_bytes(t));
    table::BlockOfRecords block(spec, t);
    std::vector<int64_t> rows;
    std::vector<std::byte> records;
    std::vector<bool> touched;
    const auto hand_out = [&]() -> Status {
      records.resize(rows.size() * bytes);
      const table::FetchedRows of{t, rows, records};
      {
        std::lock_guard lock(of_->mutex_);
        RECMILL_RETURN_IF_ERROR(of_->broken_);
        RECMILL_RETURN_IF_ERROR(of_->versions_.read_at(step_, of, touched));
      }
      of_->make_others(of, touched);
      for (size_t i = 0; i < rows.size(); ++i) block.add(rows[i], records.data() + i * bytes);
      rows.clear();
      return block.hand_out(sink);
    };
    for (int64_t row = 0; row < spec.rows; ++row) {
      if (share.ranks() > 1 && !share.owns(row)) continue;
      rows.push_back(row);
      if (std::ssize(rows) == kAtOnce) RECMILL_RETURN_IF_ERROR(hand_out());
    }
    return hand_out();
  }

  Status read_touched_of(int t, const std::function<Status(const table::RowBlock&)>& sink) const {
    const auto bytes = static_cast<size_t>(of_->versions_.record_bytes(t));
    table::BlockOfRecords block(of_->versions_.tables()[static_cast<size_t>(t)], t);
    for (int64_t first = 0; first >= 0;) {
      table::ServedRows::ImageRows some;
      {
        std::lock_guard lock(of_->mutex_);
        RECMILL_RETURN_IF_ERROR(of_->broken_);
        RECMILL_ASSIGN_OR_RETURN(some, of_->versions_.read_image(step_, t, first, kBytesAtOnce));
      }
      for (size_t i = 0; i < some.rows.size(); ++i)
        block.add(some.rows[i], some.records.data() + i * bytes);
      RECMILL_RETURN_IF_ERROR(block.hand_out(sink));
      first = some.next;
    }
    return {};
  }

  const std::shared_ptr<DiskRows> of_;
  const int64_t step_;
};

DiskRows::DiskRows(std::unique_ptr<RowDatabase> database, std::vector<TableSpec> tables,
                   uint64_t seed, std::vector<table::RowShare> shares)
    : versions_(std::move(database), std::move(tables)), shares_(std::move(shares)) {
  for (const TableSpec& table : versions_.tables()) initial_.emplace_back(table, seed);
}

Status DiskRows::check(int table, std::span<const int64_t> rows, size_t record_bytes) const {
  if (table < 0 || table >= std::ssize(shares_))
    return Status::Failed("there is no table " + std::to_string(table));
  const std::string& name = versions_.tables()[static_cast<size_t>(table)].name;
  RECMILL_CHECK(
      static_cast<int64_t>(record_bytes) == std::ssize(rows) * versions_.record_bytes(table), name);
  return table::check_rows(name, shares_[static_cast<size_t>(table)], rows);
}

Status DiskRows::read(std::span<const table::FetchedRows> rows) {
  std::vector<bool> touched;
  for (const table::FetchedRows& of : rows) {
    RECMILL_RETURN_IF_ERROR(versions_.read(of, touched));
    make_others(of, touched);
  }
  return {};
}

void DiskRows::make_others(const table::FetchedRows& of, const std::vector<bool>& touched) {
  const auto bytes = static_cast<size_t>(versions_.record_bytes(of.table));
  std::vector<float> aligned(bytes / sizeof(float) + 1);
  auto* const made = reinterpret_cast<std::byte*>(aligned.data());
  for (size_t i = 0; i < of.rows.size(); ++i) {
    if (touched[i]) continue;
    initial_[static_cast<size_t>(of.table)].make(of.rows[i], made);
    std::memcpy(of.records.data() + i * bytes, made, bytes);
  }
}

/// Nothing is done after an error.
Status DiskRows::told(Status status) {
  if (!status.ok()) broken_ = status;
  return status;
}

Status DiskRows::replace(std::span<const table::PutRows> rows, int64_t step) {
  std::lock_guard lock(mutex_);
  RECMILL_RETURN_IF_ERROR(broken_);
  return told(versions_.put(rows, step));
}

Result<std::shared_ptr<table::RowSnapshot>> DiskRows::image(int64_t step) {
  std::lock_guard lock(mutex_);
  RECMILL_RETURN_IF_ERROR(broken_);
  if (!shown_.contains(step)) RECMILL_RETURN_IF_ERROR(told(versions_.cut(step)));
  ++shown_[step];
  return std::shared_ptr<table::RowSnapshot>(std::make_shared<Image>(shared_from_this(), step));
}

void DiskRows::release(int64_t step) {
  std::lock_guard lock(mutex_);
  const auto image = shown_.find(step);
  if (has_ended_ || !broken_.ok() || image == shown_.end() || --image->second > 0) return;
  shown_.erase(image);
  (void)told(versions_.drop(step)).ok();
}

Result<std::shared_ptr<table::RowSnapshot>> DiskRows::go_back(int64_t step) {
  std::lock_guard lock(mutex_);
  RECMILL_RETURN_IF_ERROR(told(versions_.go_back(step)));
  shown_ = {{step, 1}};
  return std::shared_ptr<table::RowSnapshot>(std::make_shared<Image>(shared_from_this(), step));
}

void DiskRows::end_releases() {
  std::lock_guard lock(mutex_);
  has_ended_ = true;
}

}  // namespace recmill::disk
