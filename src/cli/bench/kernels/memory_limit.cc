// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/kernels/memory_limit.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "base/clock.h"
#include "device/processor.h"

namespace recmill::cli {
namespace {

using kernels::Piece;
using kernels::PoolTask;

struct Way {
  int64_t ahead;  // lookups that rows are fetched ahead; 0: not
  bool stage;     // a small table that is named more often than it has rows is read in order first
  bool past;      // outputs are written past the caches
};
constexpr Way kWays[] = {{0, false, false},  {0, false, true},   {16, false, false},
                         {16, false, true},  {32, false, false}, {32, false, true},
                         {64, false, false}, {64, false, true},  {128, false, false},
                         {128, false, true}, {256, false, true}, {0, true, false},
                         {0, true, true},    {64, true, false},  {64, true, true}};

uint64_t word_of_each_line(const std::byte* begin, int64_t bytes) {
  uint64_t sum = 0;
  for (int64_t b = 0; b + 8 <= bytes; b += 64) sum ^= *reinterpret_cast<const uint64_t*>(begin + b);
  return sum;
}

void write_output(float* out, int64_t dim, bool past) {
#ifdef __SSE2__
  if (past && dim % 4 == 0 && reinterpret_cast<uintptr_t>(out) % 16 == 0) {
    for (int64_t e = 0; e < dim; e += 4) _mm_stream_ps(out + e, _mm_setzero_ps());
    return;
  }
#endif
  std::memset(out, past ? 0 : 1, dim * sizeof(float));
}

/// Reads rows ids[first, end) of kLines cache lines each; one loop for each number of lines, so
/// that it is the memory that is waited for. Returns something that depends on every word read.
template <int kLines>
uint64_t touch_rows(const kernels::RowStorage& rows, const int64_t* ids, int64_t first, int64_t end,
                    int64_t ahead) {
  const std::byte* const data = rows.data;
  const int64_t stride = rows.stride;
  uint64_t sum = 0;
  const auto read = [&](int64_t i) {
    const std::byte* const row = data + ids[i] * stride;
    for (int line = 0; line < kLines; ++line)
      sum ^= *reinterpret_cast<const uint64_t*>(row + 64 * line);
  };
  int64_t i = first;
  for (; ahead > 0 && i + ahead < end; ++i) {
    const std::byte* const next = data + ids[i + ahead] * stride;
    for (int line = 0; line < kLines; ++line) __builtin_prefetch(next + 64 * line);
    read(i);
  }
  for (; i < end; ++i) read(i);
  return sum;
}

uint64_t touch(const PoolTask& task, const Piece& piece, const Way& way, int64_t cache_bytes) {
  const kernels::RowStorage& rows = task.rows;
  const int64_t lines = rows.dim * kernels::bytes_of(rows.precision) / 64;
  const int64_t *const ids = task.bags.rows, *const offsets = task.bags.offsets;
  const int64_t first = offsets[piece.first], end = offsets[piece.last];
  uint64_t sum = 0;
  if (way.stage && end - first >= rows.count && rows.count * rows.stride <= cache_bytes)
    sum ^= word_of_each_line(rows.data, rows.count * rows.stride);
  const auto touch_all = lines >= 8   ? touch_rows<8>
                         : lines >= 4 ? touch_rows<4>
                         : lines >= 2 ? touch_rows<2>
                                      : touch_rows<1>;
  sum ^= touch_all(rows, ids, first, end, way.ahead);
  for (int64_t sample = piece.first; sample < piece.last; ++sample)
    write_output(task.out + sample * task.stride, rows.dim, way.past);
  return sum;
}

/// Moves a batch, each feature in its own way; adds each feature's seconds to `spent` where it is
/// given. Returns the seconds of all of it.
double move(const kernels::TaskMap& map, std::span<const PoolTask> tasks,
            std::span<const Way* const> ways, Pool& pool, std::atomic<uint64_t>& all,
            std::vector<double>* spent = nullptr) {
  const int64_t cache_bytes = this_processor().l2_bytes * 7 / 8;
  std::vector<double> by_piece(spent != nullptr ? map.pieces.size() : 0);
  const Stopwatch watch;
  pool.run(map.tasks(), [&](int64_t t) {
    uint64_t sum = 0;
    for (int64_t p = map.begins[t]; p < map.begins[t + 1]; ++p) {
      const Piece& piece = map.pieces[p];
      const Stopwatch of_piece;
      sum ^= touch(tasks[piece.feature], piece, *ways[piece.feature], cache_bytes);
      if (spent != nullptr) by_piece[p] = of_piece.seconds();
    }
    all.fetch_xor(sum, std::memory_order_relaxed);
  });
  const double seconds = watch.seconds();
  for (size_t p = 0; p < by_piece.size(); ++p) (*spent)[map.pieces[p].feature] += by_piece[p];
  return seconds;
}

/// For each feature the way in which it took least, beside the others moved in the same way.
std::vector<const Way*> fastest_ways(const kernels::TaskMap& map, std::span<const PoolTask> tasks,
                                     Pool& pool, std::atomic<uint64_t>& all) {
  std::vector<const Way*> fastest(tasks.size(), &kWays[0]);
  std::vector<double> best(tasks.size(), std::numeric_limits<double>::infinity());
  for (const Way& way : kWays) {
    const std::vector<const Way*> same(tasks.size(), &way);
    move(map, tasks, same, pool, all);
    std::vector<double> spent(tasks.size(), 0.0);
    for (int round = 0; round < 2; ++round) move(map, tasks, same, pool, all, &spent);
    for (size_t f = 0; f < tasks.size(); ++f) {
      if (spent[f] >= best[f]) continue;
      best[f] = spent[f];
      fastest[f] = &way;
    }
  }
  return fastest;
}

}  // namespace

Contender memory_limit(const kernels::FusedPool& fused, const PoolBatches& batches, Pool& pool) {
  return [&fused, &batches, &pool, ways = std::vector<std::vector<const Way*>>(batches.count())](
             std::span<const int64_t> order) mutable -> Result<double> {
    double seconds = 0.0;
    std::atomic<uint64_t> all{0};
    kernels::TaskMap map;
    for (int64_t batch : order) {
      const auto tasks = batches.tasks(batch);
      fused.map(tasks, pool.threads(), map);
      if (ways[batch].empty()) ways[batch] = fastest_ways(map, tasks, pool, all);
      seconds += move(map, tasks, ways[batch], pool, all);
    }
    return all == 1 ? std::numeric_limits<double>::quiet_NaN() : seconds;
  };
}

}  // namespace recmill::cli
