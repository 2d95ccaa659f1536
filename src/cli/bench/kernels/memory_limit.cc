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
                         {16, false, true},  {64, false, false}, {64, false, true},
                         {128, false, true}, {0, true, false},   {0, true, true},
                         {64, true, true}};

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

double seconds_of(const kernels::TaskMap& map, std::span<const PoolTask> tasks, const Way& way,
                  Pool& pool, std::atomic<uint64_t>& all) {
  const int64_t cache_bytes = this_processor().l2_bytes * 7 / 8;
  const Stopwatch watch;
  pool.run(map.tasks(), [&](int64_t t) {
    uint64_t sum = 0;
    for (int64_t p = map.begins[t]; p < map.begins[t + 1]; ++p)
      sum ^= touch(tasks[map.pieces[p].feature], map.pieces[p], way, cache_bytes);
    all.fetch_xor(sum, std::memory_order_relaxed);
  });
  return watch.seconds();
}

const Way& fastest_way(const kernels::TaskMap& map, std::span<const PoolTask> tasks, Pool& pool,
                       std::atomic<uint64_t>& all) {
  const Way* fastest = nullptr;
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 3; ++round) {
    for (const Way& way : kWays) {
      const double seconds = seconds_of(map, tasks, way, pool, all);
      if (seconds < best) fastest = &way;
      best = std::min(best, seconds);
    }
  }
  return *fastest;
}

}  // namespace

Contender memory_limit(const kernels::FusedPool& fused, const PoolBatches& batches, Pool& pool) {
  return [&fused, &batches, &pool, best = std::vector<const Way*>(batches.count(), nullptr)](
             std::span<const int64_t> order) mutable -> Result<double> {
    double seconds = 0.0;
    std::atomic<uint64_t> all{0};
    kernels::TaskMap map;
    for (int64_t batch : order) {
      fused.map(batches.tasks(batch), pool.threads(), map);
      if (best[batch] == nullptr) best[batch] = &fastest_way(map, batches.tasks(batch), pool, all);
      seconds += seconds_of(map, batches.tasks(batch), *best[batch], pool, all);
    }
    return all == 1 ? std::numeric_limits<double>::quiet_NaN() : seconds;
  };
}

}  // namespace recmill::cli
