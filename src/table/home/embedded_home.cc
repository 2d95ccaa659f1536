// SPDX-License-Identifier: Apache-2.0
#include "table/home/embedded_home.h"

#include <limits>
#include <string>
#include <utility>

#include "base/status.h"

namespace recmill::table {

EmbeddedRows::EmbeddedRows(std::vector<EmbeddingTable>& tables, ThreadPool& pool)
    : tables_(tables), pool_(pool), snapshots_(tables) {
  for (const EmbeddingTable& table : tables)
    records_.emplace_back(table.spec(), table.columns().count);
}

Status EmbeddedRows::check(int number, std::span<const int64_t> rows, size_t record_bytes) const {
  if (number < 0 || number >= std::ssize(tables_))
    return Status::Failed("there is no table " + std::to_string(number));
  const EmbeddingTable& table = tables_[number];
  RECMILL_CHECK(static_cast<int64_t>(record_bytes) == std::ssize(rows) * records_[number].bytes(),
                table.spec().name);
  return check_rows(table.spec().name, table.share(), rows);
}

Status EmbeddedRows::read(std::span<const FetchedRows> rows) {
  for (const FetchedRows& of_table : rows) {
    const EmbeddingTable& table = tables_[of_table.table];
    const RowRecord& record = records_[of_table.table];
    std::byte* to = of_table.records.data();
    for (const int64_t row : of_table.rows) {
      record.pack(table.rows(), table.share().slot(row), to);
      to += record.bytes();
    }
  }
  return {};
}

Status EmbeddedRows::replace(std::span<const PutRows> rows, int64_t step) {
  for (const PutRows& of_table : rows) {
    TableSnapshots::Change change;
    if (snapshots_.wanted()) {
      std::vector<std::span<const int64_t>> changed(tables_.size());
      changed[of_table.table] = of_table.rows;
      change = snapshots_.before(changed, pool_, step);
    }
    const EmbeddingTable& table = tables_[of_table.table];
    const RowRecord& record = records_[of_table.table];
    const std::byte* from = of_table.records.data();
    for (const int64_t row : of_table.rows) {
      record.unpack(from, table.rows(), table.share().slot(row));
      from += record.bytes();
    }
  }
  return {};
}

Result<std::shared_ptr<RowSnapshot>> EmbeddedRows::image(int64_t step) {
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  return std::shared_ptr<RowSnapshot>(snapshots_.take(kNoLimit, step));
}

std::shared_ptr<RowHome> make_embedded_home(std::vector<EmbeddingTable> tables, ThreadPool& pool) {
  struct Owner {
    Owner(std::vector<EmbeddingTable> rows, ThreadPool& threads)
        : tables(std::move(rows)), home(tables, 1, threads) {}
    std::vector<EmbeddingTable> tables;
    EmbeddedHome home;
  };
  auto owner = std::make_shared<Owner>(std::move(tables), pool);
  return {owner, &owner->home.writer(0)};
}

}  // namespace recmill::table
