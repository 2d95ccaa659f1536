// SPDX-License-Identifier: Apache-2.0
// `recmill bench embedding`: one training step of all tables of a batch (distinct rows, lookup,
// backward and row optimizer) against FBGEMM's CPU tables and PyTorch's EmbeddingBag; and lookups
// of random rows against what the memory gives. With --device another on a GPU
// (gpu_embedding_bench.h).
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/temporary_folder.h"
#include "bench/benches.h"
#include "bench/embedding/gpu_embedding_bench.h"
#include "bench/embedding/workload.h"
#include "bench/rival.h"

namespace recmill::bench {
namespace {

constexpr int64_t kCheckedBatches = 3;
constexpr double kTolerance = 1e-4;  // of outputs of order 0.1 (pooled: 2) after three steps

/// Trains the first batches on both sides and compares what they then look up.
Status check_answer(EmbeddingWorkload& workload, Rival& rival, const std::string& folder,
                    ThreadPool& pool) {
  for (int64_t batch = 0; batch < kCheckedBatches; ++batch) workload.train(batch, pool);
  Json request;
  request["check"] = kCheckedBatches;
  RECMILL_ASSIGN_OR_RETURN(const Json answer, rival.ask(request));
  RECMILL_ASSIGN_OR_RETURN(const std::string bytes,
                           read_text(posix_files(), folder + "/check.bin"));
  std::vector<float> expected(bytes.size() / sizeof(float));
  std::memcpy(expected.data(), bytes.data(), expected.size() * sizeof(float));
  const size_t outputs = workload.output().size();
  if (expected.size() != outputs * kCheckedBatches)
    return Status::Failed("the rival's answer has another size: " + workload.shape().name);
  double worst = 0.0;
  for (int64_t batch = 0; batch < kCheckedBatches; ++batch) {
    workload.lookup(batch, pool);
    for (size_t i = 0; i < outputs; ++i)
      worst =
          std::max<double>(worst, std::fabs(workload.output()[i] - expected[batch * outputs + i]));
  }
  if (!(worst <= kTolerance))
    return Status::Failed("answers differ by " + std::to_string(worst) + ": " +
                          workload.shape().name);
  return {};
}

Contender trainer(EmbeddingWorkload& workload, ThreadPool& pool) {
  return [&](std::span<const int64_t> order) -> Result<double> {
    const Stopwatch watch;
    for (int64_t batch : order) workload.train(batch, pool);
    return watch.seconds();
  };
}

Contender timed_rival(Rival& rival) {
  return [&](std::span<const int64_t> order) -> Result<double> {
    Json request;
    request["run"] = std::vector<int64_t>(order.begin(), order.end());
    RECMILL_ASSIGN_OR_RETURN(const Json answer, rival.ask(request));
    return answer["seconds"].get<double>();
  };
}

BenchLine line_of(const EmbeddingShape& shape, const Timing& timing) {
  BenchLine line;
  line.bench = "embedding";
  line.name = shape.name;
  line.metric = "time_per_batch";
  line.value = median(timing.ours) * 1e3;
  line.unit = "ms";
  line.ratio = ratio_of(timing);
  line.foreign_load = timing.foreign_load;
  return line;
}

/// One rival of a training case.
Status run_pair(EmbeddingWorkload& workload, const std::string& rival_name, int threads,
                const BenchOptions& options, const BenchSink& sink) {
  ThreadPool pool(threads);
  AlternationOptions alternation;
  alternation.batches = kBenchBatches;
  alternation.pairs = options.pairs;
  if (!options.rivals) {
    RECMILL_ASSIGN_OR_RETURN(const Timing timing,
                             alternate(trainer(workload, pool), {}, alternation));
    sink(line_of(workload.shape(), timing));
    return {};
  }
  const TemporaryFolder folder;
  RECMILL_RETURN_IF_ERROR(workload.write(posix_files(), folder.path(), threads, rival_name));
  RECMILL_ASSIGN_OR_RETURN(
      Rival rival,
      Rival::start(options.python, {options.scripts + "/embedding_tables.py", folder.path()}));
  RECMILL_RETURN_IF_ERROR(check_answer(workload, rival, folder.path(), pool));
  alternation.own = {rival.pid()};
  RECMILL_ASSIGN_OR_RETURN(const Timing timing,
                           alternate(trainer(workload, pool), timed_rival(rival), alternation));
  BenchLine line = line_of(workload.shape(), timing);
  line.rival = rival_name;
  sink(line);
  return {};
}

Status run_training_case(const EmbeddingShape& shape, const BenchOptions& options,
                         const BenchSink& sink) {
  struct Against {
    std::string rival;
    int threads;
  };
  const int threads = static_cast<int>(options.threads);
  const bool sgd = shape.optimizer == OptimizerKind::sgd;
  std::vector<Against> rivals;
  if (sgd) {
    rivals = {{"torch_embeddingbag", threads}};
  } else {
    rivals = {{"fbgemm_tbe", threads}, {"fbgemm_tbe_1t", 1}};
  }
  for (const auto& [rival, rival_threads] : rivals) {
    // Both sides start from the same rows for every rival.
    ThreadPool pool(threads);
    RECMILL_ASSIGN_OR_RETURN(auto workload, EmbeddingWorkload::make(shape, pool));
    RECMILL_RETURN_IF_ERROR(run_pair(workload, rival, rival_threads, options, sink));
  }
  return {};
}

/// Reads a word of every cache line of each row of a batch, `ahead` rows fetched ahead (0: none),
/// and nothing else: what the memory gives. Returns something that depends on every word read.
uint64_t touch_rows(const EmbeddingWorkload& workload, int64_t batch, int64_t ahead,
                    ThreadPool& pool) {
  const EmbeddingShape& shape = workload.shape();
  std::atomic<uint64_t> all{0};
  pool.run(shape.tables, [&](int64_t t) {
    const int64_t* ids = workload.ids(batch, t);
    const kernels::RowStorage rows = workload.rows(t);
    uint64_t sum = 0;
    for (int64_t i = 0; i < shape.samples; ++i) {
      if (ahead > 0 && i + ahead < shape.samples)
        __builtin_prefetch(rows.data + ids[i + ahead] * rows.stride);
      const auto* words = reinterpret_cast<const uint64_t*>(rows.data + ids[i] * rows.stride);
      for (int64_t w = 0; w < shape.dim / 2; w += 8) sum ^= words[w];
    }
    all.fetch_xor(sum, std::memory_order_relaxed);
  });
  return all;
}

/// The fastest of several distances, each over all the batches: together they pass the caches.
Contender toucher(const EmbeddingWorkload& workload, ThreadPool& pool) {
  return [&workload, &pool](std::span<const int64_t> order) -> Result<double> {
    double best = std::numeric_limits<double>::infinity();
    uint64_t sum = 0;
    for (const int64_t ahead : {0, 16, 32, 64, 128}) {
      const Stopwatch watch;
      for (int64_t batch : order) sum ^= touch_rows(workload, batch, ahead, pool);
      best = std::min(best, watch.seconds());
    }
    return sum == 1 ? std::numeric_limits<double>::quiet_NaN() : best;
  };
}

Status run_random_case(const BenchOptions& options, const BenchSink& sink) {
  EmbeddingShape shape;
  shape.name = "random_d16";
  shape.rows = (int64_t{2} << 30) / (shape.dim * 4) / shape.tables;
  shape.zipf = 0.0;
  ThreadPool pool(static_cast<int>(options.threads));
  RECMILL_ASSIGN_OR_RETURN(auto workload, EmbeddingWorkload::make(shape, pool));
  for (int64_t batch = 0; batch < kBenchBatches; ++batch) {
    workload.lookup(batch, pool);
    const auto* row =
        reinterpret_cast<const float*>(workload.rows(1).record(workload.ids(batch, 1)[5]));
    const float* out = workload.output().data() + (5 * shape.tables + 1) * shape.dim;
    if (!std::equal(row, row + shape.dim, out)) return Status::Failed("wrong rows: " + shape.name);
  }
  AlternationOptions alternation;
  alternation.batches = kBenchBatches;
  alternation.pairs = options.pairs;
  const Contender ours = [&](std::span<const int64_t> order) -> Result<double> {
    const Stopwatch watch;
    for (int64_t batch : order) workload.lookup(batch, pool);
    return watch.seconds();
  };
  RECMILL_ASSIGN_OR_RETURN(const Timing timing,
                           alternate(ours, toucher(workload, pool), alternation));
  const double limit = median(timing.rivals);  // seconds a batch
  BenchLine line = line_of(shape, timing);
  line.of_limit = limit / median(timing.ours);
  line.metric = "rows_per_second";
  line.value = static_cast<double>(shape.lookups()) / (line.value * 1e-3);
  line.unit = "rows/s";
  line.limit = static_cast<double>(shape.lookups()) / limit;
  line.ratio = {};
  sink(line);
  return {};
}

}  // namespace

Status run_embedding_bench(const BenchOptions& options, const BenchSink& sink) {
  if (options.device != DeviceKind::cpu) return run_gpu_embedding_bench(options, sink);
  const EmbeddingShape shapes[] = {{.name = "onehot_d16"},
                                   {.name = "onehot_d64", .rows = 700000, .dim = 64},
                                   {.name = "pooled_d64", .tables = 8, .dim = 64, .bag = 20}};
  for (const auto kind : {OptimizerKind::rowwise_adagrad, OptimizerKind::sgd}) {
    for (EmbeddingShape shape : shapes) {
      shape.optimizer = kind;
      if (kind == OptimizerKind::sgd) shape.name += "_sgd";
      if (options.wants(shape.name))
        RECMILL_RETURN_IF_ERROR(run_training_case(shape, options, sink));
    }
  }
  if (options.wants("random_d16")) RECMILL_RETURN_IF_ERROR(run_random_case(options, sink));
  return {};
}

}  // namespace recmill::bench
