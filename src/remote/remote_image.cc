// SPDX-License-Identifier: Apache-2.0
#include "remote/remote_image.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <span>
#include <utility>

#include "remote/part_order.h"
#include "remote/row_lists.h"
#include "table/home/block_of_records.h"
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
    RECMILL_ASSIGN_OR_RETURN(message_,
                             access_.ask(server_, {MessageKind::read, 0, step_, cursor_}));
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

Status RemoteImage::read_tables(const std::function<Status(const RowBlock&)>& sink,
                                bool all) const {
  const auto shapes = shapes_of(greeting_.tables);
  std::vector<TouchedRows> servers;
  for (int s = 0; s < greeting_.servers; ++s) servers.emplace_back(s, step_, shapes, *access_);
  for (int table = 0; table < std::ssize(greeting_.tables); ++table)
    RECMILL_RETURN_IF_ERROR(read_table(table, servers, sink, all));
  return {};
}

Result<std::vector<std::string>> RemoteImage::write_parts(const std::string& folder, int first) {
  std::vector<std::future<Result<Message>>> servers;
  for (int s = share_; s < greeting_.servers; s += shares_)
    servers.push_back(std::async(std::launch::async, [this, s, &folder, first] {
      return access_->ask(s,
                          {MessageKind::write, 0, step_, 0, write_part_order({folder, first + s})});
    }));
  std::vector<std::string> parts;
  Status status;
  for (auto& server : servers) {
    const auto answer = server.get();
    if (answer.ok())
      parts.emplace_back(answer->body.text());
    else if (status.ok())
      status = answer.status();
  }
  RECMILL_RETURN_IF_ERROR(status);
  return parts;
}

Status RemoteImage::read_table(int table, std::vector<TouchedRows>& servers,
                               const std::function<Status(const RowBlock&)>& sink, bool all) const {
  constexpr int64_t kBlockRows = 4096;
  const TableSpec& spec = greeting_.tables[static_cast<size_t>(table)];
  const table::InitialRows initial(spec, greeting_.seed);
  const table::RowShare share(spec.rows, 0, greeting_.servers);
  std::vector<std::byte> record(static_cast<size_t>(table::RowRecord(spec).bytes()));
  table::BlockOfRecords block(spec, table);
  for (int64_t row = 0; row < spec.rows; ++row) {
    const int server = share.owner(row);
    if (server % shares_ != share_) continue;
    RECMILL_ASSIGN_OR_RETURN(const std::byte* touched,
                             servers[static_cast<size_t>(server)].take(table, row));
    if (touched == nullptr && !all) continue;
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
