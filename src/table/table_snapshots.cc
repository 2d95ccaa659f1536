// SPDX-License-Identifier: Apache-2.0
#include "table/table_snapshots.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <unordered_map>

#include "table/row_record.h"

namespace recmill::table {
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

/// Copies of rows as they were.
struct Kept {
  std::unordered_map<int64_t, size_t> places;  // row: where its record begins
  std::vector<std::byte> records;
};

}  // namespace

int64_t kept_bytes_of_row(const TableSpec& spec, int64_t columns) {
  constexpr int64_t kPlaceBytes = 48;  // an entry of a hash map and its share of the buckets
  // A vector that grows is on average three quarters full.
  return RowRecord(spec, columns).bytes() * 3 / 2 + kPlaceBytes;
}

/// What all snapshots of some tables share: one reader looks at rows at a time, and no row changes
/// meanwhile.
struct TableSnapshots::Readers {
  std::mutex mutex;
  std::condition_variable changed;
};

// Where the reader is, and what was overwritten before it came there.
class TableSnapshots::State {
 public:
  State(const std::vector<EmbeddingTable>& tables, std::shared_ptr<Readers> readers,
        int64_t most_bytes, int64_t step)
      : tables_(tables),
        readers_(std::move(readers)),
        most_bytes_(most_bytes),
        step_(step),
        kept_(tables.size()) {
    for (size_t t = 0; t < tables.size(); ++t) {
      records_.emplace_back(tables[t].spec(), tables[t].columns().count);
      kept_[t].resize(tables[t].spec().rows / kChunkRows + 1);
    }
    next_row_ = tables.empty() ? 0 : tables[0].share().next(0);
    skip_finished_tables();
  }

  // Of the thread that updates, while it holds readers off:
  bool done() const { return table_ == tables_.size(); }
  bool is_before(int64_t step) const { return step_ < step; }
  bool is_full() const { return kept_bytes_ > most_bytes_; }
  void keep(std::span<const std::span<const int64_t>> rows, ThreadPool& pool) {
    pool.run(static_cast<int64_t>(rows.size()), [&](int64_t t) { keep(t, rows[t]); });
  }

  bool is_done() const {
    std::lock_guard lock(readers_->mutex);
    return done();
  }

  /// The next rows, all of one table, in `rows`; false: there are no more.
  bool next(size_t& table, Rows& rows) {
    std::lock_guard lock(readers_->mutex);
    if (done()) return false;
    table = table_;
    read(rows);
    readers_->changed.notify_all();
    return true;
  }

  void give_up() {
    std::lock_guard lock(readers_->mutex);
    table_ = tables_.size();
    kept_.clear();
    readers_->changed.notify_all();
  }

 private:
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
      const size_t place = kept.records.size();
      if (!kept.places.try_emplace(row, place).second) continue;
      kept.records.resize(place + records_[table].bytes());
      records_[table].pack(tables_[table].rows(), tables_[table].share().slot(row),
                           kept.records.data() + place);
      bytes += bytes_of_row(table);
    }
    kept_bytes_ += bytes;
  }

  int64_t bytes_of_row(size_t table) const {
    return kept_bytes_of_row(tables_[table].spec(), tables_[table].columns().count);
  }

  // The rows from next_row_ on: at most kBlockRows, all of one chunk.
  void read(Rows& rows) {
    const EmbeddingTable& table = tables_[table_];
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

  static void read_numbered(const EmbeddingTable& table, Rows& rows) {
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

  // Over what the table stores now, what it stored.
  void put_back(const EmbeddingTable& table, const Kept& kept, Rows& rows) const {
    const int64_t dim = table.columns().count;
    std::vector<std::span<float>> state(rows.state.size());
    for (size_t i = 0; i < rows.numbers.size(); ++i) {
      const auto found = kept.places.find(rows.numbers[i]);
      if (found == kept.places.end()) continue;
      for (size_t c = 0; c < state.size(); ++c) {
        const int64_t width = table.state()[c].width;
        state[c] = std::span(rows.state[c]).subspan(i * width, width);
      }
      records_[table_].read(kept.records.data() + found->second,
                            std::span(rows.weights).subspan(i * dim, dim), state);
    }
  }

  const std::vector<EmbeddingTable>& tables_;
  const std::shared_ptr<Readers> readers_;
  const int64_t most_bytes_, step_;
  std::vector<RowRecord> records_;  // [tables]
  // Guarded by readers_; while before() holds it, each task of its pool changes kept_ of one table.
  size_t table_ = 0;  // rows of this table from next_row_ on have not been read, nor later tables
  int64_t next_row_ = 0;
  std::vector<std::vector<Kept>> kept_;  // [tables][chunks]
  std::atomic<int64_t> kept_bytes_{0};
};

class TableSnapshots::Snapshot final : public RowSnapshot {
 public:
  Snapshot(const std::vector<EmbeddingTable>& tables, std::shared_ptr<State> state)
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
  const std::vector<EmbeddingTable>& tables_;
  const std::shared_ptr<State> state_;
};

TableSnapshots::TableSnapshots(const std::vector<EmbeddingTable>& tables)
    : tables_(tables), readers_(std::make_shared<Readers>()) {}
TableSnapshots::~TableSnapshots() = default;

std::unique_ptr<RowSnapshot> TableSnapshots::take(int64_t kept_bytes, int64_t step) {
  std::erase_if(live_, [](const auto& state) { return state->is_done(); });
  live_.push_back(std::make_shared<State>(tables_, readers_, kept_bytes, step));
  return std::make_unique<Snapshot>(tables_, live_.back());
}

bool TableSnapshots::is_being_read() const {
  return !std::ranges::all_of(live_, &State::is_done);
}

TableSnapshots::Change TableSnapshots::before(std::span<const std::span<const int64_t>> rows,
                                              ThreadPool& pool, int64_t step) {
  if (live_.empty()) return {};
  Change change(readers_->mutex);
  const auto has_ended = [](const auto& state) { return state->done(); };
  readers_->changed.wait(change, [&] {
    std::erase_if(live_, has_ended);
    return std::ranges::none_of(
        live_, [&](const auto& state) { return state->is_before(step) && state->is_full(); });
  });
  if (live_.empty()) return {};
  for (const auto& state : live_)
    if (state->is_before(step)) state->keep(rows, pool);
  return change;
}

}  // namespace recmill::table
