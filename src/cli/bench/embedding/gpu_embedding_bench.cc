// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/embedding/gpu_embedding_bench.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/clock.h"
#include "base/temporary_folder.h"
#include "cli/bench/embedding/gpu_workload.h"
#include "cli/bench/gpu_machine.h"
#include "cli/bench/rival.h"

namespace recmill::cli {
namespace {

constexpr double kEmulatedScale = 1e-3;
constexpr double kTolerance = 5e-5;  // of a rival's rows of order 0.01 after one update
constexpr const char* kRivalName = "torch_embeddingbag";
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
  std::string request;  // to a rival; empty: none does the same
};

class CaseRun {
 public:
  CaseRun(const Case& of, GpuEmbeddingWorkload& workload, const GpuMachine& machine,
          GpuTimer& timer, const BenchOptions& options)
      : of_(of), workload_(workload), machine_(machine), timer_(timer), options_(options) {}

  Status run(Rival* rival, const BenchSink& sink) {
    AlternationOptions alternation;
    alternation.batches = kGpuBatches;
    alternation.passes = machine_.emulated ? 1 : 4;
    alternation.pairs = options_.pairs;
    alternation.patience_seconds = 0;  // what others do on the CPU is not in these times
    const bool has_rival = rival != nullptr && !of_.request.empty();
    RECMILL_ASSIGN_OR_RETURN(
        const Timing timing,
        alternate(ours(), has_rival ? theirs(*rival) : Contender(), alternation));
    report(timing, has_rival, sink);
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

  Contender theirs(Rival& rival) {
    return [this, &rival](std::span<const int64_t> order) -> Result<double> {
      Json request;
      request[of_.request] = std::vector<int64_t>(order.begin(), order.end());
      RECMILL_ASSIGN_OR_RETURN(const Json answer, rival.ask(request));
      return answer["seconds"].get<double>();
    };
  }

  double bytes() const {  // of a batch, on average
    int64_t all = 0;
    for (int64_t b = 0; b < kGpuBatches; ++b)
      all += workload_.lookup_bytes(b) + (of_.updates ? workload_.update_bytes(b) : 0);
    return static_cast<double>(all) / kGpuBatches;
  }

  void report(const Timing& timing, bool has_rival, const BenchSink& sink) const {
    const double seconds = median(timing.ours);
    BenchLine line = line_of(machine_, of_.name, "time_per_batch");
    line.value = seconds * 1e3;
    line.unit = "ms";
    line.ratio.spread = spread_of(timing.ours);
    if (machine_.emulated) return sink(line);
    line.limit = bytes() / machine_.copy_rate * 1e3;
    line.of_limit = line.limit / line.value;
    if (has_rival) {
      line.rival = kRivalName;
      line.ratio = ratio_of(timing);
    }
    sink(line);
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

/// Starts PyTorch on the same rows and ids, and compares one update by it.
Result<Rival> start_rival(const GpuEmbeddingWorkload& workload, const std::string& folder,
                          const BenchOptions& options) {
  RECMILL_RETURN_IF_ERROR(workload.write(posix_files(), folder));
  RECMILL_ASSIGN_OR_RETURN(
      Rival rival,
      Rival::start(options.python, {options.scripts + "/gpu_embedding_tables.py", folder}));
  Json request;
  request["check"] = 1;
  RECMILL_RETURN_IF_ERROR(rival.ask(request).status());
  RECMILL_ASSIGN_OR_RETURN(const std::string bytes,
                           read_text(posix_files(), folder + "/check.bin"));
  const auto expected = workload.expected_rows();
  if (bytes.size() != expected.size_bytes())
    return Status::Failed(std::string(kRivalName) + ": its answer has another size");
  std::vector<float> found(expected.size());
  std::memcpy(found.data(), bytes.data(), bytes.size());
  double worst = 0;
  for (size_t i = 0; i < found.size(); ++i)
    worst = std::max<double>(worst, std::fabs(found[i] - expected[i]));
  if (!(worst <= kTolerance))
    return Status::Failed(std::string(kRivalName) + ": its rows differ by " +
                          std::to_string(worst));
  return rival;
}

Status run_cases(std::span<const Case> cases, OptimizerKind optimizer, const GpuMachine& machine,
                 Pool& pool, const BenchOptions& options, const BenchSink& sink) {
  std::vector<Case> wanted;
  for (const Case& of : cases)
    if (options.wants(of.name)) wanted.push_back(of);
  if (wanted.empty()) return {};
  RECMILL_ASSIGN_OR_RETURN(const auto workload,
                           GpuEmbeddingWorkload::make(scaled(optimizer, options, machine.emulated),
                                                      machine.compile, *machine.gpu, pool));
  RECMILL_RETURN_IF_ERROR(workload->check());
  const TemporaryFolder folder;
  std::optional<Rival> rival;
  if (options.rivals && !machine.emulated && !wanted.front().request.empty()) {
    RECMILL_ASSIGN_OR_RETURN(rival, start_rival(*workload, folder.path(), options));
  }
  RECMILL_ASSIGN_OR_RETURN(auto timer, machine.gpu->open_timer());
  for (const Case& of : wanted) {
    CaseRun run(of, *workload, machine, timer, options);
    RECMILL_RETURN_IF_ERROR(run.run(rival.has_value() ? &*rival : nullptr, sink));
    if (of.updates) RECMILL_RETURN_IF_ERROR(run.report_parts(sink));
  }
  return {};
}

}  // namespace

Status run_gpu_embedding_bench(const BenchOptions& options, const BenchSink& sink) {
  const TemporaryFolder folder;
  Pool pool(static_cast<int>(options.threads));
  RECMILL_ASSIGN_OR_RETURN(auto machine, open_gpu_machine(options.device, folder.path(), pool));
  RECMILL_RETURN_IF_ERROR(measure_copy(machine, options, sink));
  const Case sgd[] = {{"published_forward", false, 0.347, "forward"},
                      {"published_sgd", true, 0.959, "train"}};
  const Case adam[] = {{"published_adam", true, 1.352, ""}};
  RECMILL_RETURN_IF_ERROR(run_cases(sgd, OptimizerKind::sgd, machine, pool, options, sink));
  return run_cases(adam, OptimizerKind::adam, machine, pool, options, sink);
}

}  // namespace recmill::cli
