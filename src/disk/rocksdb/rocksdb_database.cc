// SPDX-License-Identifier: Apache-2.0
// All that sees RocksDB.
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "disk/rocksdb/rocksdb_build.h"
#include "disk/rocksdb/rocksdb_library.h"

namespace recmill::disk {
namespace {

constexpr size_t kKeysAtOnce = 512;  // of one read of several
constexpr size_t kReaders = 4;       // threads that wait for the disk at the same time
constexpr std::array<const char*, 3> kNames{"default", "kept", "notes"};  // [Space]

rocksdb::ColumnFamilyOptions options_of_family(const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::BlockBasedTableOptions blocks;
  blocks.block_cache = cache;
  blocks.cache_index_and_filter_blocks = true;  // so that all is within the memory that is given
  blocks.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  rocksdb::ColumnFamilyOptions options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(blocks));
  options.compression = rocksdb::kNoCompression;  // rows are random bits, nearly
  return options;
}

/// RocksDB's file of what it does ends the process by an assertion, of 7.8, once the disk is full.
class NoLog final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

class RocksDatabase final : public RowDatabase {
 public:
  static Result<std::unique_ptr<RowDatabase>> open(const std::string& path, int64_t memory,
                                                   bool keeps) {
    std::unique_ptr<RocksDatabase> database(new RocksDatabase(path, memory, keeps));
    RECMILL_RETURN_IF_ERROR(database->open());
    return std::unique_ptr<RowDatabase>(std::move(database));
  }
  ~RocksDatabase() override {
    close();
    if (!keeps_) (void)rocksdb::DestroyDB(path_, options_).ok();
  }

  Status get(Space space, std::span<const std::string> keys,
             const std::function<void(size_t, std::string_view)>& found) override {
    std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
    std::vector<rocksdb::PinnableSlice> values(keys.size());
    std::vector<rocksdb::Status> statuses(keys.size());
    const auto read = [&](size_t begin, size_t end) {
      for (; begin < end; begin += kKeysAtOnce)
        db_->MultiGet(rocksdb::ReadOptions(), families_[static_cast<size_t>(space)],
                      std::min(kKeysAtOnce, end - begin), &slices[begin], &values[begin],
                      &statuses[begin]);
    };
    const size_t parts = std::clamp<size_t>(keys.size() / kKeysAtOnce, 1, kReaders);
    std::vector<std::thread> readers;
    for (size_t part = 1; part < parts; ++part)
      readers.emplace_back(read, keys.size() * part / parts, keys.size() * (part + 1) / parts);
    read(0, keys.size() / parts);
    for (std::thread& reader : readers) reader.join();
    for (size_t i = 0; i < keys.size(); ++i) {
      if (statuses[i].IsNotFound()) continue;
      RECMILL_RETURN_IF_ERROR(told(statuses[i]));
      found(i, {values[i].data(), values[i].size()});
    }
    return {};
  }

  Result<std::vector<std::pair<std::string, std::string>>> scan(Space space,
                                                                const std::string& first,
                                                                const std::string& end,
                                                                int64_t most) override {
    const rocksdb::Slice bound(end);
    rocksdb::ReadOptions options;
    options.iterate_upper_bound = &bound;
    std::vector<std::pair<std::string, std::string>> some;
    const std::unique_ptr<rocksdb::Iterator> at(
        db_->NewIterator(options, families_[static_cast<size_t>(space)]));
    for (at->Seek(first); at->Valid() && std::ssize(some) < most; at->Next())
      some.emplace_back(at->key().ToString(), at->value().ToString());
    RECMILL_RETURN_IF_ERROR(told(at->status()));
    return some;
  }

  Status write(std::span<const Change> changes, bool syncs) override {
    rocksdb::WriteBatch batch;
    for (const Change& change : changes) {
      auto* const family = families_[static_cast<size_t>(change.space)];
      if (change.removes)
        batch.Delete(family, change.key);
      else
        batch.Put(family, change.key, {change.value.data(), change.value.size()});
    }
    rocksdb::WriteOptions options;
    options.sync = syncs;
    return told(db_->Write(options, &batch));
  }

  Status clear() override {
    close();
    RECMILL_RETURN_IF_ERROR(told(rocksdb::DestroyDB(path_, options_)));
    return open();
  }

 private:
  RocksDatabase(std::string path, int64_t memory, bool keeps)
      : path_(std::move(path)), keeps_(keeps) {
    // A quarter for what is not written to files yet.
    cache_ = rocksdb::NewLRUCache(static_cast<size_t>(memory - memory / 4));
    options_.create_if_missing = true;
    options_.create_missing_column_families = true;
    options_.db_write_buffer_size = static_cast<size_t>(memory / 4);
    // What the operating system would keep beside is no part of the memory that is given.
    options_.use_direct_reads = true;
    options_.use_direct_io_for_flush_and_compaction = true;
    options_.max_open_files = 512;
    options_.info_log = std::make_shared<NoLog>();
  }

  Status open() {
    std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
    for (const char* name : kNames) descriptors.emplace_back(name, options_of_family(cache_));
    rocksdb::DB* opened = nullptr;
    RECMILL_RETURN_IF_ERROR(
        told(rocksdb::DB::Open(options_, path_, descriptors, &families_, &opened)));
    db_.reset(opened);
    return {};
  }
  void close() {
    if (db_ == nullptr) return;
    for (rocksdb::ColumnFamilyHandle* const family : families_)
      (void)db_->DestroyColumnFamilyHandle(family).ok();
    families_.clear();
    (void)db_->Close().ok();
    db_.reset();
  }

  Status told(const rocksdb::Status& status) const {
    if (status.ok()) return {};
    std::string why = status.ToString();
    std::ranges::replace(why, '\n', ' ');
    return Status::Failed(path_ + ": " + why);
  }

  const std::string path_;
  const bool keeps_;
  std::shared_ptr<rocksdb::Cache> cache_;
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;  // [Space]
};

class RocksDatabases final : public RowDatabases {
 public:
  Result<std::unique_ptr<RowDatabase>> open(const std::string& path, int64_t memory,
                                            bool keeps) override {
    return RocksDatabase::open(path, memory, keeps);
  }
};

}  // namespace
}  // namespace recmill::disk

extern "C" __attribute__((visibility("default"))) recmill::disk::RowDatabases*
recmill_rocksdb_library(const char* build) {
  static recmill::disk::RocksDatabases databases;
  return std::strcmp(build, recmill::disk::rocksdb_build()) == 0 ? &databases : nullptr;
}
