// SPDX-License-Identifier: Apache-2.0
#include "store/exchange/row_fetch.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "comm/begin_messages.h"

namespace recmill::store {
namespace {

/// Copies slots of a table out as float32: one flat view for embedding_pool().
class SlotCopies {
 public:
  explicit SlotCopies(size_t most) : bags_(most) { tasks_.reserve(most); }

  void add(const table::EmbeddingTable& table, std::span<const int64_t> slots, float* out,
           int64_t stride) {
    if (slots.empty()) return;
    const auto count = static_cast<int64_t>(slots.size());
    auto& bag = bags_[tasks_.size()] = {0, count};
    tasks_.push_back({{bag.data(), slots.data(), nullptr, 1, count == 1},
                      table.rows(),
                      Pooling::none,
                      out,
                      stride});
  }
  void run(ThreadPool& pool) const { kernels::embedding_pool(tasks_, pool); }

 private:
  std::vector<std::array<int64_t, 2>> bags_;
  std::vector<kernels::PoolTask> tasks_;
};

}  // namespace

RowFetch::RowFetch(Communicator& communicator, std::span<const table::EmbeddingTable> tables,
                   ThreadPool& pool, bool overlap)
    : communicator_(communicator),
      tables_(tables),
      pool_(pool),
      overlap_(overlap),
      slots_(communicator, tables.size() + 1),
      wanted_(communicator.ranks()),
      notes_(communicator.ranks()),
      replies_(communicator.ranks()),
      incoming_(communicator.ranks()),
      fetched_(tables.size()) {}

Result<std::vector<kernels::RowStorage>> RowFetch::fetch(std::span<const WantedRows> wanted,
                                                         int64_t note) {
  ask(wanted, note);
  RECMILL_ASSIGN_OR_RETURN(const std::span<const GroupedIds> asked, slots_.ask(wanted_));
  RECMILL_RETURN_IF_ERROR(hear_notes(asked));
  read_asked(asked);
  RECMILL_ASSIGN_OR_RETURN(const auto exchange, communicator_.exchange(0));
  RECMILL_RETURN_IF_ERROR(begin_replies(*exchange, wanted));
  if (overlap_) read_own(wanted);
  RECMILL_RETURN_IF_ERROR(exchange->wait(0));
  if (!overlap_) read_own(wanted);
  pool_.run(communicator_.ranks(), [&](int64_t rank) { take(wanted, static_cast<int>(rank)); });
  return fetched(wanted);
}

std::vector<kernels::RowStorage> RowFetch::fetch_own(std::span<const WantedRows> wanted) {
  read_own(wanted);
  return fetched(wanted);
}

std::vector<kernels::RowStorage> RowFetch::fetched(std::span<const WantedRows> wanted) const {
  std::vector<kernels::RowStorage> storage;
  for (size_t t = 0; t < tables_.size(); ++t) {
    storage.push_back(kernels::RowStorage::of(
        fetched_[t].data(), static_cast<int64_t>(wanted[t].by_source->place.size()),
        tables_[t].spec().dim));
  }
  return storage;
}

Result<std::vector<kernels::RowStorage>> RowFetch::fetch(std::span<const WantedRows> wanted,
                                                         int64_t note, const UnaskedRows& rows,
                                                         bool begins) {
  if (begins) RECMILL_RETURN_IF_ERROR(exchange_unasked(rows, note));
  read_own(wanted);
  for (int rank = 0; rank < communicator_.ranks(); ++rank)
    RECMILL_RETURN_IF_ERROR(take(wanted, rank, rows));
  return fetched(wanted);
}

// A message is rows, table after table, and the note.
Status RowFetch::exchange_unasked(const UnaskedRows& rows, int64_t note) {
  read_asked(rows.out);
  constexpr size_t kNote = sizeof(note) / sizeof(float);
  RECMILL_ASSIGN_OR_RETURN(const auto exchange, communicator_.exchange(0));
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    auto& reply = replies_[rank];
    reply.resize(reply.size() + kNote);
    std::memcpy(reply.data() + reply.size() - kNote, &note, sizeof(note));
    size_t floats = kNote;
    for (size_t t = 0; t < tables_.size(); ++t)
      floats += rows.in[rank].of(t).size() * static_cast<size_t>(tables_[t].spec().dim);
    incoming_[rank].resize(rank == communicator_.rank() ? 0 : floats);
  }
  RECMILL_RETURN_IF_ERROR(begin_messages(*exchange, communicator_.rank(), replies_, incoming_, 0));
  RECMILL_RETURN_IF_ERROR(exchange->wait(0));
  notes_[communicator_.rank()] = note;
  for (int rank = 0; rank < communicator_.ranks(); ++rank)
    if (rank != communicator_.rank())
      std::memcpy(&notes_[rank], incoming_[rank].data() + incoming_[rank].size() - kNote,
                  sizeof(note));
  return {};
}

// Brings what came of `rank` to its places.
Status RowFetch::take(std::span<const WantedRows> wanted, int rank, const UnaskedRows& unasked) {
  if (rank == communicator_.rank()) return {};
  const auto before = [&](size_t table, int64_t slot) -> const float* {
    return unasked.early == nullptr ? nullptr
                                    : unasked.early->find(rank, static_cast<int>(table), slot);
  };
  const float* from = incoming_[rank].data();
  for (size_t t = 0; t < tables_.size(); ++t) {
    const RowsByRank& rows = *wanted[t].by_source;
    const auto slots = unasked.in[rank].of(t);
    const int64_t dim = tables_[t].spec().dim;
    for (int64_t at = rows.of[rank].begin; at < rows.of[rank].end; ++at) {
      const auto found = std::ranges::lower_bound(slots, rows.slots[at]);
      const bool came = found != slots.end() && *found == rows.slots[at];
      const float* const weights =
          came ? from + (found - slots.begin()) * dim : before(t, rows.slots[at]);
      if (weights == nullptr)
        return Status::Failed(communicator_.name(rank) + " does not send a row of table '" +
                              tables_[t].spec().name + "' that is looked up");
      std::memcpy(fetched_[t].data() + at * dim, weights, static_cast<size_t>(dim) * sizeof(float));
    }
    from += std::ssize(slots) * dim;
  }
  return {};
}

// Of itself a rank asks nothing.
void RowFetch::ask(std::span<const WantedRows> wanted, int64_t note) {
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    auto& [ends, slots] = wanted_[rank];
    ends.clear();
    slots.clear();
    for (const WantedRows& rows : wanted) {
      const table::RowRange of =
          rank == communicator_.rank() ? table::RowRange{} : rows.by_source->of[rank];
      const auto first = rows.by_source->slots.begin();
      slots.insert(slots.end(), first + of.begin, first + of.end);
      ends.push_back(static_cast<int64_t>(slots.size()));
    }
    slots.push_back(note);
    ends.push_back(static_cast<int64_t>(slots.size()));
  }
}

Status RowFetch::hear_notes(std::span<const GroupedIds> asked) {
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    const auto note = asked[rank].of(tables_.size());
    if (note.size() != 1)
      return Status::Failed(communicator_.name(rank) + " asks for rows without its note");
    notes_[rank] = note[0];
  }
  return {};
}

// The rows in the slots that each rank asked for.
void RowFetch::read_asked(std::span<const GroupedIds> asked) {
  SlotCopies copies(asked.size() * tables_.size());
  for (size_t rank = 0; rank < asked.size(); ++rank) {
    int64_t floats = 0;
    for (size_t t = 0; t < tables_.size(); ++t)
      floats += static_cast<int64_t>(asked[rank].of(t).size()) * tables_[t].columns().count;
    replies_[rank].resize(floats);
    float* out = replies_[rank].data();
    for (size_t t = 0; t < tables_.size(); ++t) {
      const auto slots = asked[rank].of(t);
      const int64_t columns = tables_[t].columns().count;
      copies.add(tables_[t], slots, out, columns);
      out += static_cast<int64_t>(slots.size()) * columns;
    }
  }
  copies.run(pool_);
}

size_t RowFetch::expected(std::span<const WantedRows> wanted, int rank) const {
  int64_t floats = 0;
  for (size_t t = 0; t < tables_.size(); ++t)
    floats += wanted[t].by_source->of[rank].size() * tables_[t].columns_of(rank).count;
  return static_cast<size_t>(floats);
}

Status RowFetch::begin_replies(Exchange& exchange, std::span<const WantedRows> wanted) {
  for (int rank = 0; rank < communicator_.ranks(); ++rank)
    if (rank != communicator_.rank()) incoming_[rank].resize(expected(wanted, rank));
  return begin_messages(exchange, communicator_.rank(), replies_, incoming_, 0);
}

void RowFetch::read_own(std::span<const WantedRows> wanted) {
  SlotCopies copies(tables_.size());
  for (size_t t = 0; t < tables_.size(); ++t) {
    const RowsByRank& rows = *wanted[t].by_source;
    const int64_t dim = tables_[t].spec().dim;
    fetched_[t].resize(rows.place.size() * dim);
    if (!wanted[t].own_too) continue;
    const auto [begin, end] = rows.of[communicator_.rank()];
    copies.add(tables_[t], std::span(rows.slots).subspan(begin, end - begin),
               fetched_[t].data() + begin * dim + tables_[t].columns().first, dim);
  }
  copies.run(pool_);
}

// Brings what `rank` answered to its place.
void RowFetch::take(std::span<const WantedRows> wanted, int rank) {
  if (rank == communicator_.rank()) return;
  const float* from = incoming_[rank].data();
  for (size_t t = 0; t < tables_.size(); ++t) {
    const auto [begin, end] = wanted[t].by_source->of[rank];
    const int64_t dim = tables_[t].spec().dim;
    const ColumnRange columns = tables_[t].columns_of(rank);
    float* to = fetched_[t].data() + begin * dim + columns.first;
    const int64_t pieces = columns.count == dim ? 1 : end - begin;  // else a row's columns each
    const int64_t floats = columns.count == dim ? (end - begin) * dim : columns.count;
    if (floats == 0) continue;
    for (int64_t piece = 0; piece < pieces; ++piece, from += floats, to += dim)
      std::memcpy(to, from, floats * sizeof(float));
  }
}

}  // namespace recmill::store
