// SPDX-License-Identifier: Apache-2.0
#include "lookahead/rank_messages.h"

#include <algorithm>

#include "base/varint.h"

namespace recmill::lookahead {
namespace {

using Message = std::vector<std::byte>;

/// Small numbers of either sign.
uint64_t zigzag(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}
int64_t unzigzag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

void append(const RowInSlot& row, int64_t& before, Message& message) {
  append_varint(message, zigzag(row.row - before));
  append_varint(message, static_cast<uint64_t>(row.slot));
  append_varint(message, static_cast<uint64_t>(row.holder + 1));  // of kEverywhere 0
  before = row.row;
}
void append(const RowLent& lent, int64_t& before, Message& message) {
  append_varint(message, static_cast<uint64_t>(lent.user));
  append(lent.row, before, message);
}
void append(const RowMove& move, int64_t& before, Message& message) {
  append_varint(message, static_cast<uint64_t>(move.peer) * 4 + static_cast<uint64_t>(move.kind));
  append(move.at, before, message);
}

void read(VarintReader& from, int64_t& before, RowInSlot& row) {
  row.row = before += unzigzag(from.next());
  row.slot = static_cast<int32_t>(from.next());
  row.holder = static_cast<int32_t>(from.next()) - 1;
}
void read(VarintReader& from, int64_t& before, RowLent& lent) {
  lent.user = static_cast<int64_t>(from.next());
  read(from, before, lent.row);
}
void read(VarintReader& from, int64_t& before, RowMove& move) {
  const uint64_t head = from.next();
  move.peer = static_cast<int32_t>(head / 4);
  move.kind = static_cast<RowMove::Kind>(head % 4);
  read(from, before, move.at);
}

template <typename Item>
void append_list(std::span<const Item> list, Message& message) {
  append_varint(message, list.size());
  int64_t before = 0;
  for (const Item& item : list) append(item, before, message);
}

/// A count that is not true ends where the bytes do.
template <typename Item>
void read_list(VarintReader& from, std::vector<Item>& list) {
  int64_t before = 0;
  for (uint64_t left = from.next(); left > 0 && from.whole(); --left)
    read(from, before, list.emplace_back());
}

/// Rows in this rank's slots that its own lookups and those of others name.
std::vector<RowInSlot> held_by_uses(const RankStep& part, int32_t rank) {
  std::vector<RowInSlot> held;
  for (const RowInSlot& row : part.uses)
    if (row.holder == rank || row.holder == kEverywhere) held.push_back(row);
  for (const RowLent& lent : part.lent) held.push_back(lent.row);
  std::ranges::sort(held);
  held.erase(std::ranges::unique(held).begin(), held.end());
  return held;
}

/// Slots that are copied out.
std::vector<RowInSlot> leave_by_moves(const RankStep& part) {
  std::vector<RowInSlot> leave;
  for (const RowMoves* moves : {&part.critical, &part.rest})
    for (const RowMove& move : moves->out)
      if (move.kind != RowMove::Kind::fetch) leave.push_back(move.at);
  std::ranges::sort(leave);
  leave.erase(std::ranges::unique(leave).begin(), leave.end());
  return leave;
}

std::vector<RowInSlot> without(std::span<const RowInSlot> rows, std::span<const RowInSlot> known) {
  std::vector<RowInSlot> rest;
  std::ranges::set_difference(rows, known, std::back_inserter(rest));
  return rest;
}
void add(std::vector<RowInSlot> known, std::vector<RowInSlot>& rows) {
  known.insert(known.end(), rows.begin(), rows.end());
  std::ranges::sort(known);
  rows = std::move(known);
}

}  // namespace

void append_rows(std::span<const int64_t> rows, Message& message) {
  append_varint(message, rows.size());
  int64_t before = 0;
  for (const int64_t row : rows) {
    append_varint(message, static_cast<uint64_t>(row - before));
    before = row;
  }
}

Result<std::vector<int64_t>> read_rows(std::span<const std::byte> message) {
  VarintReader from(message);
  std::vector<int64_t> rows;
  int64_t before = 0;
  for (uint64_t left = from.next(); left > 0 && from.whole(); --left)
    rows.push_back(before += static_cast<int64_t>(from.next()));
  if (!from.whole() || !from.at_end()) return Status::Failed("a list of rows is cut short");
  return rows;
}

void append_part(const RankStep& part, int32_t rank, Message& message) {
  append_varint(message, static_cast<uint64_t>(part.step));
  append_varint(message, (part.any_critical ? 1 : 0) + (part.begins ? 2 : 0));
  append_varint(message, static_cast<uint64_t>(part.step - part.fence));  // a fence is no later
  append_list<RowInSlot>(part.uses, message);
  append_list<RowLent>(part.lent, message);
  append_list<RowLent>(part.early_out, message);
  append_list<RowInSlot>(part.early_in, message);
  for (const RowMoves* moves : {&part.critical, &part.rest, &part.before}) {
    append_list<RowMove>(moves->out, message);
    append_list<RowMove>(moves->in, message);
  }
  append_list<RowInSlot>(without(part.held, held_by_uses(part, rank)), message);
  append_list<RowInSlot>(without(part.leave, leave_by_moves(part)), message);
}

Result<RankStep> read_part(std::span<const std::byte> message, int32_t rank) {
  VarintReader from(message);
  RankStep part;
  part.step = static_cast<int64_t>(from.next());
  const uint64_t flags = from.next();
  part.any_critical = (flags & 1) != 0;
  part.begins = (flags & 2) != 0;
  part.fence = part.step - static_cast<int64_t>(from.next());
  read_list(from, part.uses);
  read_list(from, part.lent);
  read_list(from, part.early_out);
  read_list(from, part.early_in);
  for (RowMoves* moves : {&part.critical, &part.rest, &part.before}) {
    read_list(from, moves->out);
    read_list(from, moves->in);
  }
  read_list(from, part.held);
  read_list(from, part.leave);
  if (!from.whole() || !from.at_end()) return Status::Failed("a plan of a step is cut short");
  add(held_by_uses(part, rank), part.held);
  add(leave_by_moves(part), part.leave);
  return part;
}

}  // namespace recmill::lookahead
