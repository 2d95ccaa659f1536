// SPDX-License-Identifier: Apache-2.0
#include "store/placed/row_migration.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "comm/gather_values.h"
#include "table/row_map.h"
#include "table/row_record.h"

namespace recmill::store {
namespace {

constexpr int64_t kMessageBytes = int64_t{16} << 20;  // of one copy of the rows that go together
constexpr int64_t kRowsATask = 1024;

/// Rows of a table that go together with others.
struct Piece {
  size_t table = 0;
  table::RowRange rows;
};

/// In ascending order; tables that are small go together.
std::vector<std::vector<Piece>> rounds_of(const std::vector<table::EmbeddingTable>& tables) {
  std::vector<std::vector<Piece>> rounds;
  int64_t room = 0;
  for (size_t t = 0; t < tables.size(); ++t) {
    const TableSpec& spec = tables[t].spec();
    const int64_t row_bytes = table::RowRecord(spec).bytes();
    for (int64_t first = 0; first < spec.rows;) {
      if (room < row_bytes) {
        rounds.emplace_back();
        room = std::max(kMessageBytes, row_bytes);
      }
      const int64_t end = std::min(spec.rows, first + room / row_bytes);
      rounds.back().push_back({t, {first, end}});
      room -= (end - first) * row_bytes;
      first = end;
    }
  }
  return rounds;
}

/// Who holds rows of a table, by one plan.
class Holders {
 public:
  explicit Holders(const table::EmbeddingTable& table)
      : map_(table.share().map()),
        columns_(table.column_split()),
        home_(map_ == nullptr ? table.share().owner(0) : 0) {}

  void look_up(table::RowRange rows) {
    if (map_ == nullptr) return;
    std::vector<int64_t> numbers;
    for (int64_t row = rows.begin; row < rows.end; ++row) numbers.push_back(row);
    places_.resize(numbers.size());
    map_->places(numbers, places_.data());
  }
  /// Of row i of those looked up.
  bool holds(int64_t i, int rank) const {
    if (columns_.is_split()) return columns_.piece_of(rank) >= 0;
    return map_ == nullptr ? home_ == rank : map_->has_copy(places_[i], rank);
  }
  /// Whether `rank` takes what `from` holds of the row from there.
  bool is_source(int64_t i, int from, int rank) const {
    if (columns_.is_split()) return columns_.piece_of(from) >= 0;
    return (map_ == nullptr ? home_ : map_->source(places_[i], rank).device) == from;
  }

 private:
  const table::RowMap* map_;
  const table::ColumnSplit& columns_;
  int home_;  // of all rows, where there is no map
  std::vector<table::RowPlace> places_;
};

table::RowRecord record_of(const table::EmbeddingTable& table) {
  return {table.spec(), table.columns().count};
}

/// What goes of each row from one rank to another: columns that both have, and of state by row what
/// belongs to it, which the rank with the first of them sends.
struct Cut {
  ColumnRange columns;
  bool by_row = false;

  static Cut between(const table::EmbeddingTable& was, int from,
                     const table::EmbeddingTable& will_be, int to) {
    const ColumnRange wanted = will_be.columns_of(to);
    const ColumnRange columns = was.columns_of(from).common(wanted);
    return {columns, columns.count > 0 && columns.first == wanted.first};
  }
  /// Where it is in a record of columns `of`.
  std::vector<table::RowRecord::Part> parts(const TableSpec& spec, ColumnRange of) const {
    return table::RowRecord(spec, of.count)
        .parts({columns.first - of.first, columns.count}, by_row);
  }
};

class RowMigration {
 public:
  RowMigration(HeldRows from, bool keeps, HeldRows to, Communicator& communicator, ThreadPool& pool)
      : from_(from.tables),
        from_host_(from.host),
        keeps_(keeps),
        to_(to.tables),
        to_host_(to.host),
        communicator_(communicator),
        pool_(pool),
        rank_(communicator.rank()),
        outgoing_(communicator.ranks()),
        taken_(communicator.ranks()) {}

  Result<MigratedRows> run() {
    int64_t shared = 0;
    for (const auto& table : to_)
      shared +=
          table::EmbeddingTable::mapped_bytes(table.spec(), {table.share(), table.column_split()})
              .shared;
    RECMILL_ASSIGN_OR_RETURN(SharedPages pages, SharedPages::allocate(static_cast<size_t>(shared)));
    if (to_host_ != nullptr) RECMILL_RETURN_IF_ERROR(to_host_->open());
    for (const std::vector<Piece>& round : rounds_of(from_)) {
      for (auto& rows : outgoing_) rows.clear();
      for (const Piece& piece : round) {
        if (piece.rows.begin == 0) RECMILL_RETURN_IF_ERROR(allocate(piece.table, pages));
        pack(piece);
      }
      RECMILL_RETURN_IF_ERROR(exchange());
      std::ranges::fill(taken_, 0);
      for (const Piece& piece : round) {
        RECMILL_RETURN_IF_ERROR(unpack(piece));
        if (!keeps_ && piece.rows.end == from_[piece.table].spec().rows) release(piece.table);
      }
    }
    return over_all_ranks();
  }

 private:
  Status allocate(size_t table, SharedPages& pages) {
    std::byte* records = nullptr;
    if (to_host_ != nullptr) {
      RECMILL_ASSIGN_OR_RETURN(records, to_host_->allocate(table));
    }
    return to_[table].allocate(&pages, {.records = records, .row_state = nullptr});
  }
  void release(size_t table) {
    const table::EmbeddingTable& was = from_[table];
    from_[table] = table::EmbeddingTable::without_rows(was.spec(), was.seed(),
                                                       {was.share(), was.column_split()});
    if (from_host_ != nullptr) from_host_->release(table);
  }

  // Appends what each rank takes of this one's rows.
  void pack(const Piece& piece) {
    const auto &was = from_[piece.table], &will_be = to_[piece.table];
    Holders before(was), after(will_be);
    before.look_up(piece.rows);
    after.look_up(piece.rows);
    pool_.run(communicator_.ranks(), [&](int64_t task) {
      const int to = static_cast<int>(task);
      const Cut cut = Cut::between(was, rank_, will_be, to);
      if (cut.columns.count == 0) return;
      const auto parts = cut.parts(was.spec(), was.columns());
      const auto shape = record_of(was);
      std::vector<std::byte> record(shape.bytes());
      for (int64_t i = 0; i < piece.rows.size(); ++i) {
        if (!after.holds(i, to) || !before.is_source(i, rank_, to)) continue;
        shape.pack(was.rows(), was.share().slot(piece.rows.begin + i), record.data());
        for (const auto& [first, count] : parts)
          outgoing_[to].insert(outgoing_[to].end(), record.begin() + first,
                               record.begin() + first + count);
      }
    });
  }

  // To itself a rank sends nothing.
  Status exchange() {
    std::vector<std::span<const std::byte>> bytes;
    for (int to = 0; to < communicator_.ranks(); ++to) {
      bytes.emplace_back();
      if (to != rank_) bytes.back() = outgoing_[to];
    }
    for (const auto& of_rank : bytes) moved_.bytes += std::ssize(of_rank);
    RECMILL_ASSIGN_OR_RETURN(received_, communicator_.all_to_all(bytes));
    return {};
  }

  std::span<const std::byte> incoming(int from) const {
    if (from == rank_) return outgoing_[from];
    return received_.from(from);
  }

  // Puts together each row that this rank will hold, from whoever sent some of it.
  Status unpack(const Piece& piece) {
    const auto& was = from_[piece.table];
    auto& will_be = to_[piece.table];
    Holders before(was), after(will_be);
    before.look_up(piece.rows);
    after.look_up(piece.rows);
    std::vector<int64_t> held;  // rows, from the piece's first one
    for (int64_t i = 0; i < piece.rows.size(); ++i)
      if (after.holds(i, rank_)) held.push_back(i);
    const auto shape = record_of(will_be);
    std::vector<std::byte> records(held.size() * shape.bytes());
    std::vector<Status> outcomes(communicator_.ranks());
    std::vector<int64_t> rows(communicator_.ranks());
    pool_.run(communicator_.ranks(), [&](int64_t task) {
      const int from = static_cast<int>(task);
      const Cut cut = Cut::between(was, from, will_be, rank_);
      if (cut.columns.count == 0) return;
      const auto parts = cut.parts(was.spec(), will_be.columns());
      for (size_t h = 0; h < held.size() && outcomes[from].ok(); ++h) {
        if (!before.is_source(held[h], from, rank_)) continue;
        outcomes[from] = take(from, parts, records.data() + h * shape.bytes());
        rows[from] += from == rank_ ? 0 : 1;
      }
    });
    for (Status& outcome : outcomes) RECMILL_RETURN_IF_ERROR(std::move(outcome));
    for (const int64_t of_rank : rows) moved_.rows += of_rank;
    pool_.run_ranges(std::ssize(held), kRowsATask, [&](int64_t begin, int64_t end) {
      for (int64_t h = begin; h < end; ++h)
        shape.unpack(records.data() + h * shape.bytes(), will_be.rows(),
                     will_be.share().slot(piece.rows.begin + held[h]));
    });
    return {};
  }

  Status take(int from, std::span<const table::RowRecord::Part> parts, std::byte* record) {
    const auto bytes = incoming(from);
    for (const auto& [first, count] : parts) {
      if (taken_[from] + count > bytes.size())
        return Status::Failed(communicator_.name(from) + " sends fewer rows than it should");
      std::memcpy(record + first, bytes.data() + taken_[from], count);
      taken_[from] += count;
    }
    return {};
  }

  Result<MigratedRows> over_all_ranks() {
    RECMILL_ASSIGN_OR_RETURN(const auto all, gather_values(moved_, communicator_));
    MigratedRows sum;
    for (const MigratedRows& of_rank : all) {
      sum.rows += of_rank.rows;
      sum.bytes += of_rank.bytes;
    }
    return sum;
  }

  std::vector<table::EmbeddingTable>& from_;
  HostRows* const from_host_;
  const bool keeps_;
  std::vector<table::EmbeddingTable>& to_;
  HostRows* const to_host_;
  Communicator& communicator_;
  ThreadPool& pool_;
  const int rank_;
  std::vector<std::vector<std::byte>> outgoing_;  // [ranks], of the pieces that go together
  Received received_;
  std::vector<size_t> taken_;  // [ranks], bytes of what came from each
  MigratedRows moved_;
};

}  // namespace

Result<MigratedRows> move_rows(HeldRows from, bool keeps, HeldRows to, Communicator& communicator,
                               ThreadPool& pool) {
  return RowMigration(from, keeps, to, communicator, pool).run();
}

}  // namespace recmill::store
