// SPDX-License-Identifier: Apache-2.0
// `recmill bench train`: whole training iterations of a DLRM over tables of the sizes of Criteo
// Kaggle (preparing a batch, lookup, forward, backward, both optimizers; batches in memory) against
// the plain PyTorch script, and against what the machine's multiply-adds allow.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/temporary_folder.h"
#include "bench/benches.h"
#include "bench/machine.h"
#include "bench/rival.h"
#include "bench/rival_in_run.h"
#include "bench/train/workload.h"
#include "kernels/dense_layer/dense_layer.h"
#include "kernels/dense_layer/fma_peak.h"

namespace recmill::bench {
namespace {

using model::LayerPrecision;

constexpr int64_t kCheckedBatches = 3;

/// Of mean log losses of order 0.6: the two sides add in different orders, and bfloat16 keeps eight
/// bits of every operand.
double tolerance(const TrainShape& shape) {
  return shape.precision == LayerPrecision::float32 ? 1e-5 : 3e-3;
}

/// Of the first batches, as the rival answers.
Result<std::vector<double>> losses_in(const Json& answer) {
  auto losses = answer["losses"].get<std::vector<double>>();
  if (std::ssize(losses) != kCheckedBatches)
    return Status::Failed("rival gave " + std::to_string(losses.size()) + " losses of " +
                          std::to_string(kCheckedBatches) + " steps");
  return losses;
}

/// Our losses are those of the rival.
Status check_answer(const TrainShape& shape, TrainWorkload& workload,
                    std::span<const double> expected) {
  for (size_t batch = 0; batch < expected.size(); ++batch) {
    RECMILL_ASSIGN_OR_RETURN(const double loss, workload.train(static_cast<int64_t>(batch)));
    if (!(std::fabs(loss - expected[batch]) <= tolerance(shape)))
      return Status::Failed("losses of step " + std::to_string(batch) + " are " +
                            std::to_string(loss) + " and " + std::to_string(expected[batch]) +
                            ": " + shape.name);
  }
  return {};
}

/// What the multiply-adds of all threads allow: the most that was reached before any repetition of
/// ours, each on a machine that alternate() has just looked at. What disturbs a measurement only
/// lowers it, and a lower limit would flatter us: so neither once at the start, when others may
/// hold a core, nor the median.
struct PeakMeter {
  kernels::Precision precision;
  ThreadPool& pool;
  double peak = 0.0;                      // operations a second
  std::vector<double> core_to_core = {};  // ns

  void measure() {
    core_to_core.push_back(core_to_core_ns());
    peak = std::max(peak, kernels::dense_layer::fma_peak(precision, pool));
  }
};

Contender trainer(TrainWorkload& workload, PeakMeter& meter) {
  return [&](std::span<const int64_t> order) -> Result<double> {
    meter.measure();
    const Stopwatch watch;
    for (int64_t batch : order) {
      RECMILL_ASSIGN_OR_RETURN([[maybe_unused]] const double loss, workload.train(batch));
    }
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

BenchLine line_of(const TrainShape& shape, const TrainWorkload& workload, const Timing& timing,
                  const PeakMeter& meter) {
  BenchLine line;
  line.bench = "train";
  line.name = shape.name;
  line.metric = "samples_per_second";
  line.value = static_cast<double>(shape.samples) / median(timing.ours);
  line.unit = "samples/s";
  line.ratio = ratio_of(timing);
  line.limit = meter.peak / workload.operations();
  if (line.limit > 0.0) line.of_limit = line.value / line.limit;
  line.foreign_load = timing.foreign_load;
  line.core_to_core_ns = median(meter.core_to_core);
  return line;
}

AlternationOptions alternation_of(const TrainShape& shape, const BenchOptions& options) {
  AlternationOptions alternation;
  alternation.batches = shape.batches;
  alternation.passes = shape.passes;
  alternation.pairs = options.pairs;
  return alternation;
}

/// One rival; an empty name: none.
Status run_pair(const TrainShape& shape, std::vector<train::RankBatch>& batches,
                const std::string& rival_name, ThreadPool& pool, const BenchOptions& options,
                const BenchSink& sink) {
  PeakMeter meter{shape.precision == LayerPrecision::float32 ? kernels::Precision::float32
                                                             : kernels::Precision::bfloat16,
                  pool};
  AlternationOptions alternation = alternation_of(shape, options);
  const auto communicator = ThreadsGroup(1).communicator(0);
  RECMILL_ASSIGN_OR_RETURN(const auto workload,
                           TrainWorkload::make(shape, batches, *communicator, pool));
  if (rival_name.empty()) {
    RECMILL_ASSIGN_OR_RETURN(const Timing timing,
                             alternate(trainer(*workload, meter), {}, alternation));
    sink(line_of(shape, *workload, timing, meter));
    return {};
  }
  const TemporaryFolder folder;
  RECMILL_RETURN_IF_ERROR(workload->write(posix_files(), folder.path()));
  std::vector<std::string> arguments{options.scripts + "/pytorch_dlrm.py", folder.path(), "--serve",
                                     "--threads", std::to_string(options.threads)};
  if (rival_name == "pytorch_autocast_bf16") arguments.push_back("--autocast");
  RECMILL_ASSIGN_OR_RETURN(Rival rival, Rival::start(options.python, arguments));
  RECMILL_ASSIGN_OR_RETURN(const Json answer, rival.ask({{"check", kCheckedBatches}}));
  RECMILL_ASSIGN_OR_RETURN(const auto losses, losses_in(answer));
  RECMILL_RETURN_IF_ERROR(check_answer(shape, *workload, losses));
  alternation.own = {rival.pid()};
  RECMILL_ASSIGN_OR_RETURN(const Timing timing,
                           alternate(trainer(*workload, meter), timed_rival(rival), alternation));
  BenchLine line = line_of(shape, *workload, timing, meter);
  line.rival = rival_name;
  sink(line);
  return {};
}

Status run_case(const TrainShape& shape, const BenchOptions& options, const BenchSink& sink) {
  ThreadPool pool(static_cast<int>(options.threads));
  pool.set_thread_start([] { kernels::dense_layer::use_one_thread(); });
  std::vector<std::string> rivals{"pytorch_f32"};
  if (shape.precision == LayerPrecision::bfloat16) rivals.push_back("pytorch_autocast_bf16");
  if (!options.rivals) rivals = {""};
  auto batches = make_train_batches(shape, pool);
  for (const std::string& rival : rivals)
    RECMILL_RETURN_IF_ERROR(run_pair(shape, batches, rival, pool, options, sink));
  return {};
}

// ---- on a GPU

Result<RivalInRun> start_rival_on_gpu(const TrainWorkload& workload, const std::string& folder,
                                      const BenchOptions& options) {
  RECMILL_RETURN_IF_ERROR(workload.write(posix_files(), folder));
  RECMILL_ASSIGN_OR_RETURN(
      Rival process,
      Rival::start(options.python, {options.scripts + "/pytorch_dlrm.py", folder, "--serve",
                                    "--cuda", "--threads", std::to_string(options.threads)}));
  return RivalInRun("pytorch_eager", std::move(process));
}

/// Ours prepares batches ahead, as training does; all copy each batch to the GPU and end when it
/// has trained the last.
Contender trainer_ahead(TrainWorkload& workload) {
  return [&](std::span<const int64_t> order) -> Result<double> {
    const Stopwatch watch;
    RECMILL_RETURN_IF_ERROR(workload.train_ahead(order));
    return watch.seconds();
  };
}

/// The cases of one shape, which differ in how layers are launched. They and their rival take turns
/// in one run.
class GpuCases {
 public:
  /// `compiled`: the folder of the cases' kernels.
  GpuCases(std::span<const TrainShape> cases, const std::string& compiled,
           const BenchOptions& options)
      : cases_(cases), compiled_(compiled), options_(options) {}

  /// `rival`: whether there is one. When it fails, or its losses are not ours, the cases are timed
  /// without it, and of_rival() says why.
  Status run(bool rival, const BenchSink& sink) {
    RECMILL_RETURN_IF_ERROR(make_workloads());
    if (rival) RECMILL_RETURN_IF_ERROR(start_rival());
    AlternationOptions alternation = alternation_of(cases_[0], options_);
    // The CPU's load says little here, and while somebody looks at it a GPU lowers its clock.
    alternation.patience_seconds = 0;
    std::vector<Contender> contenders;
    for (const auto& workload : workloads_) contenders.push_back(trainer_ahead(*workload));
    if (takes_part()) {
      contenders.push_back(
          [this](std::span<const int64_t> order) { return rival_->seconds("run", order); });
    }
    RECMILL_ASSIGN_OR_RETURN(const Turns turns, take_turns(contenders, alternation));
    for (size_t c = 0; c < cases_.size(); ++c) sink(line_of(c, turns));
    return {};
  }

  Status of_rival() const { return rival_ ? rival_->status() : Status(); }

 private:
  bool emulated() const { return options_.device == DeviceKind::emulated; }
  bool takes_part() const { return rival_ && rival_->takes_part(); }

  Status make_workloads() {
    batches_ = make_train_batches(cases_[0], pool_);
    for (const TrainShape& shape : cases_) {
      RECMILL_ASSIGN_OR_RETURN(auto machine, open_gpu_machine(options_.device, compiled_, pool_));
      device_ = machine.gpu->properties().name;
      RECMILL_ASSIGN_OR_RETURN(
          auto workload,
          TrainWorkload::make_on_gpu(shape, batches_, *communicator_, pool_, std::move(machine)));
      workloads_.push_back(std::move(workload));
    }
    return {};
  }

  Status start_rival() {
    RECMILL_ASSIGN_OR_RETURN(rival_, start_rival_on_gpu(*workloads_[0], folder_.path(), options_));
    const Json answer = rival_->ask("check", kCheckedBatches);
    if (answer.is_null()) return {};
    const Status same = check_losses(answer);
    if (!same.ok()) rival_->leave(same);
    return {};
  }
  Status check_losses(const Json& answer) const {
    RECMILL_ASSIGN_OR_RETURN(const auto losses, losses_in(answer));
    for (size_t c = 0; c < cases_.size(); ++c)
      RECMILL_RETURN_IF_ERROR(check_answer(cases_[c], *workloads_[c], losses));
    return {};
  }

  BenchLine line_of(size_t c, const Turns& turns) const {
    BenchLine line;
    line.bench = "train";
    line.name = cases_[c].name;
    line.metric = emulated() ? "emulated_samples_per_second" : "samples_per_second";
    line.value = static_cast<double>(cases_[c].samples) / median(turns.seconds[c]);
    line.unit = "samples/s";
    if (takes_part()) {
      line.rival = rival_->system();
      line.ratio = ratio_of(turns.timing(c, cases_.size()));
    }
    line.device = device_;
    return line;
  }

  const std::span<const TrainShape> cases_;
  const std::string& compiled_;
  const BenchOptions& options_;
  ThreadPool pool_{static_cast<int>(options_.threads)};
  ThreadsGroup group_{1};
  std::unique_ptr<Communicator> communicator_ = group_.communicator(0);
  std::vector<train::RankBatch> batches_;
  std::vector<std::unique_ptr<TrainWorkload>> workloads_;
  std::string device_;
  TemporaryFolder folder_;  // of the rival
  std::optional<RivalInRun> rival_;
};

/// As much as the emulator trains in seconds.
TrainShape emulated(TrainShape shape) {
  shape.samples = std::min<int64_t>(shape.samples, 128);
  shape.batches = 2;
  shape.passes = 1;
  return shape;
}

Status run_cases_on_gpu(std::span<const TrainShape> shapes, const BenchOptions& options,
                        const BenchSink& sink) {
  const TemporaryFolder compiled;
  Status of_rival, failed;
  for (TrainShape shape : shapes) {
    if (options.device == DeviceKind::emulated) shape = emulated(shape);
    shape.name += "_f32";
    std::vector<TrainShape> cases;
    for (const bool graphs : {false, true}) {
      shape.graphs = graphs;
      if (graphs) shape.name += "_graphs";
      if (options.wants(shape.name)) cases.push_back(shape);
    }
    if (cases.empty()) continue;
    GpuCases run(cases, compiled.path(), options);
    const bool rival = options.rivals && options.device == DeviceKind::cuda && of_rival.ok();
    const Status status = run.run(rival, sink);  // other shapes' are run all the same
    if (failed.ok()) failed = status;
    if (rival) of_rival = run.of_rival();
  }
  return failed.ok() ? of_rival : failed;
}

}  // namespace

Status run_train_bench(const BenchOptions& options, const BenchSink& sink) {
  const TrainShape shapes[] = {{.name = "kaggle_b128", .samples = 128, .batches = 64, .passes = 2},
                               {.name = "kaggle_b2048", .samples = 2048, .batches = 16},
                               {.name = "kaggle_b16384", .samples = 16384, .batches = 4}};
  if (options.device != DeviceKind::cpu) return run_cases_on_gpu(shapes, options, sink);
  for (const auto precision : {LayerPrecision::float32, LayerPrecision::bfloat16}) {
    for (TrainShape shape : shapes) {
      shape.precision = precision;
      shape.name += precision == LayerPrecision::float32 ? "_f32" : "_bf16";
      if (options.wants(shape.name)) RECMILL_RETURN_IF_ERROR(run_case(shape, options, sink));
    }
  }
  return {};
}

}  // namespace recmill::bench
