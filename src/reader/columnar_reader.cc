// SPDX-License-Identifier: Apache-2.0
#include "reader/columnar_reader.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <numeric>
#include <thread>

#include "reader/batch_rows.h"

namespace recmill::reader {
namespace {

template <typename T>
void gather(const std::vector<T>& from, const std::vector<uint32_t>& rows, std::vector<T>& to) {
  to.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) to[i] = from[rows[i]];
}

void gather(const IdColumn& from, const std::vector<uint32_t>& rows, IdColumn& to) {
  to.offsets.resize(rows.size() + 1);
  to.offsets[0] = 0;
  to.ids.resize(from.ids.size());
  to.weights.resize(from.weights.size());
  int64_t at = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t begin = from.offsets[rows[i]], end = from.offsets[rows[i] + 1];
    for (int64_t j = begin; j < end; ++j)
      to.ids[static_cast<size_t>(at + j - begin)] = from.ids[static_cast<size_t>(j)];
    if (!from.weights.empty()) {
      std::copy(from.weights.begin() + begin, from.weights.begin() + end, to.weights.begin() + at);
    }
    at += end - begin;
    to.offsets[i + 1] = at;
  }
  to.ids.resize(static_cast<size_t>(at));
  if (!from.weights.empty()) to.weights.resize(static_cast<size_t>(at));
}

/// Moves `from` to `to`: all of it, or `rows` of it in their order.
template <typename Column>
void take(Column& from, const std::vector<uint32_t>& rows, Column& to) {
  rows.empty() ? std::swap(from, to) : gather(from, rows, to);
}

/// Decodes slices, one after another. Cheap where the next slice follows the last one.
class SliceDecoder {
 public:
  SliceDecoder(std::vector<std::unique_ptr<RowGroupFile>> files, Pool& pool)
      : files_(std::move(files)), pool_(pool) {
    for (size_t file = 0; file < files_.size(); ++file) {
      const auto groups = static_cast<int64_t>(files_[file]->row_groups().size());
      for (int64_t group = 0; group < groups; ++group) groups_.push_back({file, group});
    }
    columns_.resize(schema().columns.size());
  }

  const ColumnarSchema& schema() const { return files_[0]->columns(); }
  size_t columns() const { return columns_.size(); }

  std::vector<int64_t> group_rows() const {
    std::vector<int64_t> rows;
    for (const auto& file : files_) {
      rows.insert(rows.end(), file->row_groups().begin(), file->row_groups().end());
    }
    return rows;
  }

  /// Replaces `batch` by `rows` of the slice in their order; empty: all, in the order of the data.
  Status decode(const RowSlice& slice, const std::vector<uint32_t>& rows, ColumnBatch& batch) {
    // Not cleared: what is exchanged with the cells keeps its size, and so is not zeroed again.
    batch.dense.resize(schema().schema.dense.size());
    batch.ids.resize(schema().schema.ids.size());
    const bool follows = slice.group == group_ && slice.begin == next_row_;
    std::vector<Status> statuses(columns_.size());
    pool_.run(static_cast<int64_t>(columns_.size()), [&](int64_t task) {
      const auto column = static_cast<size_t>(task);
      statuses[column] = decode_column(column, slice, follows);
      if (statuses[column].ok()) hand_over(column, rows, batch);
    });
    group_ = slice.group;
    next_row_ = slice.begin + slice.rows;
    for (const Status& status : statuses) {
      if (!status.ok()) group_ = -1;  // cursors stand anywhere
      RECMILL_RETURN_IF_ERROR(status);
    }
    batch.samples = rows.empty() ? slice.rows : static_cast<int64_t>(rows.size());
    return {};
  }

 private:
  struct GroupPlace {
    size_t file;
    int64_t group;
  };
  struct ColumnState {
    std::unique_ptr<FieldCursor> cells_at, weights_at;
    ColumnCells cells, weights;
  };

  const BoundColumn& bound(size_t column, const RowSlice& slice) const {
    return files_[groups_[static_cast<size_t>(slice.group)].file]->columns().columns[column];
  }

  Status decode_column(size_t column, const RowSlice& slice, bool follows) {
    ColumnState& state = columns_[column];
    const BoundColumn& what = bound(column, slice);
    RECMILL_RETURN_IF_ERROR(
        decode_field(what, what.kind, slice, follows, state.cells_at, state.cells));
    if (what.weights_field < 0) return {};
    RECMILL_RETURN_IF_ERROR(
        decode_field(what, CellKind::weights, slice, follows, state.weights_at, state.weights));
    const auto [ids, weights] =
        std::ranges::mismatch(state.cells.ids.offsets, state.weights.ids.offsets);
    if (ids != state.cells.ids.offsets.end()) {
      const auto row = slice.begin + (ids - state.cells.ids.offsets.begin()) - 1;
      const GroupPlace place = groups_[static_cast<size_t>(slice.group)];
      return Status::Failed(files_[place.file]->path() + ": column '" + what.spec.name + "', row " +
                            std::to_string(row) + " of row group " + std::to_string(place.group) +
                            ": its weights are not as many as its ids");
    }
    state.cells.ids.weights.swap(state.weights.ids.weights);
    return {};
  }

  Status decode_field(const BoundColumn& what, CellKind kind, const RowSlice& slice, bool follows,
                      std::unique_ptr<FieldCursor>& cursor, ColumnCells& cells) {
    const GroupPlace place = groups_[static_cast<size_t>(slice.group)];
    RowGroupFile& file = *files_[place.file];
    if (!follows || cursor == nullptr) {
      const int64_t rows = file.row_groups()[static_cast<size_t>(place.group)];
      RECMILL_ASSIGN_OR_RETURN(cursor, file.open(place.group, what, kind, rows > slice.rows));
      if (slice.begin > 0) RECMILL_RETURN_IF_ERROR(cursor->skip(slice.begin));
    }
    RECMILL_RETURN_IF_ERROR(cursor->read(slice.rows, cells));
    RECMILL_CHECK(cells.rows(kind) == slice.rows, what.spec.name);
    return {};
  }

  void hand_over(size_t column, const std::vector<uint32_t>& rows, ColumnBatch& batch) {
    const BoundColumn& what = schema().columns[column];
    const auto target = static_cast<size_t>(what.target);
    ColumnCells& cells = columns_[column].cells;
    switch (what.spec.role) {
      case ColumnRole::label:
        return take(cells.numbers, rows, batch.labels);
      case ColumnRole::dense:
        return take(cells.numbers, rows, batch.dense[target]);
      case ColumnRole::id:
        return take(cells.ids, rows, batch.ids[target]);
      case ColumnRole::sample_weight:
        return take(cells.numbers, rows, batch.sample_weights);
      case ColumnRole::group:
        return take(cells.groups, rows, batch.groups);
      case ColumnRole::time:
        return take(cells.times, rows, batch.times);
      case ColumnRole::ignore:
        return;
    }
  }

  const std::vector<std::unique_ptr<RowGroupFile>> files_;
  Pool& pool_;
  std::vector<GroupPlace> groups_;  // of all files, in order
  std::vector<ColumnState> columns_;
  int64_t group_ = -1;  // where the cursors stand
  int64_t next_row_ = 0;
};

/// A thread that decodes the slices of an order ahead of who takes them.
class SliceQueue {
 public:
  using Decode = std::function<Status(int64_t index, ColumnBatch& batch)>;

  SliceQueue(int64_t ahead, Decode decode) : ahead_(ahead), decode_(std::move(decode)) {}
  ~SliceQueue() { stop(); }

  /// Starts anew at slice `index` of `count`.
  void start(int64_t index, int64_t count) {
    stop();
    head_ = next_ = index;
    count_ = count;
    stopping_ = false;
    for (auto& slice : ready_) spare_.push_back(std::move(slice));
    ready_.clear();
    thread_ = std::thread([this] { run(); });
  }

  /// True when slice `index` is there or will be without start().
  bool will_have(int64_t index) const {
    return thread_.joinable() && index >= head_ && index <= head_ + ahead_;
  }

  /// Gives up the slices before `index` and waits for it; will_have(index). Valid until the next
  /// call.
  Result<const ColumnBatch*> wait_for(int64_t index) {
    std::unique_lock lock(mutex_);
    for (;;) {
      while (head_ < index && !ready_.empty()) give_up_front();
      if (head_ == index && !ready_.empty()) break;
      changed_.wait(lock);
    }
    if (!ready_.front()->status.ok()) return ready_.front()->status;
    return &ready_.front()->batch;
  }

  void stop() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  struct Decoded {
    ColumnBatch batch;
    Status status;
  };

  void give_up_front() {
    spare_.push_back(std::move(ready_.front()));
    ready_.pop_front();
    ++head_;
    changed_.notify_all();
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (!stopping_ && next_ < count_) {
      if (next_ - head_ > ahead_) {
        changed_.wait(lock);
        continue;
      }
      auto slice = std::make_unique<Decoded>();
      if (!spare_.empty()) {
        slice = std::move(spare_.back());
        spare_.pop_back();
      }
      lock.unlock();
      slice->status = decode_(next_, slice->batch);
      lock.lock();
      ready_.push_back(std::move(slice));
      ++next_;
      changed_.notify_all();
    }
  }

  const int64_t ahead_;
  const Decode decode_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Decoded>> ready_;  // slices [head_, next_)
  std::vector<std::unique_ptr<Decoded>> spare_;
  int64_t head_ = 0;   // written by the taker alone
  int64_t next_ = 0;   // to decode
  int64_t count_ = 0;  // slices of the order
  bool stopping_ = false;
};

class ColumnarReader final : public Reader {
 public:
  ColumnarReader(const ColumnarOptions& options, std::vector<std::unique_ptr<RowGroupFile>> files,
                 Pool& pool)
      : options_(options),
        decoder_(std::move(files), pool),
        queue_(std::max<int64_t>(1, options.prefetch),
               [this](int64_t index, ColumnBatch& batch) { return decode(index, batch); }) {
    std::vector<int64_t> group_rows = decoder_.group_rows();
    int64_t left = options.rows > 0 ? options.rows : std::numeric_limits<int64_t>::max();
    for (int64_t& rows : group_rows) {
      rows = std::min(rows, left);
      left -= rows;
    }
    data_slices_ = cut_row_groups(group_rows, options.window);
    rows_ = std::accumulate(group_rows.begin(), group_rows.end(), int64_t{0});
  }

  const DataSchema& schema() const override { return decoder_.schema().schema; }
  Result<int64_t> rows() override { return rows_; }
  ReaderCounts counts() const override { return counts_; }

  Status read(int64_t epoch, int64_t first, int64_t count, ColumnBatch& batch) override {
    const int64_t end = std::max(first, std::min(first + count, rows_));
    make_room(schema(), end - first, batch);
    batch.first = first;
    for (int64_t position = first; position < end;) {
      if (epoch != epoch_) start_epoch(epoch);
      const auto after = std::ranges::upper_bound(slices_, position, {}, &RowSlice::position);
      const int64_t index = after - slices_.begin() - 1;
      if (!queue_.will_have(index)) queue_.start(index, static_cast<int64_t>(slices_.size()));
      RECMILL_ASSIGN_OR_RETURN(const ColumnBatch* decoded, queue_.wait_for(index));
      const RowSlice& slice = slices_[static_cast<size_t>(index)];
      const int64_t taken = std::min(end, slice.position + slice.kept) - position;
      copy_rows(*decoded, position - slice.position, taken, batch, position - first);
      position += taken;
    }
    counts_.rows += batch.samples;
    return {};
  }

 private:
  void start_epoch(int64_t epoch) {
    queue_.stop();
    epoch_ = epoch;
    slices_ = slices_of_epoch(data_slices_, options_.shuffle, options_.seed, epoch);
  }

  /// Runs on the queue's thread, which is stopped before epoch_ or slices_ change.
  Status decode(int64_t index, ColumnBatch& batch) {
    const RowSlice& slice = slices_[static_cast<size_t>(index)];
    if (options_.shuffle == ShuffleKind::none) return decoder_.decode(slice, {}, batch);
    return decoder_.decode(
        slice,
        order_in_window(slice.rows, options_.shuffle, options_.seed, epoch_, slice.first_row),
        batch);
  }

  const ColumnarOptions options_;
  SliceDecoder decoder_;
  std::vector<RowSlice> data_slices_;  // in the order of the data
  std::vector<RowSlice> slices_;       // in the order of epoch_
  int64_t rows_ = 0;
  int64_t epoch_ = -1;
  ReaderCounts counts_;
  SliceQueue queue_;  // last: its thread uses what is above
};

}  // namespace

Result<std::unique_ptr<Reader>> read_row_groups(const ColumnarOptions& options,
                                                std::vector<std::unique_ptr<RowGroupFile>> files,
                                                Pool& pool) {
  RECMILL_CHECK(!files.empty() && options.window > 0);
  for (const auto& file : files) {
    if (file->columns().schema == files[0]->columns().schema) continue;
    return Status::BadRequest(file->path() + ": its columns are not those of " + files[0]->path() +
                              " (names, bags or weights differ)");
  }
  return std::unique_ptr<Reader>(new ColumnarReader(options, std::move(files), pool));
}

}  // namespace recmill::reader
