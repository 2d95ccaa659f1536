// SPDX-License-Identifier: Apache-2.0
#include "reader/text/behavior_log_reader.h"

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <tuple>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "reader/batch_rows.h"
#include "reader/data_files.h"
#include "reader/row_order.h"
#include "reader/row_split.h"
#include "reader/text/text_pass.h"

namespace recmill::reader {
namespace {

constexpr int64_t kRowsAtOnce = 65536;

struct Event {
  uint64_t user, item, category;
  int64_t time;
};

struct Item {
  uint64_t id, category;
};

// What the log holds, once it is in memory.
struct BehaviorLog {
  std::vector<Event> events;     // by user, then by time
  std::vector<uint32_t> number;  // [events], of an event among its user's
  std::vector<Item> items;       // distinct, by id; the category of the first event
  int64_t bad_rows = 0;
  int64_t passed_over = 0;  // outside the configured times
};

TextLayout log_layout(const DataOptions& options) {
  TextLayout layout;
  layout.delimiter = options.delimiter.empty() ? "," : options.delimiter;
  const auto add = [&](const char* name, ColumnRole role, IdText id_text, int target) {
    TextColumn column;
    column.spec.name = name;
    column.spec.role = role;
    column.spec.id_text = id_text;
    column.target = target;
    layout.columns.push_back(column);
  };
  add("user", ColumnRole::group, IdText::integer, 0);
  add("item", ColumnRole::id, IdText::integer, 0);
  add("category", ColumnRole::id, IdText::integer, 1);
  add("behavior", ColumnRole::id, IdText::text, 2);
  add("time", ColumnRole::time, IdText::integer, 0);
  layout.schema.ids = {"item", "category", "behavior"};
  layout.schema.has_group = layout.schema.has_time = true;
  return layout;
}

class LogLoader {
 public:
  LogLoader(const BehaviorLogOptions& options, RowSource& source, ThreadPool& pool)
      : options_(options), source_(source), pool_(pool), parser_({source.layout()}) {
    for (const std::string& name : options.behaviors) kept_.push_back(hash_bytes(name));
  }

  Result<BehaviorLog> load() {
    RECMILL_RETURN_IF_ERROR(parse_all(source_, parser_, kRowsAtOnce, pool_,
                                      [this](const ColumnBatch& batch, const TextWindow& window) {
                                        return take(batch, window);
                                      }));
    log_.bad_rows = source_.bad_rows();
    sort();
    return std::move(log_);
  }

 private:
  Status take(const ColumnBatch& batch, const TextWindow& window) {
    for (int64_t i = 0; i < batch.samples; ++i) {
      for (const size_t column : {0, 1}) {
        const auto& offsets = batch.ids[column].offsets;
        if (offsets[i] == offsets[i + 1]) {
          return Status::Failed(window.place_of(window.rows[i]) + ": column " +
                                parser_.schema().ids[column] + ": no value");
        }
      }
      const auto id = [&](size_t c) { return batch.ids[c].ids[batch.ids[c].offsets[i]]; };
      const bool named = batch.ids[2].offsets[i] != batch.ids[2].offsets[i + 1];
      const bool kept =
          kept_.empty() || (named && std::find(kept_.begin(), kept_.end(), id(2)) != kept_.end());
      if (!kept) continue;
      const int64_t time = batch.times[i];
      if (time < options_.first_time || (options_.last_time > 0 && time > options_.last_time)) {
        ++log_.passed_over;
        continue;
      }
      if (static_cast<int64_t>(log_.events.size()) == options_.max_events) {
        return Status::BadRequest(window.place_of(window.rows[i]) +
                                  ": the log has more events than data.behavior_log.max_events = " +
                                  std::to_string(options_.max_events) +
                                  " (all are held in memory, some 64 bytes each)");
      }
      log_.events.push_back({batch.groups[i], id(0), id(1), time});
    }
    return {};
  }

  void sort() {
    for (const Event& event : log_.events) log_.items.push_back({event.item, event.category});
    std::stable_sort(log_.items.begin(), log_.items.end(),
                     [](const Item& a, const Item& b) { return a.id < b.id; });
    const auto last = std::unique(log_.items.begin(), log_.items.end(),
                                  [](const Item& a, const Item& b) { return a.id == b.id; });
    log_.items.erase(last, log_.items.end());
    log_.items.shrink_to_fit();
    std::stable_sort(log_.events.begin(), log_.events.end(), [](const Event& a, const Event& b) {
      return std::tie(a.user, a.time) < std::tie(b.user, b.time);
    });
    log_.number.resize(log_.events.size());
    for (size_t i = 1; i < log_.events.size(); ++i) {
      const bool same = log_.events[i].user == log_.events[i - 1].user;
      log_.number[i] = same ? log_.number[i - 1] + 1 : 0;
    }
  }

  const BehaviorLogOptions& options_;
  RowSource& source_;
  ThreadPool& pool_;
  TextParser parser_;
  std::vector<uint64_t> kept_;  // hashes of the behaviours that are read; empty: all
  BehaviorLog log_;
};

// What data.behavior_log.columns may name. `user` is an id column, the others are dense.
enum class LogColumn { user, seconds_since_last, history_length, item_seen, category_seen };
constexpr std::array kLogColumns{
    std::pair{LogColumn::user, std::string_view{"user"}},
    std::pair{LogColumn::seconds_since_last, std::string_view{"seconds_since_last"}},
    std::pair{LogColumn::history_length, std::string_view{"history_length"}},
    std::pair{LogColumn::item_seen, std::string_view{"item_seen"}},
    std::pair{LogColumn::category_seen, std::string_view{"category_seen"}}};

Result<std::vector<LogColumn>> columns_of(const BehaviorLogOptions& options) {
  std::vector<LogColumn> columns;
  for (const std::string& name : options.columns) {
    const auto* const known =
        std::ranges::find(kLogColumns, name, [](const auto& column) { return column.second; });
    if (known == kLogColumns.end()) {
      return Status::BadRequest(
          "data.behavior_log.columns: must be user, seconds_since_last, history_length, item_seen "
          "or category_seen: '" +
          name + "'");
    }
    if (std::ranges::count(columns, known->first) > 0) {
      return Status::BadRequest("data.behavior_log.columns: '" + name + "' is there twice");
    }
    columns.push_back(known->first);
  }
  return columns;
}

// Events that are targets, in the order of samples.
std::vector<uint64_t> targets_of(const BehaviorLog& log, int64_t minimum_history) {
  std::vector<uint64_t> targets;
  for (size_t i = 0; i < log.events.size(); ++i) {
    if (log.number[i] >= minimum_history) targets.push_back(i);
  }
  std::stable_sort(targets.begin(), targets.end(),
                   [&](uint64_t a, uint64_t b) { return log.events[a].time < log.events[b].time; });
  return targets;
}

// Keeps the targets of a subset; `targets` are in the order of time.
Status keep_subset(RowSplit split, const BehaviorLog& log, std::vector<uint64_t>& targets) {
  if (split.keeps_all() || targets.empty()) return {};
  if (split.lacks_boundary()) {
    const auto rows = static_cast<int64_t>(targets.size());
    const int64_t first = rows_before_evaluation(rows, split.eval_fraction());
    split = split.with_boundary(log.events[targets[static_cast<size_t>(first)]].time);
  }
  const std::string& column = split.column();
  const auto keeps = [&](uint64_t target) {
    const Event& event = log.events[target];
    if (split.by() == SplitKind::time) return split.keeps_time(event.time);
    if (split.by() == SplitKind::fraction || column.empty()) {
      return split.keeps_key(Random::mix(event.user) ^ log.number[target]);
    }
    return split.keeps_key(column == "user"   ? event.user
                           : column == "item" ? event.item
                                              : event.category);
  };
  std::erase_if(targets, [&](uint64_t target) { return !keeps(target); });
  return targets.empty() ? split.empty_side() : Status();
}

class BehaviorLogReader final : public Reader {
 public:
  BehaviorLogReader(const DataOptions& options, Subset subset, RowSplit split, uint64_t seed,
                    ThreadPool& pool, Files& files, std::vector<std::string> paths,
                    const std::vector<LogColumn>& columns)
      : options_(options),
        log_options_(options_.behavior_log),
        split_(std::move(split)),
        shuffle_(subset == Subset::train ? options.shuffle.kind : ShuffleKind::none),
        seed_(seed),
        negatives_(seed, Purpose::negative_items),
        pool_(pool),
        files_(files),
        paths_(std::move(paths)) {
    schema_.ids = {"item", "category", "item_history", "category_history"};
    schema_.bags = {"item_history", "category_history"};
    schema_.has_group = schema_.has_time = true;
    for (size_t i = 0; i < columns.size(); ++i) {
      const bool is_user = columns[i] == LogColumn::user;
      has_user_ = has_user_ || is_user;
      if (!is_user) dense_.push_back(columns[i]);
      (is_user ? schema_.ids : schema_.dense).push_back(log_options_.columns[i]);
    }
  }

  const DataSchema& schema() const override { return schema_; }

  Result<int64_t> rows() override {
    RECMILL_RETURN_IF_ERROR(load());
    return bounds_.back();
  }

  Status read(int64_t epoch, int64_t first, int64_t count, ColumnBatch& batch) override {
    RECMILL_RETURN_IF_ERROR(load());
    if (epoch != epoch_) {
      order_ = order_of_epoch(bounds_, shuffle_, seed_, epoch);
      epoch_ = epoch;
      slot_ = -1;
    }
    const int64_t end = std::min(first + count, order_.rows());
    clear(batch);
    batch.first = first;
    for (int64_t position = first; position < end; ++position) append(row_at(position), batch);
    batch.samples = std::max<int64_t>(end - first, 0);
    handed_out_ += batch.samples;
    return {};
  }

  ReaderCounts counts() const override {
    ReaderCounts counts;
    counts.rows = handed_out_;
    counts.bad_rows = log_.bad_rows;
    counts.passed_over = log_.passed_over;
    return counts;
  }

 private:
  // Reads the log, at the first call.
  Status load() {
    const std::lock_guard lock(loading_);
    if (!bounds_.empty()) return {};
    RowRule rule;
    rule.layout = log_layout(options_);
    rule.on_bad_row = options_.on_bad_row;
    rule.bad_row_limit = options_.bad_row_limit;
    RECMILL_ASSIGN_OR_RETURN(
        auto source, RowSource::open(files_, paths_, options_.cache,
                                     FileRules::same(std::move(rule), paths_.size()), pool_));
    RECMILL_ASSIGN_OR_RETURN(log_, LogLoader(log_options_, *source, pool_).load());
    targets_ = targets_of(log_, log_options_.minimum_history);
    RECMILL_RETURN_IF_ERROR(keep_subset(split_, log_, targets_));
    if (log_.items.size() < 2 && log_options_.negatives > 0 && !targets_.empty()) {
      return Status::Failed(paths_[0] + ": has one item only, so there are no negatives");
    }
    auto rows = static_cast<int64_t>(targets_.size()) * (1 + log_options_.negatives);
    if (options_.rows > 0) rows = std::min(rows, options_.rows);
    bounds_ = equal_windows(rows, options_.shuffle.window);
    return {};
  }

  // The sample in file order that is at a position of the epoch.
  int64_t row_at(int64_t position) {
    if (shuffle_ == ShuffleKind::none) return position;
    const int64_t slot = order_.slot_of(position);
    const int64_t window = order_.windows[slot];
    if (slot != slot_) {
      in_window_ =
          order_in_window(bounds_[window + 1] - bounds_[window], shuffle_, seed_, epoch_, window);
      slot_ = slot;
    }
    return bounds_[window] + in_window_[position - order_.starts[slot]];
  }

  void clear(ColumnBatch& batch) const {
    batch.dense.resize(dense_.size());
    batch.ids.resize(schema_.ids.size());
    clear_samples(batch);
  }

  // A random item that is not the target's.
  const Item& negative(uint64_t target, int64_t k) const {
    const Event& event = log_.events[target];
    const uint64_t key = Random::mix(event.user) ^ log_.number[target];
    const uint64_t size = log_.items.size();
    const uint64_t at = negatives_.below(size, key, static_cast<uint64_t>(k));
    return log_.items[log_.items[at].id == event.item ? (at + 1) % size : at];
  }

  void append(int64_t row, ColumnBatch& batch) const {
    const uint64_t target = targets_[row / (1 + log_options_.negatives)];
    const int64_t k = row % (1 + log_options_.negatives);
    const Event& event = log_.events[target];
    const Item item = k == 0 ? Item{event.item, event.category} : negative(target, k - 1);
    batch.labels.push_back(k == 0 ? 1.0f : 0.0f);
    batch.groups.push_back(event.user);
    batch.times.push_back(event.time);
    batch.ids[0].ids.push_back(item.id);
    batch.ids[1].ids.push_back(item.category);
    const auto length = std::min<int64_t>(log_.number[target], log_options_.sequence_length);
    for (uint64_t i = target - length; i < target; ++i) {
      batch.ids[2].ids.push_back(log_.events[i].item);
      batch.ids[3].ids.push_back(log_.events[i].category);
    }
    if (has_user_) batch.ids[4].ids.push_back(event.user);
    for (IdColumn& column : batch.ids) {
      column.offsets.push_back(static_cast<int64_t>(column.ids.size()));
    }
    for (size_t c = 0; c < dense_.size(); ++c) {
      batch.dense[c].push_back(dense_value(dense_[c], target, item));
    }
  }

  // The value of a dense column beside an item in the place of the target's.
  float dense_value(LogColumn column, uint64_t target, const Item& item) const {
    const int64_t before = log_.number[target];
    const auto history = std::span(log_.events)
                             .subspan(target - std::min(before, log_options_.sequence_length))
                             .first(std::min(before, log_options_.sequence_length));
    switch (column) {
      case LogColumn::seconds_since_last:
        if (before == 0) return std::numeric_limits<float>::quiet_NaN();
        return static_cast<float>(log_.events[target].time - log_.events[target - 1].time);
      case LogColumn::history_length:
        return static_cast<float>(before);
      case LogColumn::item_seen:
        return static_cast<float>(std::ranges::count(history, item.id, &Event::item));
      default:
        return static_cast<float>(std::ranges::count(history, item.category, &Event::category));
    }
  }

  const DataOptions options_;
  const BehaviorLogOptions& log_options_;
  const RowSplit split_;
  const ShuffleKind shuffle_;
  const uint64_t seed_;
  const Random negatives_;
  ThreadPool& pool_;
  Files& files_;
  const std::vector<std::string> paths_;
  DataSchema schema_;
  bool has_user_ = false;
  std::vector<LogColumn> dense_;  // [schema_.dense]

  std::mutex loading_;
  BehaviorLog log_;
  std::vector<uint64_t> targets_;  // events, in the order of samples
  std::vector<int64_t> bounds_;    // of windows of samples; empty before the log is read
  EpochOrder order_;
  int64_t epoch_ = -1, slot_ = -1;
  std::vector<uint32_t> in_window_;  // order of the window in slot_
  int64_t handed_out_ = 0;
};

Status check_split(const SplitOptions& split) {
  if (split.by != SplitKind::hash || split.column.empty() || split.column == "user" ||
      split.column == "item" || split.column == "category") {
    return {};
  }
  return Status::BadRequest("data.split.column: must be user, item or category: " + split.column);
}

}  // namespace

Result<std::unique_ptr<Reader>> open_behavior_log(const DataOptions& options, Subset subset,
                                                  uint64_t seed, ThreadPool& pool, Files& files) {
  RECMILL_RETURN_IF_ERROR(check_split(options.split));
  RECMILL_ASSIGN_OR_RETURN(auto paths, data_files(options, subset, files));
  RECMILL_ASSIGN_OR_RETURN(const auto columns, columns_of(options.behavior_log));
  RECMILL_ASSIGN_OR_RETURN(const auto split, RowSplit::make(options.split, subset));
  return std::unique_ptr<Reader>(
      new BehaviorLogReader(options, subset, split, seed, pool, files, std::move(paths), columns));
}

}  // namespace recmill::reader
