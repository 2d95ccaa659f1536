// SPDX-License-Identifier: Apache-2.0
#include "store/tables/table_snapshots.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <unordered_map>

namespace recmill::store {
namespace {

constexpr int64_t kBlockRows = 4096;   // handed on at a time
constexpr int64_t kChunkRows = 65536;  // row numbers whose copies are freed together

/// Rows of one table on their way to a sink.
struct Rows {
  std::vector<int64_t> numbers;
  std::vector<float> weights;
  std::vector<std::vector<float>> state;  // [columns]
  bool gaps = false;
};

/// Copies of rows as they were: weights, then the columns of the state, a row behind the other.
struct Kept {
  std::unordered_map<int64_t, size_t> places;  // row: first of its values
  std::vector<float> values;
};

int64_t floats_of_row(const table::EmbeddingTable& table) {
  int64_t floats = table.columns().count;
  for (const auto& column : table.state()) floats += column.width;
  return floats;
}

/// Appends a row's weights and state to `values`.
void copy_row(const table::EmbeddingTable& table, int64_t row, std::vector<float>& values) {
  const size_t first = values.size();
  values.resize(first + floats_of_row(table));
  std::span<float> rest = std::span(values).subspan(first);
  const auto take = [&](int64_t count) {
    const auto part = rest.first(count);
    rest = rest.subspan(count);
    return part;
  };
  const auto weights = take(table.columns().count);
  std::vector<std::span<float>> state;
  for (const auto& column : table.state()) state.push_back(take(column.width));
  table.read(table.share().slot(row), 1, weights, state);
}

}  // namespace

int64_t kept_bytes_of_row(const TableSpec& spec, int64_t columns) {
  constexpr int64_t kPlaceBytes = 48;  // an entry of a hash map and its share of the buckets
  int64_t floats = columns;
  for (const table::StateColumn& column : table::row_state(spec, columns)) floats += column.width;
  return floats * 4 * 3 / 2 + kPlaceBytes;  // a vector that grows is on average three quarters full
}

// Where the reader is, and what was overwritten before it came there.
class TableSnapshots::State {
 public:
  State(const std::vector<table::EmbeddingTable>& tables, int64_t most_bytes)
      : tables_(tables), most_bytes_(most_bytes), kept_(tables.size()) {
    for (size_t t = 0; t < tables.size(); ++t) {
      kept_[t].resize(tables[t].spec().rows / kChunkRows + 1);
    }
    next_row_ = tables.empty() ? 0 : tables[0].share().next(0);
    skip_finished_tables();
  }

  /// False when there is nothing to be kept for any more; else `lock` holds the reader off.
  bool before(std::span<const std::span<const int64_t>> rows, ThreadPool& pool, Change& lock) {
    lock = Change(mutex_);
    changed_.wait(lock, [&] { return done() || kept_bytes_ <= most_bytes_; });
    if (done()) {
      lock = {};
      return false;
    }
    pool.run(static_cast<int64_t>(rows.size()), [&](int64_t t) { keep(t, rows[t]); });
    return true;
  }

  bool is_done() {
    std::lock_guard lock(mutex_);
    return done();
  }

  /// The next rows, all of one table, in `rows`; false: there are no more.
  bool next(size_t& table, Rows& rows) {
    std::lock_guard lock(mutex_);
    if (done()) return false;
    table = table_;
    read(rows);
    changed_.notify_all();
    return true;
  }

  void give_up() {
    std::lock_guard lock(mutex_);
    table_ = tables_.size();
    kept_.clear();
    changed_.notify_all();
  }

 private:
  bool done() const { return table_ == tables_.size(); }

  void skip_finished_tables() {
    while (!done() && next_row_ >= tables_[table_].spec().rows) {
      kept_[table_].clear();
      if (++table_ < tables_.size()) next_row_ = tables_[table_].share().next(0);
    }
  }

  void keep(size_t table, std::span<const int64_t> rows) {
    const bool copies = tables_[table].share().has_copies();
    int64_t bytes = 0;
    for (const int64_t row : rows) {
      if (table < table_ || (table == table_ && row < next_row_)) continue;  // was read
      if (copies && !tables_[table].share().owns(row)) continue;             // its owner reads it
      Kept& kept = kept_[table][row / kChunkRows];
      if (!kept.places.try_emplace(row, kept.values.size()).second) continue;
      copy_row(tables_[table], row, kept.values);
      bytes += bytes_of_row(table);
    }
    kept_bytes_ += bytes;
  }

  int64_t bytes_of_row(size_t table) const {
    return kept_bytes_of_row(tables_[table].spec(), tables_[table].columns().count);
  }

  // The rows from next_row_ on: at most kBlockRows, all of one chunk.
  void read(Rows& rows) {
    const table::EmbeddingTable& table = tables_[table_];
    const auto& share = table.share();
    const int64_t chunk = next_row_ / kChunkRows;
    const int64_t end = std::min(share.rows(), (chunk + 1) * kChunkRows);
    rows.numbers.clear();
    for (; next_row_ < end && static_cast<int64_t>(rows.numbers.size()) < kBlockRows;
         next_row_ = share.next(next_row_ + 1)) {
      rows.numbers.push_back(next_row_);
    }
    read_numbered(table, rows);
    Kept& kept = kept_[table_][chunk];
    if (!kept.places.empty()) put_back(table, kept, rows);
    if (next_row_ >= end) {
      kept_bytes_ -= static_cast<int64_t>(kept.places.size()) * bytes_of_row(table_);
      kept = {};
    }
    skip_finished_tables();
  }

  static void read_numbered(const table::EmbeddingTable& table, Rows& rows) {
    const auto count = static_cast<int64_t>(rows.numbers.size());
    const int64_t dim = table.columns().count;
    rows.weights.resize(count * dim);
    rows.state.resize(table.state().size());
    for (size_t c = 0; c < rows.state.size(); ++c) {
      rows.state[c].resize(count * table.state()[c].width);
    }
    rows.gaps = rows.numbers.back() - rows.numbers.front() + 1 != count;
    std::vector<std::span<float>> state(rows.state.size());
    const int64_t run = table.share().in_order() ? count : 1;  // rows in neighbouring slots
    for (int64_t i = 0; i < count; i += run) {
      for (size_t c = 0; c < state.size(); ++c) {
        const int64_t width = table.state()[c].width;
        state[c] = std::span(rows.state[c]).subspan(i * width, run * width);
      }
      table.read(table.share().slot(rows.numbers[i]), run,
                 std::span(rows.weights).subspan(i * dim, run * dim), state);
    }
  }

  // Over what stands in the table now, what stood there.
  static void put_back(const table::EmbeddingTable& table, const Kept& kept, Rows& rows) {
    const int64_t dim = table.columns().count;
    for (size_t i = 0; i < rows.numbers.size(); ++i) {
      const auto found = kept.places.find(rows.numbers[i]);
      if (found == kept.places.end()) continue;
      const float* from = kept.values.data() + found->second;
      std::copy_n(from, dim, rows.weights.data() + i * dim);
      from += dim;
      for (size_t c = 0; c < rows.state.size(); ++c) {
        const int64_t width = table.state()[c].width;
        std::copy_n(from, width, rows.state[c].data() + i * width);
        from += width;
      }
    }
  }

  const std::vector<table::EmbeddingTable>& tables_;
  const int64_t most_bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_; while before() holds it, each task of its pool changes kept_ of one table.
  size_t table_ = 0;  // rows of this table from next_row_ on have not been read, nor later tables
  int64_t next_row_ = 0;
  std::vector<std::vector<Kept>> kept_;  // [tables][chunks]
  std::atomic<int64_t> kept_bytes_{0};
};

class TableSnapshots::Snapshot final : public RowSnapshot {
 public:
  Snapshot(const std::vector<table::EmbeddingTable>& tables, std::shared_ptr<State> state)
      : tables_(tables), state_(std::move(state)) {}
  ~Snapshot() override { state_->give_up(); }

  Status read(const std::function<Status(const RowBlock&)>& sink) override {
    Rows rows;
    for (size_t table; state_->next(table, rows);) {
      std::vector<std::span<const float>> state(rows.state.begin(), rows.state.end());
      const ColumnRange columns = tables_[table].columns();
      if (columns.first > 0 && tables_[table].rows().row_state != nullptr) state.back() = {};
      RowBlock block{static_cast<int>(table), rows.numbers.front(),
                     static_cast<int64_t>(rows.numbers.size()), rows.weights, state};
      block.columns = columns;
      if (rows.gaps) block.listed = rows.numbers;
      RECMILL_RETURN_IF_ERROR(sink(block));
    }
    return {};
  }

 private:
  const std::vector<table::EmbeddingTable>& tables_;
  const std::shared_ptr<State> state_;
};

TableSnapshots::TableSnapshots(const std::vector<table::EmbeddingTable>& tables)
    : tables_(tables) {}
TableSnapshots::~TableSnapshots() = default;

std::unique_ptr<RowSnapshot> TableSnapshots::take(int64_t kept_bytes) {
  RECMILL_CHECK(!is_being_read(), "the snapshot before is there");
  latest_ = std::make_shared<State>(tables_, kept_bytes);
  return std::make_unique<Snapshot>(tables_, latest_);
}

bool TableSnapshots::is_being_read() const {
  return latest_ != nullptr && !latest_->is_done();
}

TableSnapshots::Change TableSnapshots::before(std::span<const std::span<const int64_t>> rows,
                                              ThreadPool& pool) {
  Change change;
  if (latest_ != nullptr && !latest_->before(rows, pool, change)) latest_ = nullptr;
  return change;
}

}  // namespace recmill::store
