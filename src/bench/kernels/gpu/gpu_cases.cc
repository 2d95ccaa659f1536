// SPDX-License-Identifier: Apache-2.0
#include "bench/kernels/gpu/gpu_cases.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/temporary_folder.h"
#include "bench/alternation.h"
#include "bench/kernels/gpu/unlike_batches.h"
#include "bench/kernels/workload.h"
#include "kernels/codegen/gpu/gpu_code.h"
#include "run/gpu/gpu_lookups.h"
#include "run/gpu/gpu_sources.h"

namespace recmill::bench {
namespace {

using kernels::ArrangeGpuBlocks;
using kernels::Schedule;
using kernels::codegen::CompiledGpuPool;
using kernels::codegen::Dispatch;
using kernels::gpu::PoolBlock;
using kernels::tune::GpuPoolSubject;

constexpr int kCompilers = 2;                  // at a time, of what "cold" is measured of
constexpr const char* kCompiledFor = "sm_90";  // of the lines on registers

/// One of those that take turns.
struct Side {
  std::string name;
  std::vector<Schedule> schedules;  // [features]
  CompiledGpuPool fused;
  ArrangeGpuBlocks arrange = nullptr;
  std::vector<double> seconds = {};  // [rounds], a batch
  double active_lanes = 0.0;         // of the emulator
};

/// As TorchRec, that is FBGEMM, chooses a kernel: by the largest dimension of all tables, of which
/// a thread takes four elements at a time; a warp for each sample of each feature where that is
/// more than 64, half of one up to 64, a quarter up to 32. `defaults` [features]: for the elements
/// that a thread may fetch at once.
std::vector<Schedule> torchrec_like(std::vector<Schedule> defaults, int64_t largest_dim) {
  const int threads = largest_dim <= 32 ? 8 : largest_dim <= 64 ? 16 : 32;
  for (Schedule& schedule : defaults)
    for (kernels::ParameterValue& parameter : schedule.parameters)
      if (parameter.name == "threads") parameter.value = threads;
  return defaults;
}

/// As TorchRec has them.
std::vector<int64_t> by_feature(std::vector<PoolBlock>&) {
  return {};
}

/// As HugeCTR has it: a thread for each element, and blocks of samples that go through all features
/// one after the other.
std::vector<Schedule> hugectr_like(std::vector<Schedule> defaults) {
  for (Schedule& schedule : defaults)
    for (kernels::ParameterValue& parameter : schedule.parameters)
      parameter.value = parameter.name == "threads" ? 32 : 1;
  return defaults;
}

/// A block of the grid for each part, with that part of every feature.
std::vector<int64_t> by_samples(std::vector<PoolBlock>& blocks) {
  std::ranges::stable_sort(blocks, {}, &PoolBlock::part);
  std::vector<int64_t> begins{0};
  for (size_t b = 1; b < blocks.size(); ++b)
    if (blocks[b].part != blocks[b - 1].part) begins.push_back(static_cast<int64_t>(b));
  begins.push_back(std::ssize(blocks));
  return begins;
}

/// How many blocks of the grid each feature has once and for all, whatever the batch (RecFlex,
/// figure 13): as many as its batches of history needed on average, or at most.
class StaticMapping {
 public:
  void see(std::span<const PoolBlock> blocks, size_t features) {
    std::vector<int64_t> counts(features);
    for (const PoolBlock& block : blocks) ++counts[block.feature];
    sums_.resize(features);
    most_.resize(features);
    for (size_t f = 0; f < features; ++f) {
      sums_[f] += counts[f];
      most_[f] = std::max(most_[f], counts[f]);
    }
    ++batches_;
  }
  ArrangeGpuBlocks by_mean() const {
    std::vector<int64_t> counts;
    for (const int64_t sum : sums_)
      counts.push_back(std::max<int64_t>(1, (sum + batches_ / 2) / std::max<int64_t>(1, batches_)));
    return arrange(std::move(counts), in_order(counts.size()));
  }
  ArrangeGpuBlocks by_most() const { return arrange(most_, in_order(most_.size())); }
  /// The same, of the features first whose blocks had most to do. `bytes` [features]: looked up in
  /// all batches of history.
  ArrangeGpuBlocks heaviest_first(std::span<const int64_t> bytes) const {
    std::vector<size_t> order = in_order(most_.size());
    std::ranges::stable_sort(order, std::greater(), [&](size_t feature) {
      return static_cast<double>(bytes[feature]) /
             static_cast<double>(std::max<int64_t>(1, sums_[feature]));
    });
    return arrange(most_, std::move(order));
  }

 private:
  static std::vector<size_t> in_order(size_t features) {
    std::vector<size_t> order(features);
    std::iota(order.begin(), order.end(), size_t{0});
    return order;
  }
  /// Each block of the grid takes an even share of its feature's blocks, one after the other; those
  /// of features that need fewer today have nothing to do.
  static ArrangeGpuBlocks arrange(std::vector<int64_t> counts, std::vector<size_t> order) {
    std::vector<size_t> places(order.size());
    for (size_t i = 0; i < order.size(); ++i) places[order[i]] = i;
    return [counts = std::move(counts), order = std::move(order),
            places = std::move(places)](std::vector<PoolBlock>& blocks) {
      std::ranges::stable_sort(blocks, {},
                               [&](const PoolBlock& block) { return places[block.feature]; });
      std::vector<int64_t> begins{0};
      size_t first = 0;
      for (const size_t f : order) {
        size_t last = first;
        while (last < blocks.size() && blocks[last].feature == static_cast<int32_t>(f)) ++last;
        const auto all = static_cast<int64_t>(last - first);  // 0: it is another kernel's
        for (int64_t share = 1; all > 0 && share <= counts[f]; ++share)
          begins.push_back(static_cast<int64_t>(first) + share * all / counts[f]);
        first = last;
      }
      return begins;
    };
  }
  std::vector<int64_t> sums_, most_;
  int64_t batches_ = 0;
};

class GpuCase {
 public:
  GpuCase(const std::string& name, const train::ResolvedRun& run, const BenchOptions& options,
          const BenchSink& sink)
      : name_(name),
        run_(run),
        options_(options),
        sink_(sink),
        pool_(std::make_unique<ThreadPool>(run.threads)) {}

  Status run() {
    RECMILL_RETURN_IF_ERROR(tune());
    RECMILL_RETURN_IF_ERROR(add_rivals());
    RECMILL_RETURN_IF_ERROR(add_static());
    RECMILL_RETURN_IF_ERROR(read_test_batches());
    RECMILL_RETURN_IF_ERROR(take_turns());
    report("");
    return report_compiled();
  }

  Status run_mappings() {
    RECMILL_RETURN_IF_ERROR(tune());
    RECMILL_RETURN_IF_ERROR(add_static());
    const std::vector<int64_t> bytes = looked_up_bytes();
    const size_t heaviest = std::ranges::max_element(bytes) - bytes.begin();
    RECMILL_RETURN_IF_ERROR(read_test_batches());
    RECMILL_RETURN_IF_ERROR(take_turns());
    report("");
    std::vector<SparseBatch> heavy = test_;
    for (SparseBatch& batch : heavy)
      lengthen(batch.features[heaviest], kHeavyFactor, rows_of(heaviest));
    RECMILL_RETURN_IF_ERROR(
        read_test_batches(std::vector<int64_t>(emulated() ? 1 : kLargeBatches, kLargeBatch)));
    RECMILL_RETURN_IF_ERROR(take_turns());
    report("_2560");
    test_ = std::move(heavy);
    subject().set_batches(test_);
    RECMILL_RETURN_IF_ERROR(take_turns());
    report("_heavy");
    return {};
  }

 private:
  bool emulated() const { return options_.device == DeviceKind::emulated; }
  GpuPoolSubject& subject() { return lookups_->subject(); }

  int64_t largest_dim() const {
    int64_t largest = 0;
    for (const TableSpec& table : run_.spec.tables) largest = std::max(largest, table.dim);
    return largest;
  }
  int64_t rows_of(size_t feature) const {
    return run_.spec.tables[run_.spec.features[feature].table].rows;
  }

  Status tune() {
    train::BatchesRequest history{.seed = kTuneSeed};
    if (emulated()) history.least = history.most = 1;
    RECMILL_ASSIGN_OR_RETURN(lookups_,
                             train::GpuLookups::make(run_, history, *pool_, posix_files()));
    auto options = train::gpu_tuner_options(options_.device, lookups_->gpu());
    options.visited = std::min(options.visited, kVisited);
    options.rounds = std::min(options.rounds, kLocalRounds);
    RECMILL_ASSIGN_OR_RETURN(tuned_, tune_on_gpu(
                                         subject(), options, [](double) {}, never_));
    const auto schedules = subject().by_feature(kernels::tune::schedules_of(tuned_.choice));
    return add("tuned", schedules, {tuned_.choice.value.blocks});
  }

  Status add(const std::string& name, std::vector<Schedule> schedules,
             const GpuPoolSubject::FuseOptions& how, ArrangeGpuBlocks arrange = nullptr) {
    RECMILL_ASSIGN_OR_RETURN(auto fused, subject().fuse(schedules, how));
    sides_.push_back({name, std::move(schedules), std::move(fused), std::move(arrange)});
    return {};
  }

  Status add_rivals() {
    const auto defaults = subject().by_feature(subject().defaults());
    RECMILL_RETURN_IF_ERROR(
        add("torchrec_like", torchrec_like(defaults, largest_dim()), {}, by_feature));
    RECMILL_RETURN_IF_ERROR(
        add("hugectr_like", hugectr_like(defaults), {.listed = true}, by_samples));
    RECMILL_RETURN_IF_ERROR(add("untuned", defaults, {}));
    RECMILL_RETURN_IF_ERROR(add("tuned_by_pointers", sides_[0].schedules,
                                {tuned_.choice.value.blocks, Dispatch::pointers}));
    return emulated() ? Status() : add_separate();
  }

  Status add_static() {
    StaticMapping mapping;
    for (int64_t batch = 0; batch < subject().batches(); ++batch) {
      RECMILL_RETURN_IF_ERROR(subject().run_fused(sides_[0].fused, batch).status());
      mapping.see(subject().mapped(), run_.spec.features.size());
    }
    const GpuPoolSubject::FuseOptions how{tuned_.choice.value.blocks, Dispatch::branches, true};
    RECMILL_RETURN_IF_ERROR(add("static_mean", sides_[0].schedules, how, mapping.by_mean()));
    RECMILL_RETURN_IF_ERROR(add("static_most", sides_[0].schedules, how, mapping.by_most()));
    return add("static_heaviest_first", sides_[0].schedules, how,
               mapping.heaviest_first(looked_up_bytes()));
  }

  /// Of each feature, in the batches that were tuned on.
  std::vector<int64_t> looked_up_bytes() const {
    std::vector<int64_t> bytes(run_.spec.features.size());
    for (const SparseBatch& batch : lookups_->batches())
      for (size_t f = 0; f < bytes.size(); ++f)
        bytes[f] +=
            std::ssize(batch.features[f].rows) * run_.spec.tables[run_.spec.features[f].table].dim;
    return bytes;
  }

  /// The winners of candidates that each ran alone (RecFlex, section II-C); only times of a GPU
  /// tell them.
  Status add_separate() {
    kernels::tune::FamilyTimes times = tuned_.times;
    times.values.assign(1, {});
    for (size_t c = 0; c < times.classes.size(); ++c) {
      RECMILL_ASSIGN_OR_RETURN(auto of, subject().time_alone(c, 1, kAloneRounds));
      times.values[0].classes.push_back(std::move(of));
    }
    times.values[0].fused_nanoseconds = 1.0;
    RECMILL_ASSIGN_OR_RETURN(const auto choice, choose(times));
    return add("separate_combine", subject().by_feature(kernels::tune::schedules_of(choice)), {});
  }

  /// Of `samples` each, where there are any.
  Status read_test_batches(std::vector<int64_t> samples = {}) {
    train::BatchesRequest unseen{.seed = kTestSeed, .samples = std::move(samples)};
    if (emulated()) unseen.least = unseen.most = 1;
    RECMILL_ASSIGN_OR_RETURN(test_, train::read_batches(run_, unseen, *pool_, posix_files()));
    subject().set_batches(test_);
    return {};
  }

  Status take_turns() {
    for (Side& side : sides_) {
      side.seconds.clear();
      RECMILL_RETURN_IF_ERROR(
          subject().check_fused(side.fused, side.schedules, 0, side.arrange).at(side.name));
    }
    const int64_t rounds = emulated() ? 1 : options_.pairs + 1;
    for (int64_t round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < sides_.size(); ++i) {
        Side& side = sides_[(i + static_cast<size_t>(round)) % sides_.size()];
        const emulation::Usage before = lookups_->usage();
        double sum = 0.0;
        for (int64_t batch = 0; batch < subject().batches(); ++batch) {
          RECMILL_ASSIGN_OR_RETURN(const double seconds,
                                   subject().run_fused(side.fused, batch, side.arrange));
          sum += seconds;
        }
        if (round > 0 || emulated())
          side.seconds.push_back(sum / static_cast<double>(subject().batches()));
        emulation::Usage used = lookups_->usage();
        used.steps -= before.steps;
        used.warp_steps -= before.warp_steps;
        side.active_lanes = used.active_lanes();
      }
    }
    return {};
  }

  BenchLine line(const std::string& metric, double value, const std::string& unit,
                 const std::string& suffix = "") const {
    BenchLine line;
    line.bench = "kernels";
    line.name = name_ + suffix;
    line.metric = metric;
    line.value = value;
    line.unit = unit;
    line.device = lookups_->gpu().properties().name;
    return line;
  }

  void report(const std::string& suffix) const {
    const Side& ours = sides_.front();
    const char* unit = emulated() ? "counted ms" : "ms";
    for (const Side& side : sides_) {
      if (&side != &ours) {
        BenchLine beside = line("time_per_batch", median(ours.seconds) * 1e3, unit, suffix);
        beside.rival = side.name;
        beside.ratio = ratio_of({ours.seconds, side.seconds, 0.0});
        sink_(beside);
      }
      if (emulated()) sink_(line("active_lanes_" + side.name, side.active_lanes, "of 32", suffix));
    }
  }

  /// What the tuned kernels are, compiled anew for an H100 by two compilers at a time: for the
  /// occupancy that was chosen, and on the emulator, which cannot choose one, for the highest at
  /// which nothing is spilled. Then what training loads beside them.
  Status report_compiled() const {
    const int64_t chosen = tuned_.choice.value.blocks;
    int64_t blocks = emulated() || chosen == 0 ? kMostBlocks : chosen;
    Compiled branches;
    while (true) {
      RECMILL_ASSIGN_OR_RETURN(branches, compile_fused(Dispatch::branches, blocks));
      const bool spills =
          std::ranges::any_of(branches.codes, [](const auto& code) { return code.spilled > 0; });
      if (!emulated() || !spills || blocks == 1) break;
      --blocks;
    }
    RECMILL_ASSIGN_OR_RETURN(const Compiled pointers, compile_fused(Dispatch::pointers, blocks));
    int64_t schedules = 0;
    for (const auto& source : sides_[0].fused.sources) schedules += std::ssize(source.functions);
    sink_(line("distinct_schedules", static_cast<double>(schedules), ""));
    sink_(line("blocks_asked_for", static_cast<double>(blocks), "an SM"));
    report_codes("branches", branches);
    report_codes("pointers", pointers);
    train::ResolvedRun whole = run_;
    whole.options.gpu.preprocess = true;
    whole.options.train.deterministic = false;  // layers are on the GPU, too
    RECMILL_ASSIGN_OR_RETURN(const auto loaded, train::gpu_sources(whole, {}));
    RECMILL_ASSIGN_OR_RETURN(const Compiled beside, compile(loaded.others));
    report_codes("beside", beside);
    return {};
  }

  struct Compiled {
    std::vector<train::LaunchedSource> sources;
    std::vector<kernels::codegen::GpuCode> codes;  // [sources]
    int64_t exactly = 0;  // blocks of an SM that they are launched for; 0: any number
    double cold_seconds = 0.0;
    int64_t warm_compilations = 0;
  };
  Result<Compiled> compile_fused(Dispatch dispatch, int64_t blocks) const {
    std::vector<kernels::codegen::PoolFunction> wanted;
    for (const auto& source : sides_[0].fused.sources)
      wanted.insert(wanted.end(), source.functions.begin(), source.functions.end());
    RECMILL_ASSIGN_OR_RETURN(
        const auto made,
        kernels::codegen::gpu_pool_sources(
            wanted, {.made_by = "Recmill", .dispatch = dispatch, .blocks = blocks}));
    std::vector<train::LaunchedSource> sources;
    for (const auto& source : made) sources.push_back({source, kernels::gpu::kBlockThreads});
    RECMILL_ASSIGN_OR_RETURN(Compiled compiled, compile(std::move(sources)));
    compiled.exactly = emulated() ? 0 : tuned_.choice.value.blocks;
    return compiled;
  }
  static Result<Compiled> compile(std::vector<train::LaunchedSource> sources) {
    const TemporaryFolder folder;
    ThreadPool compilers(kCompilers);
    std::vector<kernels::codegen::GpuSource> texts;
    for (const auto& source : sources) texts.push_back(source.source);
    Compiled compiled;
    compiled.sources = std::move(sources);
    RECMILL_ASSIGN_OR_RETURN(auto cold,
                             kernels::codegen::CubinCache::open(folder.path(), posix_files()));
    const Stopwatch watch;
    RECMILL_ASSIGN_OR_RETURN(compiled.codes, cold.load(texts, kCompiledFor, compilers));
    compiled.cold_seconds = watch.seconds();
    RECMILL_ASSIGN_OR_RETURN(auto warm,
                             kernels::codegen::CubinCache::open(folder.path(), posix_files()));
    RECMILL_RETURN_IF_ERROR(warm.load(texts, kCompiledFor, compilers).status());
    compiled.warm_compilations = warm.compilations();
    return compiled;
  }

  /// The most that any of the kernels takes, and the least occupancy.
  void report_codes(const std::string& of, const Compiled& compiled) const {
    const auto gpu = gpu_of_architecture(kCompiledFor);
    int64_t registers = 0, spilled = 0, stack = 0, shared = 0, bytes = 0;
    double occupancy = 1.0;
    for (size_t k = 0; k < compiled.codes.size(); ++k) {
      const auto& code = compiled.codes[k];
      const int threads = compiled.sources[k].threads;
      registers = std::max<int64_t>(registers, code.resources.registers);
      spilled = std::max(spilled, code.spilled);
      stack = std::max(stack, code.resources.stack);
      shared = std::max(shared, code.resources.shared);
      bytes += std::ssize(code.code.cubin);
      const int64_t unused =
          compiled.exactly > 0 ? shared_that_leaves(*gpu, code.resources, threads, compiled.exactly)
                               : 0;
      const int fit = blocks_per_sm(*gpu, code.resources, threads, unused);
      occupancy = std::min(occupancy, occupancy_of(*gpu, fit, threads));
    }
    const auto say = [&](const char* metric, double value, const char* unit) {
      sink_(line(metric + ("_" + of), value, unit));
    };
    say("kernels", static_cast<double>(compiled.codes.size()), "");
    say("registers", static_cast<double>(registers), "a thread");
    say("spilled", static_cast<double>(spilled), "bytes a thread");
    say("stack", static_cast<double>(stack), "bytes a thread");
    say("shared", static_cast<double>(shared), "bytes a block");
    say("occupancy", occupancy, "");
    say("binary", static_cast<double>(bytes), "bytes");
    say("cold_compilation", compiled.cold_seconds, "s");
    say("warm_compilations", static_cast<double>(compiled.warm_compilations), "");
  }

  static constexpr int64_t kVisited = 4, kLocalRounds = 3;  // of tuning, which is not timed here
  static constexpr int64_t kAloneRounds = 5, kMostBlocks = 8;

  const std::string& name_;
  const train::ResolvedRun& run_;
  const BenchOptions& options_;
  const BenchSink& sink_;
  const std::unique_ptr<ThreadPool> pool_;
  const std::atomic<bool> never_{false};
  std::unique_ptr<train::GpuLookups> lookups_;
  kernels::tune::FamilyTuning tuned_;
  std::vector<SparseBatch> test_;
  std::vector<Side> sides_;  // ours first
};

}  // namespace

Status run_gpu_case(const std::string& name, const train::ResolvedRun& run,
                    const BenchOptions& options, const BenchSink& sink) {
  return GpuCase(name, run, options, sink).run();
}

Status run_gpu_mapping_case(const std::string& name, const train::ResolvedRun& run,
                            const BenchOptions& options, const BenchSink& sink) {
  return GpuCase(name, run, options, sink).run_mappings();
}

}  // namespace recmill::bench
