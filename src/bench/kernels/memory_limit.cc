// SPDX-License-Identifier: Apache-2.0
#include "bench/kernels/memory_limit.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "base/clock.h"
#include "kernels/embedding_pool/stream_zeros.h"

namespace recmill::bench {
namespace {

using kernels::PoolTask;

constexpr int64_t kLine = 64;
constexpr int64_t kRegion = int64_t{256} << 20;  // bytes of each kind: far more than caches hold
constexpr int64_t kPiece = int64_t{256} << 10;   // bytes of a task
constexpr int64_t kAhead = 4096;                 // bytes that reading is ahead

struct LinesNamed {
  int64_t once = 0, again = 0;
};
/// Cache lines of the rows that the lookups name.
LinesNamed lines_named(const PoolTask& task) {
  const kernels::RowStorage& rows = task.rows;
  const int64_t row_bytes = rows.dim * kernels::bytes_of(rows.precision);
  std::vector<bool> seen(static_cast<size_t>(rows.count * rows.stride / kLine + 2));
  LinesNamed lines;
  for (int64_t j = task.bags.offsets[0]; j < task.bags.offsets[task.bags.samples]; ++j) {
    const int64_t begin = task.bags.rows[j] * rows.stride;
    for (int64_t line = begin / kLine; line <= (begin + row_bytes - 1) / kLine; ++line) {
      ++(seen[line] ? lines.again : lines.once);
      seen[line] = true;
    }
  }
  return lines;
}

uint64_t read(const std::byte* begin, int64_t bytes) {
  const auto* const words = reinterpret_cast<const uint64_t*>(begin);
  uint64_t sums[8] = {};
  for (int64_t w = 0; w < bytes / 8; w += 8) {
    __builtin_prefetch(begin + 8 * w + kAhead);
    for (int64_t k = 0; k < 8; ++k) sums[k] += words[w + k];
  }
  uint64_t sum = 0;
  for (uint64_t part : sums) sum += part;
  return sum;
}

void write(std::byte* begin, int64_t bytes) {
  kernels::stream_zeros({reinterpret_cast<float*>(begin), bytes / sizeof(float)});
  kernels::finish_streaming();
}

/// What is between two positions of a region that is gone through round and round.
class Round {
 public:
  explicit Round(Buffer buffer) : buffer_(std::move(buffer)) {}
  /// `bytes` from the next position on, which then goes on by them; whole lines.
  std::byte* take(int64_t bytes) {
    if (next_ + bytes > kRegion) next_ = 0;
    std::byte* const at = buffer_.data() + next_;
    next_ += bytes;
    return at;
  }

 private:
  Buffer buffer_;
  int64_t next_ = 0;
};

struct Regions {
  Round from, to;
  std::vector<PoolTraffic> batches;
};

int64_t move(const PoolTraffic& traffic, Regions& regions, ThreadPool& pool) {
  std::vector<std::pair<std::byte*, int64_t>> reads, writes;
  const auto cut = [](int64_t bytes, Round& round, auto& pieces) {
    for (int64_t done = 0; done < bytes; done += kPiece) {
      const int64_t rest = std::min(kPiece, bytes - done);
      const int64_t whole = (rest + kLine - 1) / kLine * kLine;
      pieces.emplace_back(round.take(whole), whole);
    }
  };
  cut(traffic.read, regions.from, reads);
  cut(traffic.written, regions.to, writes);
  std::atomic<uint64_t> all{0};
  const auto count = static_cast<int64_t>(reads.size());
  const Stopwatch watch;
  pool.run(count + static_cast<int64_t>(writes.size()), [&](int64_t t) {
    if (t < count) {
      all += read(reads[t].first, reads[t].second);
    } else {
      write(writes[t - count].first, writes[t - count].second);
    }
  });
  RECMILL_CHECK(all == 0);  // of the region's zeros: a use that the compiler cannot leave out
  return static_cast<int64_t>(watch.seconds() * 1e9);
}

}  // namespace

PoolTraffic traffic_of(std::span<const PoolTask> tasks) {
  PoolTraffic traffic;
  for (const PoolTask& task : tasks) {
    const JaggedView& bags = task.bags;
    traffic.read += (bags.one_each ? 0 : bags.samples + 1) * 8;
    traffic.read += bags.lookups() * (bags.weights != nullptr ? 12 : 8);
    const LinesNamed lines = lines_named(task);
    traffic.read += lines.once * kLine;
    traffic.read_again += lines.again * kLine;
    traffic.written += bags.samples * task.rows.dim * 4;
  }
  return traffic;
}

double without_reuse(const PoolBatches& batches) {
  double needed = 0.0, again = 0.0;
  for (int64_t batch = 0; batch < batches.count(); ++batch) {
    const PoolTraffic traffic = traffic_of(batches.tasks(batch));
    needed += static_cast<double>(traffic.read + traffic.written);
    again += static_cast<double>(traffic.read_again);
  }
  return needed > 0.0 ? (needed + again) / needed : 1.0;
}

Result<Contender> memory_limit(const PoolBatches& batches, ThreadPool& pool) {
  RECMILL_ASSIGN_OR_RETURN(Buffer from, Buffer::allocate_huge(kRegion + kAhead));
  RECMILL_ASSIGN_OR_RETURN(Buffer to, Buffer::allocate_huge(kRegion));
  std::ranges::fill(from.as<uint64_t>(), uint64_t{0});
  std::ranges::fill(to.as<uint64_t>(), uint64_t{0});
  auto regions =
      std::make_shared<Regions>(Regions{Round(std::move(from)), Round(std::move(to)), {}});
  for (int64_t batch = 0; batch < batches.count(); ++batch)
    regions->batches.push_back(traffic_of(batches.tasks(batch)));
  return Contender([regions, &pool](std::span<const int64_t> order) -> Result<double> {
    int64_t nanoseconds = 0;
    for (int64_t batch : order) {
      const auto of = static_cast<size_t>(batch) % regions->batches.size();
      nanoseconds += move(regions->batches[of], *regions, pool);
    }
    return static_cast<double>(nanoseconds) * 1e-9;
  });
}

}  // namespace recmill::bench
