// SPDX-License-Identifier: Apache-2.0
#include "bench/cached/gpu_cached_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/temporary_folder.h"
#include "bench/alternation.h"
#include "bench/cached/cached_stream.h"
#include "bench/gpu_machine.h"
#include "bench/placed/small_shape.h"
#include "step/data/cache_step_planner.h"
#include "step/data/data_stage.h"
#include "store/gpu/cached_gpu_store.h"
#include "store/gpu/fit_tables.h"
#include "store/tables/table_rows.h"
#include "table/home/embedded_home.h"

namespace recmill::bench {
namespace {

constexpr int64_t kLookahead = 60, kPrefetch = 4, kDim = 64;
constexpr int64_t kBatches = 8;  // of a repetition
constexpr int64_t kChecked = 2;  // batches before the first
constexpr int64_t kQueue = kPrefetch + 1;
constexpr int64_t kLargestTable = 2'000'000, kSamples = 16'384;
constexpr int64_t kRowsInCache = 4;  // one of so many
constexpr double kZipf = 1.09, kEmulatedScale = 0.01;
constexpr const char* kName = "kaggle_zipf_1.09";

/// One store and its data stage.
struct Way {
  std::string label;
  std::unique_ptr<store::StoreOnGpu> store;
  std::unique_ptr<train::DataStage> stage;  // goes before what it uses
  int64_t trained = 0;                      // batches
};

class GpuCachedBench {
 public:
  GpuCachedBench(GpuMachine machine, const BenchOptions& options, ThreadPool& pool)
      : options_(options),
        pool_(pool),
        emulated_(machine.emulated),
        kernels_{.slices = 8, .compile = machine.compile},
        gpu_(std::move(machine.gpu)) {}

  Status run(const BenchSink& sink) {
    if (!options_.wants(kName)) return {};
    const double scale = options_.scale > 0 ? options_.scale : emulated_ ? kEmulatedScale : 1.0;
    samples_ = std::max<int64_t>(8, std::llround(scale * kSamples));
    const auto most = std::max<int64_t>(8, std::llround(scale * kLargestTable));
    const FrozenShape shape = small_shape("kaggle", kDim, most);
    const int64_t batches = kChecked + (options_.pairs + 1) * kBatches + kLookahead + kPrefetch;
    stream_ = CachedStream::make(shape, kZipf, batches, samples_, 0, 1, pool_);
    RECMILL_RETURN_IF_ERROR(allocate_output());
    RECMILL_RETURN_IF_ERROR(add_ways());
    for (Way& way : ways_) RECMILL_RETURN_IF_ERROR(train(way, kChecked));
    std::vector<Contender> contenders;
    for (Way& way : ways_) contenders.push_back([&](auto) { return time(way); });
    AlternationOptions alternation{.batches = kBatches, .passes = 1, .pairs = options_.pairs};
    if (emulated_) alternation.patience_seconds = 0;  // its times mean nothing
    RECMILL_ASSIGN_OR_RETURN(const Turns turns, take_turns(contenders, alternation));
    report(turns, sink);
    return {};
  }

 private:
  const ModelSpec& model() const { return stream_.model; }

  Status allocate_output() {
    const size_t bytes = static_cast<size_t>(samples_ * std::ssize(model().features) * kDim) * 4;
    RECMILL_ASSIGN_OR_RETURN(values_, gpu_->allocate(bytes, "looked-up rows"));
    RECMILL_ASSIGN_OR_RETURN(values_of_host_, gpu_->allocate_pinned(bytes, "looked-up rows"));
    const int64_t stride = std::ssize(model().features) * kDim;
    for (int64_t f = 0; f < std::ssize(model().features); ++f) {
      output_.push_back({values_.address<float>() + f * kDim, stride});
      gradient_.push_back({values_.address<float>() + f * kDim, stride});
    }
    return {};
  }

  Status add_ways() {
    RECMILL_RETURN_IF_ERROR(add_cached());
    RECMILL_RETURN_IF_ERROR(add("fit", fitted()));
    const size_t tables = model().tables.size();
    RECMILL_RETURN_IF_ERROR(add("host", std::vector<store::RowsAt>(tables, GpuMemory::host)));
    return add("device", std::vector<store::RowsAt>(tables, GpuMemory::device));
  }

  int64_t cache_bytes() const {
    int64_t all = 0;
    for (const TableSpec& table : model().tables) all += bytes_of(table);
    return all / kRowsInCache;
  }
  static int64_t bytes_of(const TableSpec& table) {
    return table::EmbeddingTable::bytes(table, table::RowShare(table.rows, 0, 1));
  }

  /// Whole tables, as many as have room where the cache would be.
  std::vector<store::RowsAt> fitted() const {
    std::vector<store::TableTraffic> traffic;
    for (const TableSpec& table : model().tables)
      traffic.push_back(
          {bytes_of(table), static_cast<double>(table::EmbeddingTable::row_bytes(table))});
    const auto fitted = store::fit_tables(traffic, cache_bytes());
    return {fitted.begin(), fitted.end()};
  }

  void begin(Way& way, train::BatchWindow window) {
    way.stage = std::make_unique<train::DataStage>(std::make_unique<CachedStreamSource>(stream_),
                                                   std::move(window), *way.store, nullptr, kQueue);
  }

  Status add_cached() {
    Way& way = ways_.emplace_back();
    way.label = "cached";
    RECMILL_ASSIGN_OR_RETURN(auto tables, store::create_tables(model(), 1, 0, 1, pool_));
    RECMILL_ASSIGN_OR_RETURN(
        way.store, store::CachedGpuStore::create(
                       model(), 1, table::make_embedded_home(std::move(tables), pool_), gpu_,
                       kernels_, pool_));
    lookahead::CacheOptions of{
        .lookahead = kLookahead, .prefetch = kPrefetch, .cache = cache_bytes()};
    of.slots_apart = true;
    begin(way,
          train::BatchWindow(std::make_unique<train::CacheStepPlanner>(
              model(), store::GpuSlotStore::slot_bytes(model(), SlotTables(model())), of, pool_)));
    return {};
  }

  Status add(const std::string& label, const std::vector<store::RowsAt>& places) {
    Way& way = ways_.emplace_back();
    way.label = label;
    RECMILL_ASSIGN_OR_RETURN(way.store,
                             store::GpuStore::create(model(), 1, gpu_, kernels_, pool_, places));
    begin(way, train::BatchWindow(/*ahead=*/0));
    return {};
  }

  /// Rows looked up are the gradient as well. Waits for the last batch, whose rows are the same in
  /// every way.
  Status train(Way& way, int64_t batches) {
    recmill::Stream stream(pool_, &way.store->stream());
    for (int64_t b = 0; b < batches; ++b) {
      RECMILL_ASSIGN_OR_RETURN(auto batch, way.stage->next());
      if (batch == nullptr) return Status::Failed(way.label + ": the stream has ended");
      RECMILL_RETURN_IF_ERROR(way.store->lookup(*batch->prepared, output_, stream));
      const store::Update update{batch->prepared.get(), gradient_};
      RECMILL_RETURN_IF_ERROR(way.store->update({&update, 1}, {way.trained, 1.0}, stream));
      way.stage->recycle(std::move(batch));
      ++way.trained;
    }
    return way.store->stream().synchronize();
  }

  Status check_rows(Way& way) {
    GpuStream& stream = way.store->stream();
    RECMILL_RETURN_IF_ERROR(stream.to_host(values_of_host_, values_, values_.size()));
    RECMILL_RETURN_IF_ERROR(stream.synchronize());
    const auto last = static_cast<size_t>(way.trained);
    if (checksums_.size() <= last) checksums_.resize(last + 1);
    const auto bytes = values_of_host_.as<char>();
    const uint64_t now = hash_bytes(std::string_view(bytes.data(), values_.size()));
    if (checksums_[last] == 0) checksums_[last] = now;
    if (checksums_[last] == now) return {};
    return Status::Failed(fmt::format("{}: batch {} looks up other rows", way.label, way.trained));
  }

  Result<double> time(Way& way) {
    const Stopwatch watch;
    RECMILL_RETURN_IF_ERROR(train(way, kBatches));
    const double seconds = watch.seconds();
    RECMILL_RETURN_IF_ERROR(check_rows(way));
    return seconds;
  }

  BenchLine line_of(const std::string& metric, const Turns& turns) const {
    BenchLine line;
    line.bench = "cached";
    line.name = kName;
    line.metric = (emulated_ ? "emulated_" : "") + metric;
    line.device = gpu_->properties().name;
    line.foreign_load = turns.foreign_load;
    return line;
  }

  void report(const Turns& turns, const BenchSink& sink) const {
    for (size_t w = 1; w < ways_.size(); ++w) {
      BenchLine line = line_of("time_per_batch", turns);
      line.value = 1e3 * median(turns.seconds[0]);
      line.unit = "ms";
      line.rival = ways_[w].label;
      line.ratio = ratio_of(turns.timing(0, w));
      sink(line);
    }
    const MovedRows moved = ways_[0].store->stats().moved;
    const auto batches = static_cast<double>(ways_[0].trained);
    for (const auto& [metric, rows] : {std::pair{"rows_fetched_per_batch", moved.fetched},
                                       {"rows_written_back_per_batch", moved.written_back}}) {
      BenchLine line = line_of(metric, turns);
      line.value = static_cast<double>(rows) / batches;
      line.unit = "rows";
      sink(line);
    }
  }

  const BenchOptions& options_;
  ThreadPool& pool_;
  const bool emulated_;
  const store::GpuStoreKernels kernels_;
  const std::shared_ptr<Gpu> gpu_;
  int64_t samples_ = 0;  // of a batch
  CachedStream stream_;
  GpuBuffer values_;
  PinnedBuffer values_of_host_;
  std::vector<store::FeatureOutput> output_;
  std::vector<store::FeatureGradient> gradient_;
  std::vector<uint64_t> checksums_;  // by batches trained
  std::deque<Way> ways_;
};

}  // namespace

Status run_gpu_cached_bench(const BenchOptions& options, const BenchSink& sink) {
  const TemporaryFolder folder;
  ThreadPool pool(static_cast<int>(options.threads));
  RECMILL_ASSIGN_OR_RETURN(auto machine, open_gpu_machine(options.device, folder.path(), pool));
  return GpuCachedBench(std::move(machine), options, pool).run(sink);
}

}  // namespace recmill::bench
