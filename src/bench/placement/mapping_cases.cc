// SPDX-License-Identifier: Apache-2.0
// How fast ids become places in a map of OPER's plan.
#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>

#include "base/clock.h"
#include "bench/placement/placement_cases.h"
#include "bench/placement/shape_problem.h"
#include "device/buffer.h"
#include "table/placed_tables.h"

namespace recmill::bench {
namespace {

constexpr int kDevices = 8;
constexpr int64_t kBatches = 8, kBatchSamples = 1 << 15;
constexpr int64_t kLineRows = 448;  // of a line of a table::RowMap

/// [tables]: ids of one batch.
using Ids = std::vector<std::vector<int64_t>>;

/// As they are drawn, or those alone that `counts` has exactly.
std::vector<Ids> draw_ids(const FrozenShape& shape, const Law& law, const AccessCounts* counts,
                          ThreadPool& pool) {
  const ShapeDraw source(shape, law.zipf, kOtherSeed);
  std::vector<Ids> batches;
  for (int64_t b = 0; b < kBatches; ++b) {
    SparseBatch batch;
    source.draw(b * kBatchSamples, kBatchSamples, batch, pool);
    Ids& ids = batches.emplace_back();
    for (size_t t = 0; t < shape.rows.size(); ++t) {
      ids.push_back(std::move(batch.features[t].rows));
      if (counts == nullptr) continue;
      const auto& hot = counts->tables[t].hot_rows;
      std::erase_if(ids[t], [&](int64_t row) { return !std::ranges::binary_search(hot, row); });
    }
  }
  return batches;
}

/// Whether ids of `batch` are at home where the plan has them.
Status check_places(const PlacementPlan& plan, const std::vector<table::TableShare>& shares,
                    const Ids& batch) {
  for (size_t t = 0; t < shares.size(); ++t) {
    std::vector<int64_t> rows = batch[t];
    std::ranges::sort(rows);
    PathCursor path(plan.tables[t]);
    for (const int64_t row : rows) {
      const int home = plan.paths[path.at(row)].home;
      if (shares[t].rows.owner(row) != home)
        return Status::Failed("mapping: row " + std::to_string(row) + " of table '" +
                              plan.tables[t].table + "' is not at device " + std::to_string(home));
    }
  }
  return {};
}

/// Maps whole batches.
Contender mapper(const std::vector<table::TableShare>& shares, const std::vector<Ids>& batches,
                 std::vector<std::vector<table::RowPlace>>& places, ThreadPool& pool) {
  return [&](std::span<const int64_t> order) -> Result<double> {
    const Stopwatch watch;
    for (const int64_t b : order) {
      pool.run(std::ssize(shares), [&](int64_t t) {
        places[t].resize(batches[b][t].size());
        if (const table::RowMap* map = shares[t].rows.map(); map != nullptr)
          map->places(batches[b][t], places[t].data());
      });
    }
    return watch.seconds();
  };
}

/// The cache lines of all maps, and one word of a line read for each id.
class Lines {
 public:
  static Result<Lines> make(const FrozenShape& shape) {
    Lines lines;
    int64_t count = 0;
    for (const int64_t rows : shape.rows) {
      lines.firsts_.push_back(count);
      count += (rows + kLineRows - 1) / kLineRows;
    }
    RECMILL_ASSIGN_OR_RETURN(lines.buffer_, Buffer::allocate(static_cast<size_t>(count) * 64));
    std::ranges::fill(lines.buffer_.as<uint64_t>(), 1);
    return lines;
  }
  /// Fetches them so many ids ahead.
  Contender reader(int64_t ahead, const std::vector<Ids>& batches, std::atomic<uint64_t>& read,
                   ThreadPool& pool) const {
    return [&, this, ahead](std::span<const int64_t> order) -> Result<double> {
      const Stopwatch watch;
      for (const int64_t b : order)
        pool.run(std::ssize(firsts_),
                 [&](int64_t t) { read += sum(batches[b][t], firsts_[t], ahead); });
      return watch.seconds();
    };
  }

 private:
  uint64_t sum(std::span<const int64_t> ids, int64_t first, int64_t ahead) const {
    const uint64_t* const words = buffer_.as<uint64_t>().data() + first * 8;
    const auto word = [&](int64_t id) { return words + id / kLineRows * 8; };
    uint64_t sum = 0;
    const int64_t fetched = std::max<int64_t>(0, std::ssize(ids) - ahead);
    for (int64_t i = 0; i < fetched; ++i) {
      __builtin_prefetch(word(ids[i + ahead]));
      sum += *word(ids[i]);
    }
    for (int64_t i = fetched; i < std::ssize(ids); ++i) sum += *word(ids[i]);
    return sum;
  }

  std::vector<int64_t> firsts_;  // [tables]
  Buffer buffer_;
};

Status run_mapping(const std::string& name, const char* shape_name, const Law& law, bool hot,
                   const BenchOptions& options, const BenchSink& sink) {
  if (!options.wants(name)) return {};
  RECMILL_ASSIGN_OR_RETURN(const FrozenShape shape, frozen_shape(shape_name));
  ThreadPool pool(static_cast<int>(options.threads));
  RECMILL_ASSIGN_OR_RETURN(AccessCounts counts, counts_for(shape, law, kPlannedSeed, options));
  const std::vector<Ids> batches = draw_ids(shape, law, hot ? &counts : nullptr, pool);
  std::vector<table::TableShare> shares;
  {
    const placement::Problem problem = problem_of(shape, std::move(counts), kDevices);
    RECMILL_ASSIGN_OR_RETURN(const auto proposal,
                             plan_placement(problem, placement::PlannerKind::oper, {}));
    RECMILL_ASSIGN_OR_RETURN(const auto placed, table::PlacedTables::create(
                                                    proposal.plan, shape.spec().tables, kDevices));
    shares = placed->shares(0);
    RECMILL_RETURN_IF_ERROR(check_places(proposal.plan, shares, batches[0]));
  }
  RECMILL_ASSIGN_OR_RETURN(const auto lines, Lines::make(shape));
  std::vector<std::vector<table::RowPlace>> places(shares.size());
  std::atomic<uint64_t> read{0};
  AlternationOptions alternation;
  alternation.batches = kBatches;
  alternation.pairs = options.pairs;
  std::vector<Contender> contenders{mapper(shares, batches, places, pool)};
  for (const int64_t ahead : {16, 32, 64})
    contenders.push_back(lines.reader(ahead, batches, read, pool));
  RECMILL_ASSIGN_OR_RETURN(const Turns turns, take_turns(contenders, alternation));
  double fastest = std::numeric_limits<double>::infinity();
  for (size_t c = 1; c < contenders.size(); ++c)
    fastest = std::min(fastest, median(turns.seconds[c]));
  double ids = 0;
  for (const Ids& batch : batches)
    for (const auto& of_table : batch) ids += static_cast<double>(of_table.size()) / kBatches;
  BenchLine line = line_of(name, "ids_per_second", ids / 1e6 / median(turns.seconds[0]), "M ids/s");
  line.limit = ids / 1e6 / fastest;
  line.of_limit = line.value / line.limit;
  line.foreign_load = turns.foreign_load;
  sink(line);
  return {};
}

}  // namespace

Status run_mapping_cases(const BenchOptions& options, const BenchSink& sink) {
  RECMILL_RETURN_IF_ERROR(
      run_mapping("mapping_hot", "terabyte", kLaws[1], /*hot=*/true, options, sink));
  return run_mapping("mapping_2.5b", "syn_large", kLaws[0], /*hot=*/false, options, sink);
}

}  // namespace recmill::bench
