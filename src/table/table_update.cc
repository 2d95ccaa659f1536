// SPDX-License-Identifier: Apache-2.0
#include "table/table_update.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "base/status.h"
#include "table/apply_optimizer.h"

namespace recmill::table {
namespace {

constexpr int64_t kBlockRows =
    16;  // completed before they are applied, so that rows have time to come
constexpr int64_t kBlockFloats = 4 * 1024;  // row gradients that wait in a cache to be applied

/// A stretch of one update's rows.
struct Task {
  size_t update;
  int64_t begin;
  int64_t end;
};

/// Cuts rows, row i with begins[i + 1] - begins[i] addends, into stretches of `grain` addends and
/// rows.
void cut(size_t update, std::span<const int64_t> begins, int64_t grain, std::vector<Task>& tasks) {
  const int64_t rows = static_cast<int64_t>(begins.size()) - 1;
  for (int64_t begin = 0; begin < rows;) {
    // The first row whose end is `grain` addends and rows away, or the next one.
    int64_t low = begin + 1, high = rows;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      const bool enough = begins[middle] - begins[begin] + (middle - begin) >= grain;
      (enough ? high : low) = enough ? middle : middle + 1;
    }
    tasks.push_back({update, begin, low});
    begin = low;
  }
}

/// What the random numbers of a table's rows are keyed by: its rows, or the names of its slots.
class RowRounding {
 public:
  RowRounding(const EmbeddingTable& table, const SlotNames* names, const RowStep& step)
      : of_table_(rounding_of(table, step)) {
    if (names == nullptr || table.spec().precision == RowPrecision::float32) return;
    names_ = names;
    of_tables_ = names_->roundings(step);
  }

  /// Sets keys and random numbers of the range's slots, which have `rows`; valid until the next
  /// call.
  void set(kernels::ApplyRange& range, const int64_t* rows) {
    range.keys = rows;
    range.rounding = of_table_;
    if (names_ == nullptr) return;
    keys_.clear();
    of_rows_.clear();
    for (int64_t i = 0; i < range.count; ++i) {
      keys_.push_back(names_->row(range.slots[i]));
      of_rows_.push_back(of_tables_[names_->table(range.slots[i])]);
    }
    range.keys = keys_.data();
    range.roundings = of_rows_.data();
  }

 private:
  const Random of_table_;
  const SlotNames* names_ = nullptr;
  std::vector<Random> of_tables_;
  std::vector<int64_t> keys_;
  std::vector<Random> of_rows_;
};

void update_stretch(const TableUpdate& update, const Task& task, const RowStep& step) {
  static const kernels::RowUpdateKernel untuned =
      *kernels::row_update_kernel({"distinct_rows", {{"block", 16}, {"ahead", 16}}});
  const auto& values = (update.kernel == nullptr ? untuned : *update.kernel).values;
  const int64_t block = values[0], ahead = values[1];
  const EmbeddingTable& table = *update.table;
  const int64_t dim = table.rows().dim;
  const kernels::GradientSource source{update.distinct, update.gradients, dim, ahead};
  const SliceRange whole{0, update.slices};
  RowRounding rounding(table, update.names, step);
  std::vector<float> sums(block * dim);
  for (int64_t begin = task.begin; begin < task.end; begin += block) {
    const int64_t count = std::min(block, task.end - begin);
    kernels::sum_gradients(source, {nullptr, begin, count}, {&whole, 1}, sums.data());
    kernels::ApplyRange range;
    range.rows = table.rows();
    range.slots = update.distinct->rows.data() + begin;
    range.gradients = sums.data();
    range.count = count;
    range.following = task.end - begin - count;
    rounding.set(range, range.slots);
    apply_optimizer(table.spec().optimizer, step, range);
  }
}

/// Fetches what will be updated soon; apply_optimizer() fetches what comes behind.
void fetch_rows(const kernels::RowStorage& storage, std::span<const int64_t> rows) {
  for (const int64_t row : rows) {
    for (int64_t at = 0; at < storage.stride; at += 64)
      __builtin_prefetch(storage.record(row) + at, 1);
    if (storage.row_state != nullptr) __builtin_prefetch(storage.row_state + row, 1);
  }
}

/// Rows [begin, end) of those that were folded.
void update_folded(const TableUpdate& update, kernels::RowSums& folded, int64_t begin, int64_t end,
                   const RowStep& step) {
  const EmbeddingTable& table = *update.table;
  const int64_t dim = table.rows().dim;
  const int64_t block = std::clamp<int64_t>(kBlockFloats / dim, 4, 64);
  RowRounding rounding(table, update.names, step);
  std::vector<float> sums(block * dim);
  fetch_rows(table.rows(), folded.rows().subspan(begin, std::min(block, end - begin)));
  for (; begin < end; begin += block) {
    const int64_t count = std::min(block, end - begin);
    folded.take(begin, count, sums.data());
    kernels::ApplyRange range;
    range.rows = table.rows();
    range.slots = folded.rows().data() + begin;
    range.gradients = sums.data();
    range.count = count;
    range.following = end - begin - count;
    rounding.set(range, range.slots);
    apply_optimizer(table.spec().optimizer, step, range);
  }
}

void update_stretch(const TableParts& update, const Task& task, const RowStep& step) {
  const EmbeddingTable& table = *update.table;
  const int64_t dim = table.rows().dim;
  RowRounding rounding(table, update.names, step);
  std::vector<float> sums(kBlockRows * dim);
  for (int64_t begin = task.begin; begin < task.end; begin += kBlockRows) {
    const int64_t count = std::min(kBlockRows, task.end - begin);
    kernels::sum_parts(update.parts, begin, count, dim, sums.data());
    kernels::ApplyRange range;
    range.rows = table.rows();
    range.slots = update.slots.data() + begin;
    range.gradients = sums.data();
    range.count = count;
    rounding.set(range, update.rows.data() + begin);
    range.first_element = table.columns().first;
    if (!update.mean_squares.empty()) range.mean_squares = update.mean_squares.data() + begin;
    range.following = task.end - begin - count;
    apply_optimizer(table.spec().optimizer, step, range);
  }
}

/// The rows of updates[which[f]], folded[f], cut into stretches for all threads.
void apply_folded(std::span<const TableUpdate> updates, std::span<const size_t> which,
                  std::span<const std::unique_ptr<kernels::RowSums>> folded, int64_t task_floats,
                  const RowStep& step, ThreadPool& pool) {
  struct Stretch {
    size_t number;
    int64_t begin;
    int64_t end;
  };
  std::vector<Stretch> stretches;
  for (size_t f = 0; f < which.size(); ++f) {
    const auto rows = static_cast<int64_t>(folded[f]->rows().size());
    const int64_t grain =
        std::max<int64_t>(task_floats / 2 / updates[which[f]].table->rows().dim, 64);
    for (int64_t begin = 0; begin < rows; begin += grain)
      stretches.push_back({f, begin, std::min(begin + grain, rows)});
  }
  pool.run(static_cast<int64_t>(stretches.size()), [&](int64_t t) {
    const auto& [f, begin, end] = stretches[t];
    update_folded(updates[which[f]], *folded[f], begin, end, step);
  });
}

}  // namespace

int64_t TableUpdater::update(std::span<const TableUpdate> updates, const RowStep& step,
                             ThreadPool& pool) {
  std::vector<Task> stretches;
  std::vector<size_t> from_bags;
  std::vector<int64_t> floats(updates.size());
  int64_t all_floats = 0;
  std::atomic<int64_t> updated = 0;
  for (size_t u = 0; u < updates.size(); ++u) {
    const TableUpdate& update = updates[u];
    RECMILL_CHECK(update.table->share().ranks() == 1, update.table->spec().name);
    if (update.table->spec().frozen) continue;
    const bool distinct = update.kernel == nullptr || update.kernel->needs_distinct_rows();
    const int64_t lookups = distinct ? update.distinct->lookups() : update.bags.lookups();
    if (lookups == 0) continue;
    floats[u] = lookups * update.table->rows().dim;
    all_floats += floats[u];
    if (distinct) {
      updated += update.distinct->count();
      cut(u, update.distinct->begins, std::max<int64_t>(task_floats_ / update.table->rows().dim, 1),
          stretches);
    } else {
      from_bags.push_back(u);
    }
  }
  // A table that would keep one thread busy for long is folded by one, then applied by all.
  const auto shared = std::stable_partition(from_bags.begin(), from_bags.end(), [&](size_t u) {
    return pool.threads() > 1 && floats[u] * 4 * pool.threads() > all_floats;
  });
  const auto folds = shared - from_bags.begin();
  const auto tables = static_cast<int64_t>(from_bags.size());
  std::vector<std::unique_ptr<kernels::RowSums>> folded(folds);
  pool.run(tables + static_cast<int64_t>(stretches.size()), [&](int64_t task) {
    if (task >= tables) {
      const Task& stretch = stretches[task - tables];
      return update_stretch(updates[stretch.update], stretch, step);
    }
    const TableUpdate& update = updates[from_bags[task]];
    auto sums = stock_.take(*update.kernel->of);
    sums->fold(update.bags, update.kernel->values);
    const auto rows = static_cast<int64_t>(sums->rows().size());
    updated += rows;
    if (task < folds) {
      folded[task] = std::move(sums);
    } else {
      update_folded(update, *sums, 0, rows, step);
      stock_.give_back(*update.kernel->of, std::move(sums));
    }
  });
  apply_folded(updates, {from_bags.data(), static_cast<size_t>(folds)}, folded, task_floats_, step,
               pool);
  for (int64_t f = 0; f < folds; ++f)
    stock_.give_back(*updates[from_bags[f]].kernel->of, std::move(folded[f]));
  return updated;
}

void update_tables(std::span<const TableUpdate> updates, const RowStep& step, ThreadPool& pool) {
  TableUpdater().update(updates, step, pool);
}

void update_tables_from_parts(std::span<const TableParts> updates, const RowStep& step,
                              ThreadPool& pool) {
  std::vector<Task> tasks;
  for (size_t u = 0; u < updates.size(); ++u) {
    const TableParts& update = updates[u];
    if (!update.table->spec().frozen)
      cut(u, update.parts.begins, std::max<int64_t>(kTaskFloats / update.table->rows().dim, 1),
          tasks);
  }
  pool.run(static_cast<int64_t>(tasks.size()),
           [&](int64_t t) { update_stretch(updates[tasks[t].update], tasks[t], step); });
}

}  // namespace recmill::table
