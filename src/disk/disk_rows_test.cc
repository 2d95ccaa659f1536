// SPDX-License-Identifier: Apache-2.0
#include "disk/disk_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>

#include "base/temporary_folder.h"
#include "disk/rocksdb/rocksdb_library.h"
#include "disk/testing/memory_database.h"
#include "table/home/row_home_contract.h"

namespace recmill::disk {
namespace {

using testing::MemoryDatabase;
using testing::MemoryDisk;

std::vector<table::RowShare> whole(const std::vector<TableSpec>& tables) {
  std::vector<table::RowShare> shares;
  for (const TableSpec& spec : tables) shares.emplace_back(spec.rows, 0, 1);
  return shares;
}

std::vector<TableSpec> specs_of(const std::vector<table::EmbeddingTable>& tables) {
  std::vector<TableSpec> specs;
  for (const table::EmbeddingTable& table : tables) specs.push_back(table.spec());
  return specs;
}

/// Fixtures of row_home_contract.h, whose tables are those of `seed`.
struct MemoryFixture {
  static constexpr bool kManyThreads = true;
  MemoryFixture(std::vector<table::EmbeddingTable>& tables, int writers, ThreadPool&, uint64_t seed)
      : MemoryFixture(tables, writers, seed,
                      std::make_unique<MemoryDatabase>(std::make_shared<MemoryDisk>())) {}
  MemoryFixture(std::vector<table::EmbeddingTable>& tables, int writers, uint64_t seed,
                std::unique_ptr<RowDatabase> database)
      : rows(std::make_shared<DiskRows>(std::move(database), specs_of(tables), seed,
                                        whole(specs_of(tables)))),
        home(*rows, writers) {}
  table::RowHome& writer(int number) { return home.writer(number); }
  std::shared_ptr<DiskRows> rows;
  table::LocalHome home;
};

struct RocksFixture : MemoryFixture {
  RocksFixture(std::vector<table::EmbeddingTable>& tables, int writers, ThreadPool& pool,
               uint64_t seed)
      : RocksFixture(tables, writers, pool, seed, std::make_shared<TemporaryFolder>()) {}
  RocksFixture(std::vector<table::EmbeddingTable>& tables, int writers, ThreadPool&, uint64_t seed,
               std::shared_ptr<TemporaryFolder> at)
      : MemoryFixture(tables, writers, seed,
                      *(*rocksdb_databases())->open(at->path() + "/rows", 1 << 20, /*keeps=*/true)),
        folder(std::move(at)) {}
  std::shared_ptr<TemporaryFolder> folder;
};

/// One process after another, each killed at some write, goes back to the last step that the one
/// before had told of, and finds the rows as they were then.
class Killed {
 public:
  explicit Killed(uint64_t seed) : random_(seed), disk_(std::make_shared<MemoryDisk>()) {
    specs_.resize(2);
    specs_[0] = {.name = "a", .rows = 9, .dim = 2, .optimizer = {}};
    specs_[1] = {.name = "b", .rows = 5, .dim = 5, .optimizer = {}};
    now_ = as_made();
  }

  std::string run() {
    for (int process = 0; process < 4 && wrong_.empty(); ++process) {
      disk_->writes_left = static_cast<int64_t>(random_() % 60);
      live();
      disk_->writes_left = 0;  // what goes with a process that is killed lets nothing go
      image_.reset();
      rows_.reset();
      disk_->writes_left = 1 << 20;
    }
    begin();
    compare("at the end", *image_);
    return wrong_;
  }

 private:
  using Row = std::pair<int, int64_t>;
  using Rows = std::map<Row, std::vector<std::byte>>;

  Rows as_made() const {
    Rows rows;
    for (int t = 0; t < 2; ++t)
      for (int64_t row = 0; row < specs_[t].rows; ++row) {
        auto& record = rows[{t, row}];
        record.resize(table::RowRecord(specs_[t]).bytes());
        table::InitialRows(specs_[t], 1).make(row, record.data());
      }
    return rows;
  }

  bool begin() {
    rows_ = std::make_shared<DiskRows>(std::make_unique<MemoryDatabase>(disk_), specs_, 1,
                                       whole(specs_));
    image_.reset();
    now_ = told_rows_.empty() ? as_made() : told_rows_;
    if (told_ < 0) {
      if (!rows_->clear().ok()) return false;
      auto image = rows_->image(-1);
      if (image.ok()) image_ = *image;
    } else if (auto image = rows_->go_back(told_); image.ok()) {
      image_ = *image;
    }
    step_ = std::max<int64_t>(told_, 0);
    return image_ != nullptr;
  }

  // Until a write fails.
  void live() {
    if (!begin()) return;
    compare("at the beginning", *image_);
    std::shared_ptr<table::RowSnapshot> other;  // of a checkpoint
    for (int i = 0; i < 200 && wrong_.empty(); ++i) {
      switch (random_() % 6) {
        case 0: {  // a commit: it is told of, and then the one before is let go
          auto image = rows_->image(step_);
          if (!image.ok() || (other == nullptr && !put(step_)))
            return;  // what had changed in slots
          told_ = step_;
          told_rows_ = now_;
          image_ = *image;
          break;
        }
        case 1: {
          if (other != nullptr) {
            if (disk_->writes_left > 0) compare("an image", *other, other_rows_);
            other.reset();
            break;
          }
          auto image = rows_->image(step_);
          if (!image.ok()) return;
          other = *image;
          other_rows_ = now_;
          break;
        }
        default:
          if (!put(++step_)) return;
      }
    }
  }

  bool put(int64_t step) {
    const int t = static_cast<int>(random_() % 2);
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < specs_[t].rows; ++row)
      if (random_() % 3 == 0) rows.push_back(row);
    const auto bytes = static_cast<size_t>(table::RowRecord(specs_[t]).bytes());
    std::vector<std::byte> records(rows.size() * bytes);
    for (auto& byte : records) byte = static_cast<std::byte>(random_() % 64);
    const table::PutRows list{t, rows, records};
    if (!rows_->replace({&list, 1}, step).ok()) return false;
    for (size_t i = 0; i < rows.size(); ++i)
      now_[{t, rows[i]}].assign(records.begin() + static_cast<std::ptrdiff_t>(i * bytes),
                                records.begin() + static_cast<std::ptrdiff_t>((i + 1) * bytes));
    return true;
  }

  void compare(const std::string& what, table::RowSnapshot& image) { compare(what, image, now_); }
  void compare(const std::string& what, table::RowSnapshot& image, const Rows& expected) {
    size_t seen = 0;
    const Status status = image.read([&](const table::RowBlock& block) -> Status {
      for (int64_t i = 0; i < block.count; ++i, ++seen) {
        const TableSpec& spec = specs_[block.table];
        std::vector<float> weights(spec.dim);
        std::vector<std::vector<float>> columns;
        for (const auto& column : table::row_state(spec)) columns.emplace_back(column.width);
        const std::vector<std::span<float>> state(columns.begin(), columns.end());
        table::RowRecord(spec).read(expected.at({block.table, block.row(i)}).data(), weights,
                                    state);
        if (std::memcmp(weights.data(), block.weights.data() + i * spec.dim,
                        weights.size() * sizeof(float)) != 0)
          wrong_ = what + ": table " + std::to_string(block.table) + ", row " +
                   std::to_string(block.row(i));
      }
      return {};
    });
    if (!status.ok()) wrong_ = what + ": " + status.message();
    if (seen != expected.size()) wrong_ = what + ": " + std::to_string(seen) + " rows";
  }

  std::mt19937_64 random_;
  std::vector<TableSpec> specs_;
  std::shared_ptr<MemoryDisk> disk_;
  std::shared_ptr<DiskRows> rows_;
  std::shared_ptr<table::RowSnapshot> image_;  // of told_
  Rows now_, told_rows_, other_rows_;
  int64_t step_ = -1, told_ = -1;
  std::string wrong_;
};

TEST(DiskRows, after_a_kill_at_any_write_go_back_to_the_last_step_that_was_told_of) {
  for (uint64_t seed = 1; seed <= 3000; ++seed)
    ASSERT_EQ(Killed(seed).run(), "") << "seed " << seed;
}

}  // namespace
}  // namespace recmill::disk

namespace recmill::table {
namespace {
INSTANTIATE_TYPED_TEST_SUITE_P(Memory, RowHomeContract, disk::MemoryFixture);
INSTANTIATE_TYPED_TEST_SUITE_P(RocksDB, RowHomeContract, disk::RocksFixture);
}  // namespace
}  // namespace recmill::table
