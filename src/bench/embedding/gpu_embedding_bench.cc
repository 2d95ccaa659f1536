// SPDX-License-Identifier: Apache-2.0
#include "bench/embedding/gpu_embedding_bench.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/clock.h"
#include "base/temporary_folder.h"
#include "bench/embedding/gpu_rival.h"
#include "bench/embedding/gpu_workload.h"
#include "bench/gpu_machine.h"

namespace recmill::bench {
namespace {

constexpr double kEmulatedScale = 1e-3;
constexpr int kLeastCheck_s = 30;  // for a rival, however long those before it took
constexpr const char* kPublished = "fbgemm_tbe_h100_published";

BenchLine line_of(const GpuMachine& machine, const std::string& name, const std::string& metric) {
  BenchLine line;
  line.bench = "embedding";
  line.name = name;
  line.metric = machine.emulated ? "emulated_" + metric : metric;
  line.device = machine.gpu->properties().name;
  return line;
}

/// Seconds that the GPU takes for what `enqueue` does.
template <class Enqueue>
Result<double> timed(GpuTimer& timer, GpuStream& stream, const Enqueue& enqueue) {
  RECMILL_RETURN_IF_ERROR(timer.start(stream));
  RECMILL_RETURN_IF_ERROR(enqueue());
  RECMILL_RETURN_IF_ERROR(timer.stop(stream));
  RECMILL_RETURN_IF_ERROR(stream.synchronize());
  return timer.seconds();
}

/// Half the distance between the quartiles, as a share of the median.
double spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t last = values.size() - 1;
  const double middle = median(values);
  return middle > 0 ? (values[last * 3 / 4] - values[last / 4]) / 2 / middle : 0.0;
}

/// What a copy within the GPU's memory moves, which is the limit that all else is held to.
Status measure_copy(GpuMachine& machine, const BenchOptions& options, const BenchSink& sink) {
  const size_t bytes = size_t{1} << (machine.emulated ? 20 : 31);
  RECMILL_ASSIGN_OR_RETURN(auto from, machine.gpu->allocate(bytes, "a copy"));
  RECMILL_ASSIGN_OR_RETURN(auto to, machine.gpu->allocate(bytes, "a copy"));
  RECMILL_ASSIGN_OR_RETURN(auto stream, machine.gpu->open_stream());
  RECMILL_ASSIGN_OR_RETURN(auto timer, machine.gpu->open_timer());
  RECMILL_RETURN_IF_ERROR(stream.zero(from));
  std::vector<double> rates;
  for (int64_t i = 0; i <= options.pairs; ++i) {
    RECMILL_ASSIGN_OR_RETURN(const double seconds,
                             timed(timer, stream, [&] { return stream.copy(to, from, bytes); }));
    if (i > 0) rates.push_back(2 * static_cast<double>(bytes) / seconds);
  }
  machine.copy_rate = median(rates);
  BenchLine line = line_of(machine, "memory", "copy_rate");
  line.value = machine.copy_rate * 1e-9;
  line.unit = "GB/s";
  line.ratio.spread = spread_of(rates);
  line.limit = machine.gpu->properties().memory_rate * 1e-9;
  if (line.limit > 0) line.of_limit = line.value / line.limit;
  sink(line);
  return {};
}

/// One case: what is timed of a workload, and what it is compared with.
struct Case {
  std::string name;
  bool updates = false;
  double published_ms = 0;
};

class CaseRun {
 public:
  CaseRun(const Case& of, GpuEmbeddingWorkload& workload, const GpuMachine& machine,
          GpuTimer& timer, const BenchOptions& options)
      : of_(of), workload_(workload), machine_(machine), timer_(timer), options_(options) {}

  Status run(std::span<GpuRival> rivals, const BenchSink& sink) {
    AlternationOptions alternation;
    alternation.batches = kGpuBatches;
    alternation.passes = machine_.emulated ? 1 : 4;
    alternation.pairs = options_.pairs;
    alternation.patience_seconds = 0;  // what others do on the CPU is not in these times
    std::vector<Contender> contenders{ours()};
    for (GpuRival& rival : rivals) contenders.push_back(theirs(rival));
    RECMILL_ASSIGN_OR_RETURN(const Turns turns, take_turns(contenders, alternation));
    report(turns, rivals, sink);
    return {};
  }

  /// What is part of it, and what goes before: the CPU's work and the copy to the GPU.
  Status report_parts(const BenchSink& sink) {
    std::vector<double> prepare, send, find;
    for (int64_t i = 0; i <= options_.pairs; ++i) {
      const int64_t batch = i % kGpuBatches;
      const Stopwatch watch;
      RECMILL_RETURN_IF_ERROR(workload_.prepare(batch));
      const double prepared = watch.seconds();
      GpuStream& stream = workload_.stream();
      RECMILL_ASSIGN_OR_RETURN(const double sent,
                               timed(timer_, stream, [&] { return workload_.send(batch); }));
      RECMILL_ASSIGN_OR_RETURN(const double found, timed(timer_, stream, [&]() -> Status {
                                 RECMILL_RETURN_IF_ERROR(workload_.find_rows(batch));
                                 return workload_.wait_for_rows();
                               }));
      if (i == 0) continue;
      prepare.push_back(prepared);
      send.push_back(sent);
      find.push_back(found);
    }
    for (const auto& [metric, seconds] :
         {std::pair{"time_to_prepare", prepare}, std::pair{"time_to_send", send},
          std::pair{"time_to_find_rows", find}}) {
      BenchLine line = line_of(machine_, of_.name, metric);
      line.value = median(seconds) * 1e3;
      line.unit = "ms";
      line.ratio.spread = spread_of(seconds);
      sink(line);
    }
    return {};
  }

 private:
  Status enqueue(int64_t batch) {
    if (!of_.updates) return workload_.lookup(batch);
    RECMILL_RETURN_IF_ERROR(workload_.lookup(batch));  // first: what is found takes many launches
    RECMILL_RETURN_IF_ERROR(workload_.find_rows(batch));
    return workload_.update(batch);
  }

  Contender ours() {
    return [this](std::span<const int64_t> order) -> Result<double> {
      double all = 0;
      for (const int64_t batch : order) {
        RECMILL_ASSIGN_OR_RETURN(const double seconds,
                                 timed(timer_, workload_.stream(), [&] { return enqueue(batch); }));
        all += seconds;
      }
      return all;
    };
  }

  Contender theirs(GpuRival& rival) {
    return [this, &rival](std::span<const int64_t> order) -> Result<double> {
      return rival.seconds(of_.updates ? "train" : "forward", order);
    };
  }

  double bytes() const {  // of a batch, on average
    int64_t all = 0;
    for (int64_t b = 0; b < kGpuBatches; ++b)
      all += workload_.lookup_bytes(b) + (of_.updates ? workload_.update_bytes(b) : 0);
    return static_cast<double>(all) / kGpuBatches;
  }

  void report(const Turns& turns, std::span<const GpuRival> rivals, const BenchSink& sink) const {
    const std::vector<double>& ours = turns.seconds[0];
    const double seconds = median(ours);
    BenchLine line = line_of(machine_, of_.name, "time_per_batch");
    line.value = seconds * 1e3;
    line.unit = "ms";
    line.ratio.spread = spread_of(ours);
    if (machine_.emulated) return sink(line);
    line.limit = bytes() / machine_.copy_rate * 1e3;
    line.of_limit = line.limit / line.value;
    bool alone = true;
    for (size_t r = 0; r < rivals.size(); ++r) {
      if (!rivals[r].takes_part()) continue;
      alone = false;
      line.rival = rivals[r].system();
      line.ratio = ratio_of(turns.timing(0, 1 + r));
      sink(line);
    }
    if (alone) sink(line);
    line.rival = kPublished;
    line.ratio = {of_.published_ms / line.value, 0.0};
    sink(line);
    const double nominal = machine_.gpu->properties().memory_rate;
    BenchLine moved = line_of(machine_, of_.name, "bytes_moved");
    moved.value = bytes() / seconds * 1e-9;
    moved.unit = "GB/s";
    moved.limit = nominal * 1e-9;
    if (nominal > 0) moved.of_limit = moved.value / moved.limit;
    sink(moved);
  }

  const Case& of_;
  GpuEmbeddingWorkload& workload_;
  const GpuMachine& machine_;
  GpuTimer& timer_;
  const BenchOptions& options_;
};

GpuEmbeddingShape scaled(OptimizerKind optimizer, const BenchOptions& options, bool emulated) {
  const double scale = options.scale > 0 ? options.scale : emulated ? kEmulatedScale : 1.0;
  const auto of = [scale](int64_t count) {
    return std::max<int64_t>(64, std::llround(static_cast<double>(count) * scale));
  };
  GpuEmbeddingShape shape;
  shape.name = "published_" + std::string(name_of(optimizer));
  shape.rows = of(shape.rows);
  shape.lookups = of(shape.lookups);
  shape.optimizer = optimizer;
  return shape;
}

/// A run of the benchmark: its cases, a workload at a time. A rival that fails is the run's failure
/// when all cases have been timed without it.
class GpuEmbeddingRun {
 public:
  GpuEmbeddingRun(GpuMachine& machine, ThreadPool& pool, const BenchOptions& options,
                  const BenchSink& sink)
      : machine_(machine), pool_(pool), options_(options), sink_(sink) {}

  Status run_cases(std::span<const Case> cases, OptimizerKind optimizer) {
    std::vector<Case> wanted;
    for (const Case& of : cases)
      if (options_.wants(of.name)) wanted.push_back(of);
    if (wanted.empty()) return {};
    const GpuEmbeddingShape shape = scaled(optimizer, options_, machine_.emulated);
    RECMILL_ASSIGN_OR_RETURN(
        const auto workload,
        GpuEmbeddingWorkload::make(shape, machine_.compile, *machine_.gpu, pool_));
    RECMILL_RETURN_IF_ERROR(workload->check());
    const TemporaryFolder folder;
    RECMILL_ASSIGN_OR_RETURN(auto rivals, start_rivals(*workload, folder.path()));
    RECMILL_ASSIGN_OR_RETURN(auto timer, machine_.gpu->open_timer());
    for (const Case& of : wanted) {
      CaseRun run(of, *workload, machine_, timer, options_);
      RECMILL_RETURN_IF_ERROR(run.run(rivals, sink_));
      if (of.updates) RECMILL_RETURN_IF_ERROR(run.report_parts(sink_));
    }
    for (const GpuRival& rival : rivals)
      if (!rival.takes_part()) failed_.emplace(rival.system(), rival.status().message());
    return {};
  }

  /// Of all rivals.
  Status of_rivals() const {
    std::string all;
    for (const auto& [system, why] : failed_) all += (all.empty() ? "" : "; ") + why;
    return all.empty() ? Status() : Status::Failed(all);
  }

 private:
  /// All of them on the same rows and ids, checked, but those that failed before.
  Result<std::vector<GpuRival>> start_rivals(const GpuEmbeddingWorkload& workload,
                                             const std::string& folder) {
    std::vector<GpuRival> rivals;
    if (!options_.rivals || machine_.emulated) return rivals;
    RECMILL_RETURN_IF_ERROR(workload.write(posix_files(), folder));
    const Stopwatch watch;
    for (const std::string& system : gpu_rivals_with(workload.shape().optimizer)) {
      if (failed_.contains(system)) continue;
      RECMILL_ASSIGN_OR_RETURN(GpuRival rival, GpuRival::start(system, folder, options_));
      rivals.push_back(std::move(rival));  // each begins while others do
    }
    for (GpuRival& rival : rivals) {
      const int left_s = kRivalPatience_s - static_cast<int>(watch.seconds());
      rival.check(workload.expected_rows(), std::max(left_s, kLeastCheck_s));
    }
    return rivals;
  }

  GpuMachine& machine_;
  ThreadPool& pool_;
  const BenchOptions& options_;
  const BenchSink& sink_;
  std::map<std::string, std::string> failed_;  // why, by system
};

}  // namespace

Status run_gpu_embedding_bench(const BenchOptions& options, const BenchSink& sink) {
  const TemporaryFolder folder;
  ThreadPool pool(static_cast<int>(options.threads));
  RECMILL_ASSIGN_OR_RETURN(auto machine, open_gpu_machine(options.device, folder.path(), pool));
  RECMILL_RETURN_IF_ERROR(measure_copy(machine, options, sink));
  const Case sgd[] = {{"published_forward", false, 0.347}, {"published_sgd", true, 0.959}};
  const Case adam[] = {{"published_adam", true, 1.352}};
  GpuEmbeddingRun run(machine, pool, options, sink);
  const Status of_sgd = run.run_cases(sgd, OptimizerKind::sgd);
  RECMILL_RETURN_IF_ERROR(run.run_cases(adam, OptimizerKind::adam));
  return of_sgd.ok() ? run.of_rivals() : of_sgd;
}

}  // namespace recmill::bench
