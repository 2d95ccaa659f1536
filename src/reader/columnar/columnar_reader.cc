// SPDX-License-Identifier: Apache-2.0
#include "reader/columnar/columnar_reader.h"

#include <arrow/type_traits.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "reader/batch_rows.h"
#include "reader/columnar/arrow_ipc_reader.h"
#include "reader/columnar/orc_reader.h"
#include "reader/columnar/parquet_reader.h"
#include "reader/columnar/slice_source.h"
#include "reader/data_files.h"

namespace recmill::reader {
namespace {

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
  ColumnarReader(const DataOptions& options, Subset subset, uint64_t seed, Files& files,
                 SliceSource source)
      : options_(options),
        shuffle_(subset == Subset::train ? options.shuffle.kind : ShuffleKind::none),
        seed_(seed),
        files_(files),
        source_(std::move(source)),
        queue_(std::max<int64_t>(1, options.prefetch),
               [this](int64_t index, ColumnBatch& batch) { return decode(index, batch); }) {}

  const DataSchema& schema() const override { return source_.schema().schema; }
  Result<int64_t> rows() override {
    RECMILL_RETURN_IF_ERROR(find_rows());
    return rows_;
  }
  KeySource key_source() const override { return source_.key_source(); }
  ReaderCounts counts() const override {
    return {handed_out_, source_.bad_rows(), 0, row_groups_.load()};
  }

  Result<std::vector<int64_t>> starts() override {
    RECMILL_RETURN_IF_ERROR(find_rows());
    std::vector<int64_t> starts;
    int64_t group = -1;
    for (const RowSlice& slice : source_.slices())
      if (std::exchange(group, slice.group) != slice.group) starts.push_back(slice.position);
    return starts;
  }

  Result<bool> keep_only(std::span<const RowRange> ranges) override {
    RECMILL_RETURN_IF_ERROR(find_rows());
    RECMILL_CHECK(shuffle_ == ShuffleKind::none && epoch_ < 0);
    source_.keep_only(ranges);
    rows_ = source_.rows();
    return true;
  }

  Status read(int64_t epoch, int64_t first, int64_t count, ColumnBatch& batch) override {
    RECMILL_RETURN_IF_ERROR(find_rows());
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
    handed_out_ += batch.samples;
    return {};
  }

 private:
  // Tells which rows count, at the first call.
  Status find_rows() {
    const std::lock_guard lock(finding_);
    if (rows_ >= 0) return {};
    RECMILL_RETURN_IF_ERROR(source_.find_rows(files_, options_.cache, options_.rows));
    rows_ = source_.rows();
    return {};
  }

  void start_epoch(int64_t epoch) {
    queue_.stop();
    epoch_ = epoch;
    decoded_group_ = -1;
    slices_ = slices_of_epoch(source_.slices(), shuffle_, seed_, epoch);
  }

  /// Runs on the queue's thread, which is stopped before epoch_ or slices_ change.
  Status decode(int64_t index, ColumnBatch& batch) {
    const RowSlice& slice = slices_[static_cast<size_t>(index)];
    if (std::exchange(decoded_group_, slice.group) != slice.group) ++row_groups_;
    if (shuffle_ == ShuffleKind::none) return source_.load(slice, {}, batch);
    return source_.load(
        slice, order_in_window(slice.kept, shuffle_, seed_, epoch_, slice.first_row), batch);
  }

  const DataOptions options_;
  const ShuffleKind shuffle_;
  const uint64_t seed_;
  Files& files_;
  SliceSource source_;
  std::vector<RowSlice> slices_;  // in the order of epoch_
  std::mutex finding_;
  int64_t rows_ = -1;  // before they are found
  int64_t epoch_ = -1;
  int64_t handed_out_ = 0;
  int64_t decoded_group_ = -1;  // of the slice that was decoded last; the queue's thread's
  std::atomic<int64_t> row_groups_ = 0;
  SliceQueue queue_;  // last: its thread uses what is above
};

bool same_columns(const ColumnarSchema& one, const ColumnarSchema& other) {
  const auto same = [](const BoundColumn& a, const BoundColumn& b) {
    return a.spec.name == b.spec.name && a.spec.role == b.spec.role && a.kind == b.kind;
  };
  return one.schema == other.schema && std::ranges::equal(one.columns, other.columns, same);
}

// Whether the cells of column `key` are integers. All files must have one of that name.
Result<bool> is_integer_key(const std::vector<BoundFile>& bound, const std::string& key) {
  if (key.empty()) return false;
  bool integers = true;
  for (const BoundFile& of : bound) {
    const arrow::Schema& fields = of.file->fields();
    const int field = fields.GetFieldIndex(key);
    if (field < 0)
      return Status::BadRequest("--key: " + of.file->path() + " has no column '" + key + "'");
    const arrow::DataType& type = *fields.field(field)->type();
    if (type.num_fields() > 0)
      return Status::BadRequest("--key: column '" + key + "' is " + type.ToString() +
                                ", which is neither text nor a number");
    integers &= arrow::is_integer(type.id());
  }
  return integers;
}

}  // namespace

Result<std::unique_ptr<Reader>> open_columnar_reader(const DataOptions& options, Subset subset,
                                                     uint64_t seed, ThreadPool& pool,
                                                     Files& files) {
  RECMILL_ASSIGN_OR_RETURN(const LabelRule label, LabelRule::make(options.label));
  const bool by_hash = subset != Subset::all && options.split.by == SplitKind::hash;
  RECMILL_ASSIGN_OR_RETURN(const auto paths, data_files(options, subset, files));
  std::vector<BoundFile> bound;
  for (const std::string& path : paths) {
    BoundFile& next = bound.emplace_back();
    RECMILL_ASSIGN_OR_RETURN(next.file, open_row_groups(options.format, path, files));
    RECMILL_ASSIGN_OR_RETURN(next.columns,
                             bind_columns(options.columns, by_hash ? options.split.column : "",
                                          options.scored.labels, next.file->fields(), path));
    for (BoundColumn& column : next.columns.columns) {
      if (column.spec.role == ColumnRole::label) column.label = label;
    }
    if (same_columns(next.columns, bound[0].columns)) continue;
    return Status::BadRequest(path + ": its columns are not those of " + paths[0] +
                              " (names, roles, bags or weights differ)");
  }
  RECMILL_ASSIGN_OR_RETURN(auto rule, SliceRule::make(options, subset, bound[0].columns));
  RECMILL_ASSIGN_OR_RETURN(rule.key_is_integer, is_integer_key(bound, options.scored.key));
  return std::unique_ptr<Reader>(new ColumnarReader(
      options, subset, seed, files, SliceSource(std::move(bound), std::move(rule), pool)));
}

Result<std::unique_ptr<RowGroupFile>> open_row_groups(DataFormat format, const std::string& path,
                                                      Files& files) {
  switch (format) {
    case DataFormat::parquet:
      return open_parquet(files, path);
    case DataFormat::orc:
      return open_orc(files, path);
    default:
      return open_arrow_ipc(files, path);
  }
}

}  // namespace recmill::reader
