// SPDX-License-Identifier: Apache-2.0
#include "remote/remote_image.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "remote/row_lists.h"
#include "table/initial_rows.h"
#include "table/row_record.h"
#include "table/row_share.h"

namespace recmill::remote {

using table::RowBlock;

/// What one server has touched, in order.
class TouchedRows {
 public:
  TouchedRows(int server, int64_t step, std::span<const TableShape> shapes, ImageAccess& access)
      : server_(server), step_(step), shapes_(shapes), access_(access) {}

  /// The record of a row, which is asked for once and after those before it; null: untouched.
  Result<const std::byte*> take(int table, int64_t row) {
    while (true) {
      for (; list_ < tables_.size(); ++list_, at_ = 0) {
        const TableRows& of = tables_[list_];
        if (at_ == of.rows.size()) continue;
        if (of.table != table || of.rows[at_] != row) return nullptr;
        const auto bytes = static_cast<size_t>(shapes_[table].record_bytes);
        return of.records.data() + at_++ * bytes;
      }
      if (cursor_ < 0) return nullptr;
      RECMILL_RETURN_IF_ERROR(next());
    }
  }

 private:
  Status next() {
    RECMILL_ASSIGN_OR_RETURN(message_, access_.read(server_, step_, cursor_));
    RECMILL_ASSIGN_OR_RETURN(tables_,
                             read_row_lists(message_.body.view(), /*has_records=*/true, shapes_));
    if (message_.detail >= 0 && message_.detail <= cursor_)
      return Status::Failed("a cursor that does not ascend");
    cursor_ = message_.detail;
    list_ = at_ = 0;
    return {};
  }

  const int server_;
  const int64_t step_;
  const std::span<const TableShape> shapes_;
  ImageAccess& access_;
  int64_t cursor_ = 0;  // of what comes next; negative: nothing
  Message message_;
  std::vector<TableRows> tables_;
  size_t list_ = 0, at_ = 0;  // the next row
};

Status RemoteImage::read(const std::function<Status(const RowBlock&)>& sink) {
  const auto shapes = shapes_of(greeting_.tables);
  std::vector<TouchedRows> servers;
  for (int s = 0; s < greeting_.servers; ++s) servers.emplace_back(s, step_, shapes, *access_);
  for (int table = 0; table < std::ssize(greeting_.tables); ++table)
    RECMILL_RETURN_IF_ERROR(read_table(table, servers, sink));
  return {};
}

namespace {

/// Rows in float32, on their way to a sink.
class Block {
 public:
  Block(const TableSpec& spec, int table) : spec_(spec), table_(table), record_(spec) {
    for (const table::StateColumn& column : table::row_state(spec))
      columns_.push_back({column.width, {}});
  }

  int64_t rows() const { return std::ssize(rows_); }
  void add(int64_t row, const std::byte* record) {
    rows_.push_back(row);
    const size_t dim = static_cast<size_t>(spec_.dim), first = weights_.size();
    weights_.resize(first + dim);
    std::vector<std::span<float>> state;
    for (Column& column : columns_) {
      column.values.resize(column.values.size() + static_cast<size_t>(column.width));
      state.push_back(std::span(column.values).last(static_cast<size_t>(column.width)));
    }
    record_.read(record, std::span(weights_).last(dim), state);
  }
  Status hand_out(const std::function<Status(const RowBlock&)>& sink) {
    if (rows_.empty()) return {};
    std::vector<std::span<const float>> state;
    for (const Column& column : columns_) state.emplace_back(column.values);
    RowBlock block{table_, rows_.front(), rows(), weights_, state};
    if (rows_.back() - rows_.front() + 1 != rows()) block.listed = rows_;
    RECMILL_RETURN_IF_ERROR(sink(block));
    rows_.clear();
    weights_.clear();
    for (Column& column : columns_) column.values.clear();
    return {};
  }

 private:
  struct Column {
    int64_t width = 0;
    std::vector<float> values;
  };
  const TableSpec& spec_;
  const int table_;
  const table::RowRecord record_;
  std::vector<int64_t> rows_;
  std::vector<float> weights_;
  std::vector<Column> columns_;
};

}  // namespace

Status RemoteImage::read_table(int table, std::vector<TouchedRows>& servers,
                               const std::function<Status(const RowBlock&)>& sink) const {
  constexpr int64_t kBlockRows = 4096;
  const TableSpec& spec = greeting_.tables[static_cast<size_t>(table)];
  const table::InitialRows initial(spec, greeting_.seed);
  const table::RowShare share(spec.rows, 0, greeting_.servers);
  std::vector<std::byte> record(static_cast<size_t>(table::RowRecord(spec).bytes()));
  Block block(spec, table);
  for (int64_t row = 0; row < spec.rows; ++row) {
    const int server = share.owner(row);
    if (server % shares_ != share_) continue;
    RECMILL_ASSIGN_OR_RETURN(const std::byte* touched,
                             servers[static_cast<size_t>(server)].take(table, row));
    if (touched != nullptr)
      std::memcpy(record.data(), touched, record.size());
    else
      initial.make(row, record.data());
    block.add(row, record.data());
    if (block.rows() == kBlockRows) RECMILL_RETURN_IF_ERROR(block.hand_out(sink));
  }
  return block.hand_out(sink);
}

}  // namespace recmill::remote
