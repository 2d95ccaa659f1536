// SPDX-License-Identifier: Apache-2.0
#include "store/cached/ranks/rows_at_homes.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace recmill::store {

/// To each rank, and from each [ranks].
Result<std::vector<std::vector<int64_t>>> RowsAtHomes::exchange_rows(
    std::span<const std::vector<int64_t>> rows) {
  std::vector<std::span<const std::byte>> pieces;
  for (const auto& of_rank : rows) pieces.push_back(std::as_bytes(std::span(of_rank)));
  RECMILL_ASSIGN_OR_RETURN(const Received received, rounds_.communicator().all_to_all(pieces));
  std::vector<std::vector<int64_t>> named;
  for (size_t rank = 0; rank < rows.size(); ++rank) {
    const auto bytes = received.from(static_cast<int>(rank));
    auto& of_rank = named.emplace_back(bytes.size() / sizeof(int64_t));
    if (!of_rank.empty())
      std::memcpy(of_rank.data(), bytes.data(), of_rank.size() * sizeof(int64_t));
  }
  return named;
}

Result<Received> RowsAtHomes::exchange(const Messages& messages) {
  std::vector<std::span<const std::byte>> pieces(messages.begin(), messages.end());
  return rounds_.communicator().all_to_all(pieces);
}

Status RowsAtHomes::put(std::span<const RowInSlot> rows, const Slots& slots) {
  if (is_shared_) {
    RowRecords records(homes_.tables(), records_, rows);
    for (size_t i = 0; i < rows.size(); ++i) slots.copy_out(rows[i], records.record(i));
    return rounds_.home().put(records);
  }
  std::vector<std::vector<int64_t>> of_homes(static_cast<size_t>(homes_.ranks()));
  Messages out(of_homes.size());
  for (const RowInSlot& row : rows) {
    const int32_t home = homes_.of(row.row);
    of_homes[home].push_back(row.row);
    const size_t at = out[home].size();
    out[home].resize(at + bytes_of(row.row));
    slots.copy_out(row, out[home].data() + at);
  }
  RECMILL_ASSIGN_OR_RETURN(const auto named, exchange_rows(of_homes));
  RECMILL_ASSIGN_OR_RETURN(const Received received, exchange(out));
  std::vector<std::pair<RowInSlot, const std::byte*>> came;
  for (size_t rank = 0; rank < named.size(); ++rank) {
    const std::byte* record = received.from(static_cast<int>(rank)).data();
    for (const int64_t row : named[rank]) {
      came.emplace_back(RowInSlot{row}, record);
      record += bytes_of(row);
    }
  }
  std::ranges::sort(came);
  std::vector<RowInSlot> at_home;
  for (const auto& [row, record] : came) at_home.push_back(row);
  RowRecords records(homes_.tables(), records_, at_home);
  for (size_t i = 0; i < came.size(); ++i)
    std::memcpy(records.record(i), came[i].second, bytes_of(at_home[i].row));
  return rounds_.home().put(records);
}

Status RowsAtHomes::fetch(std::span<const RowInSlot> rows, RowRecords& records) {
  if (is_shared_) {
    RECMILL_RETURN_IF_ERROR(rounds_.communicator().barrier());  // all have put theirs
    return rounds_.home().fetch(records);
  }
  std::vector<std::vector<int64_t>> of_homes(static_cast<size_t>(homes_.ranks()));
  std::vector<std::vector<size_t>> places(of_homes.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const int32_t home = homes_.of(rows[i].row);
    of_homes[home].push_back(rows[i].row);
    places[home].push_back(i);
  }
  RECMILL_ASSIGN_OR_RETURN(const auto asked, exchange_rows(of_homes));
  Messages replies(of_homes.size());
  for (size_t rank = 0; rank < asked.size(); ++rank) {
    std::vector<RowInSlot> wanted;
    for (const int64_t row : asked[rank]) wanted.push_back({row});
    RowRecords found(homes_.tables(), records_, wanted);
    RECMILL_RETURN_IF_ERROR(rounds_.home().fetch(found));
    for (size_t i = 0; i < wanted.size(); ++i)
      replies[rank].insert(replies[rank].end(), found.record(i),
                           found.record(i) + bytes_of(wanted[i].row));
  }
  RECMILL_ASSIGN_OR_RETURN(const Received received, exchange(replies));
  for (size_t rank = 0; rank < of_homes.size(); ++rank) {
    const std::byte* record = received.from(static_cast<int>(rank)).data();
    for (size_t i = 0; i < of_homes[rank].size(); ++i) {
      const size_t bytes = bytes_of(of_homes[rank][i]);
      std::memcpy(records.record(places[rank][i]), record, bytes);
      record += bytes;
    }
  }
  return {};
}

}  // namespace recmill::store
