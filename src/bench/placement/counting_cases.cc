// SPDX-License-Identifier: Apache-2.0
// Counting accesses: `counting_SHAPE`, ids a second beside what the memory gives;
// `counts_file_SHAPE_ZIPF`, bytes of the file of 100 million lookups, and `counts_read_SHAPE_ZIPF`,
// seconds to read it; `SHAPE_full`: the same of a file that is as large as files may be.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "base/temporary_folder.h"
#include "bench/placement/frozen_shapes.h"
#include "bench/placement/placement_cases.h"
#include "stats/access_counter.h"
#include "stats/access_counts_file.h"
#include "stats/hot_threshold.h"

namespace recmill::bench {
namespace {

constexpr uint64_t kSeed = 1;
constexpr int64_t kBatches = 32, kBatchSamples = 1 << 15;  // 27 million lookups of 26 tables
constexpr double kCountingZipf = 1.05;

/// What a file counts. Of so many lookups by so flat a law that rows are cut, it is full.
struct FileCase {
  const char* shape;
  const char* name;
  double zipf;
  int64_t lookups;
};
constexpr FileCase kFiles[] = {{"terabyte", "terabyte_1.05", 1.05, 100'000'000},
                               {"terabyte", "terabyte_1.2", 1.2, 100'000'000},
                               {"terabyte", "terabyte_full", 0.7, 400'000'000},
                               {"syn_large", "syn_large_1.05", 1.05, 100'000'000},
                               {"syn_large", "syn_large_1.2", 1.2, 100'000'000},
                               {"syn_large", "syn_large_full", 0.7, 1'000'000'000}};

std::vector<SparseBatch> draw_batches(const FrozenShape& shape, ThreadPool& pool) {
  const ShapeDraw source(shape, kCountingZipf, kSeed);
  std::vector<SparseBatch> batches(kBatches);
  for (int64_t b = 0; b < kBatches; ++b)
    source.draw(b * kBatchSamples, kBatchSamples, batches[b], pool);
  return batches;
}

/// Whether what was counted of `batch` alone is what sorting its rows finds.
Status check_counts(const FrozenShape& shape, const SparseBatch& batch, ThreadPool& pool) {
  RECMILL_ASSIGN_OR_RETURN(auto counter, stats::AccessCounter::create(shape.spec(), shape.model()));
  counter.add(batch, pool);
  const AccessCounts counts = counter.finish(pool);
  for (size_t t = 0; t < shape.rows.size(); ++t) {
    std::vector<int64_t> rows = batch.features[t].rows;
    std::ranges::sort(rows);
    std::vector<int64_t> hot_rows, hot_counts;
    for (const int64_t row : rows) {
      if (hot_rows.empty() || hot_rows.back() != row) {
        hot_rows.push_back(row);
        hot_counts.push_back(0);
      }
      ++hot_counts.back();
    }
    if (hot_rows != counts.tables[t].hot_rows || hot_counts != counts.tables[t].hot_counts)
      return Status::Failed(shape.name + ": other counts than sorting finds, of table " +
                            counts.tables[t].table);
  }
  return {};
}

/// A byte a row, and nothing done but adding one to that of each lookup, fetched ahead: what the
/// memory gives.
class Memory {
 public:
  static Result<Memory> make(const FrozenShape& shape) {
    Memory memory;
    for (const int64_t rows : shape.rows) {
      memory.firsts_.push_back(memory.bytes_);
      memory.bytes_ += (rows + 63) / 64 * 64;
    }
    RECMILL_ASSIGN_OR_RETURN(memory.buffer_, Buffer::allocate(static_cast<size_t>(memory.bytes_)));
    return memory;
  }
  void add(const SparseBatch& batch, int64_t ahead, ThreadPool& pool) const {
    pool.run(std::ssize(batch.features), [&](int64_t t) {
      uint8_t* const bytes = buffer_.as<uint8_t>().data() + firsts_[t];
      const std::span<const int64_t> rows = batch.features[t].rows;
      const int64_t fetched = std::ssize(rows) - ahead;
      for (int64_t i = 0; i < fetched; ++i) {
        __builtin_prefetch(bytes + rows[i + ahead], 1);
        ++bytes[rows[i]];
      }
      for (int64_t i = fetched; i < std::ssize(rows); ++i) ++bytes[rows[i]];
    });
  }

 private:
  std::vector<int64_t> firsts_;
  int64_t bytes_ = 0;
  Buffer buffer_;
};

/// The fastest of several distances.
Contender toucher(const Memory& memory, const std::vector<SparseBatch>& batches, ThreadPool& pool) {
  return [&](std::span<const int64_t> order) -> Result<double> {
    double best = std::numeric_limits<double>::infinity();
    for (const int64_t ahead : {16, 32, 64}) {
      const Stopwatch watch;
      for (const int64_t b : order) memory.add(batches[b], ahead, pool);
      best = std::min(best, watch.seconds());
    }
    return best;
  };
}

Status run_counting(const FrozenShape& shape, const BenchOptions& options, const BenchSink& sink) {
  BenchLine line;
  line.bench = "placement";
  line.name = "counting_" + shape.name;
  if (!options.wants(line.name)) return {};
  ThreadPool pool(static_cast<int>(options.threads));
  const std::vector<SparseBatch> batches = draw_batches(shape, pool);
  RECMILL_RETURN_IF_ERROR(check_counts(shape, batches[0], pool));
  RECMILL_ASSIGN_OR_RETURN(auto counter, stats::AccessCounter::create(shape.spec(), shape.model()));
  RECMILL_ASSIGN_OR_RETURN(const auto memory, Memory::make(shape));
  const Contender ours = [&](std::span<const int64_t> order) -> Result<double> {
    const Stopwatch watch;
    for (const int64_t b : order) counter.add(batches[b], pool);
    return watch.seconds();
  };
  AlternationOptions alternation;
  alternation.batches = kBatches;
  alternation.passes = 1;
  alternation.pairs = options.pairs;
  RECMILL_ASSIGN_OR_RETURN(const Timing timing,
                           alternate(ours, toucher(memory, batches, pool), alternation));
  const double lookups = static_cast<double>(kBatchSamples * std::ssize(shape.rows)) / 1e6;
  line.metric = "ids_per_second";
  line.unit = "M ids/s";
  line.value = lookups / median(timing.ours);
  line.limit = lookups / median(timing.rivals);
  line.of_limit = line.value / line.limit;
  line.foreign_load = timing.foreign_load;
  sink(line);
  return {};
}

Status run_file(const FileCase& what, const BenchOptions& options, const BenchSink& sink) {
  const std::string file_case = fmt::format("counts_file_{}", what.name);
  const std::string read_case = fmt::format("counts_read_{}", what.name);
  if (!options.wants(file_case) && !options.wants(read_case)) return {};
  RECMILL_ASSIGN_OR_RETURN(const FrozenShape shape, frozen_shape(what.shape));
  ThreadPool pool(static_cast<int>(options.threads));
  RECMILL_ASSIGN_OR_RETURN(const AccessCounts counts,
                           draw_counts(shape, what.zipf, kSeed, what.lookups, pool));
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/drawn.counts";
  RECMILL_RETURN_IF_ERROR(stats::write_counts(counts, path, posix_files(), pool));
  RECMILL_ASSIGN_OR_RETURN(const auto file, posix_files().open(path));
  BenchLine line;
  line.bench = "placement";
  line.name = file_case;
  line.metric = "file_size";
  line.unit = "bytes";
  line.value = static_cast<double>(file->size());
  line.limit = static_cast<double>(stats::default_file_bytes(shape.total_rows()));
  line.of_limit = line.value / line.limit;
  if (options.wants(file_case)) sink(line);
  if (!options.wants(read_case)) return {};
  std::vector<double> seconds;
  for (int64_t i = 0; i < options.pairs; ++i) {
    const Stopwatch watch;
    RECMILL_ASSIGN_OR_RETURN(const AccessCounts read,
                             stats::read_counts(path, shape.model(), posix_files(), pool));
    seconds.push_back(watch.seconds());
    if (i == 0 && read != counts) return Status::Failed(read_case + ": other counts than written");
  }
  line.name = read_case;
  line.metric = "read_time";
  line.unit = "s";
  line.value = median(seconds);
  line.limit = line.of_limit = 0.0;
  sink(line);
  return {};
}

}  // namespace

Status run_counting_cases(const BenchOptions& options, const BenchSink& sink) {
  for (const char* name : {"terabyte", "syn_large"}) {
    RECMILL_ASSIGN_OR_RETURN(const FrozenShape shape, frozen_shape(name));
    RECMILL_RETURN_IF_ERROR(run_counting(shape, options, sink));
  }
  for (const FileCase& what : kFiles) RECMILL_RETURN_IF_ERROR(run_file(what, options, sink));
  return {};
}

}  // namespace recmill::bench
