// SPDX-License-Identifier: Apache-2.0
#include "table/table_update.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/status.h"
#include "table/apply_rows.h"

namespace recmill::table {
namespace {

constexpr int64_t kBlockRows =
    16;  // summed before they are applied, so that rows have time to come
constexpr int64_t kTaskFloats = 64 * 1024;  // gradients and weights that one task works through

/// A stretch of one update's rows.
struct Task {
  size_t update;
  int64_t begin;
  int64_t end;
};

/// Cuts `rows` rows, row i with begins[i + 1] - begins[i] addends, into stretches of like cost.
void cut(size_t update, std::span<const int64_t> begins, int64_t rows, int64_t dim,
         std::vector<Task>& tasks) {
  const int64_t grain = std::max<int64_t>(kTaskFloats / dim, 1);
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

void update_stretch(const TableUpdate& update, const Task& task, const RowStep& step) {
  const EmbeddingTable& table = *update.table;
  const int64_t dim = table.rows().dim;
  const kernels::GradientSource source{update.distinct, update.gradients, dim};
  const ShardRange whole{0, update.shards};
  const Random rounding = rounding_of(table, step);
  std::vector<float> sums(kBlockRows * dim);
  for (int64_t begin = task.begin; begin < task.end; begin += kBlockRows) {
    const int64_t count = std::min(kBlockRows, task.end - begin);
    const int64_t* rows = update.distinct->rows.data() + begin;
    kernels::sum_gradients(source, {nullptr, begin, count}, {&whole, 1}, sums.data());
    apply_rows(table.spec().optimizer, step,
               {table.rows(), rows, rows, sums.data(), count, rounding, task.end - begin - count});
  }
}

void update_stretch(const TableParts& update, const Task& task, const RowStep& step) {
  const EmbeddingTable& table = *update.table;
  const int64_t dim = table.rows().dim;
  const Random rounding = rounding_of(table, step);
  std::vector<float> sums(kBlockRows * dim);
  std::vector<int64_t> slots(task.end - task.begin);
  for (int64_t i = 0; i < task.end - task.begin; ++i)
    slots[i] = table.share().slot(update.rows[task.begin + i]);
  for (int64_t begin = task.begin; begin < task.end; begin += kBlockRows) {
    const int64_t count = std::min(kBlockRows, task.end - begin);
    kernels::sum_parts(update.parts, begin, count, dim, sums.data());
    apply_rows(table.spec().optimizer, step,
               {table.rows(), slots.data() + (begin - task.begin), update.rows.data() + begin,
                sums.data(), count, rounding, task.end - begin - count});
  }
}

}  // namespace

void update_tables(std::span<const TableUpdate> updates, const RowStep& step, Pool& pool) {
  std::vector<Task> tasks;
  for (size_t u = 0; u < updates.size(); ++u) {
    const TableUpdate& update = updates[u];
    RECMILL_CHECK(update.table->share().ranks() == 1, update.table->spec().name);
    if (!update.table->spec().frozen)
      cut(u, update.distinct->begins, update.distinct->count(), update.table->rows().dim, tasks);
  }
  pool.run(static_cast<int64_t>(tasks.size()),
           [&](int64_t t) { update_stretch(updates[tasks[t].update], tasks[t], step); });
}

void update_tables_from_parts(std::span<const TableParts> updates, const RowStep& step,
                              Pool& pool) {
  std::vector<Task> tasks;
  for (size_t u = 0; u < updates.size(); ++u) {
    const TableParts& update = updates[u];
    if (!update.table->spec().frozen)
      cut(u, update.parts.begins, static_cast<int64_t>(update.rows.size()),
          update.table->rows().dim, tasks);
  }
  pool.run(static_cast<int64_t>(tasks.size()),
           [&](int64_t t) { update_stretch(updates[tasks[t].update], tasks[t], step); });
}

}  // namespace recmill::table
