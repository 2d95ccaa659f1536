// SPDX-License-Identifier: Apache-2.0
#include "bench/oracle/figure_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/clock.h"
#include "bench/oracle/streams.h"
#include "lookahead/oracle.h"
#include "lookahead/other_caches.h"

namespace recmill::bench {
namespace {

constexpr int64_t kPrefetch = 8, kCounted = 20;  // steps after the first window
constexpr double kZipf = 1.09;
constexpr double kWeightBytes = 48 * 4;  // of a row of the paper's models

struct Counts {
  double fetched = 0, distinct = 0;  // rows of a step
  int64_t slots = 0;                 // rows in slots, at most
  double seconds = 0;                // of a step
};

Result<Counts> count(const OracleStream& stream, int64_t lookahead, int64_t prefetch) {
  lookahead::Oracle oracle({.lookahead = lookahead, .prefetch = prefetch});
  Counts counts;
  size_t seen = 0;
  Stopwatch watch;
  for (int64_t step = 0; step < lookahead + 1 + kCounted; ++step) {
    if (step == lookahead + 1) watch = Stopwatch();
    while (!oracle.ready()) oracle.see(stream[seen++]);
    RECMILL_ASSIGN_OR_RETURN(const LookaheadStep decided, oracle.decide());
    if (step <= lookahead) continue;
    counts.fetched += static_cast<double>(decided.fetch.size()) / kCounted;
    counts.distinct += static_cast<double>(decided.uses.size()) / kCounted;
  }
  counts.seconds = watch.seconds() / kCounted;
  counts.slots = oracle.most_resident();
  return counts;
}

int64_t steps_of(int64_t lookahead) {
  return 2 * (lookahead + 1) + kCounted + kPrefetch;
}

class Figures {
 public:
  Figures(const BenchOptions& options, ThreadPool& pool, const BenchSink& sink)
      : options_(options), pool_(pool), sink_(sink) {}

  Status run() {
    RECMILL_RETURN_IF_ERROR(run_skew_cases());
    RECMILL_RETURN_IF_ERROR(run_table3());
    RECMILL_RETURN_IF_ERROR(run_figure17());
    return run_figures_3_and_4();
  }

 private:
  void line(const std::string& name, const std::string& metric, double value,
            const std::string& unit) const {
    BenchLine told;
    told.bench = "oracle";
    told.name = name;
    told.metric = metric;
    told.value = value;
    told.unit = unit;
    sink_(told);
  }

  /// Figures 18 and 19: what is fetched however skewed lookups are.
  Status run_skew_cases() const {
    std::vector<std::pair<std::string, RowLaw>> cases;
    for (const int percent : {90, 60, 40, 20, 1})
      cases.emplace_back(fmt::format("figure18_top_1_percent_has_{}", percent),
                         top_hundredth(kaggle_rows(), percent / 100.0));
    for (const double exponent : {1.0, 2.0, 3.0, 5.0})
      cases.emplace_back(fmt::format("figure19_zipf_{:g}", exponent), kaggle_zipf(exponent));
    for (const auto& [name, law] : cases) {
      if (!options_.wants(name)) continue;
      constexpr int64_t kLookahead = 200;
      const auto stream = make_stream(kaggle_rows(), law, kLookahead + 1 + kCounted + kLookahead,
                                      kOracleSamples, pool_);
      RECMILL_ASSIGN_OR_RETURN(const Counts counts, count(stream, kLookahead, kPrefetch));
      line(name, "distinct_rows_per_batch", counts.distinct, "rows");
      line(name, "fetched_rows_per_batch", counts.fetched, "rows");
    }
    return {};
  }

  /// Table 3: a cache by how far it looks ahead.
  Status run_table3() const {
    OracleStream stream;
    for (const int64_t lookahead : {300, 200, 100, 50, 10, 5}) {
      const std::string name = fmt::format("table3_lookahead_{}", lookahead);
      if (!options_.wants(name)) continue;
      if (stream.empty())
        stream = make_stream(kaggle_rows(), kaggle_zipf(kZipf), steps_of(lookahead), kOracleSamples,
                             pool_);
      RECMILL_ASSIGN_OR_RETURN(const Counts counts, count(stream, lookahead, kPrefetch));
      line(name, "cache_size", static_cast<double>(counts.slots) * kWeightBytes / 1e6, "MB");
      line(name, "fetched_rows_per_batch", counts.fetched, "rows");
    }
    return {};
  }

  /// Figure 17: a step of the oracle by features and by samples, on one core.
  Status run_figure17() const {
    const std::vector<int64_t> kaggle = kaggle_rows();
    const auto law = kaggle_zipf(kZipf);
    const auto time = [&](const std::string& name, size_t features, int64_t samples) -> Status {
      if (!options_.wants(name)) return {};
      std::vector<int64_t> rows;
      for (size_t t = 0; t < features; ++t) rows.push_back(kaggle[t % kaggle.size()]);
      const RowLaw of_tables = [&](size_t table, uint64_t first, uint64_t second) {
        return law(table % kaggle.size(), first, second);
      };
      constexpr int64_t kLookahead = 50;
      const auto stream = make_stream(rows, of_tables, steps_of(kLookahead), samples, pool_);
      RECMILL_ASSIGN_OR_RETURN(const Counts counts, count(stream, kLookahead, kPrefetch));
      line(name, "time_per_batch", 1e3 * counts.seconds, "ms");
      return {};
    };
    for (const size_t features : {13, 26, 52, 104})
      RECMILL_RETURN_IF_ERROR(
          time(fmt::format("figure17_features_{}", features), features, kOracleSamples));
    for (const int64_t samples : {2048, 4096, 8192, 32768})
      RECMILL_RETURN_IF_ERROR(
          time(fmt::format("figure17_samples_{}", samples), kaggle.size(), samples));
    return {};
  }

  /// Figures 3 and 4: what the hottest rows have of the lookups, and of a batch's distinct rows.
  Status run_figures_3_and_4() const {
    if (!options_.wants("figure3") && !options_.wants("figure4")) return {};
    constexpr int64_t kSingle = 400'000;  // samples
    const auto law = kaggle_zipf(kZipf);
    const auto single = make_stream(kaggle_rows(), law, kSingle, 1, pool_);
    std::map<int64_t, int64_t> lookups;
    for (const auto& rows : single)
      for (const int64_t row : rows) ++lookups[row];
    int64_t all_rows = 0;
    for (const int64_t rows : kaggle_rows()) all_rows += rows;
    std::vector<lookahead::RowLookups> counted;
    for (const auto& [row, times] : lookups) counted.push_back({row, times});
    const auto hottest = lookahead::most_looked_up(counted, all_rows / 1000);
    int64_t of_hottest = 0, of_all = 0;
    for (const auto& [row, times] : lookups) {
      of_all += times;
      if (std::ranges::binary_search(hottest, row)) of_hottest += times;
    }
    line("figure3", "lookups_of_hottest_thousandth",
         100.0 * static_cast<double>(of_hottest) / static_cast<double>(of_all), "%");
    for (const int64_t samples : {1, 128, 1024, 4096, 16384}) {
      const auto stream = make_stream(kaggle_rows(), law, samples == 1 ? 1000 : 10, samples, pool_);
      int64_t distinct = 0, hits = 0;
      for (const auto& rows : stream) {
        distinct += std::ssize(rows);
        for (const int64_t row : rows) hits += std::ranges::binary_search(hottest, row) ? 1 : 0;
      }
      line(fmt::format("figure4_samples_{}", samples), "distinct_rows_of_hottest_thousandth",
           100.0 * static_cast<double>(hits) / static_cast<double>(distinct), "%");
    }
    return {};
  }

  const BenchOptions& options_;
  ThreadPool& pool_;
  const BenchSink& sink_;
};

}  // namespace

Status run_oracle_figures(const BenchOptions& options, ThreadPool& pool, const BenchSink& sink) {
  return Figures(options, pool, sink).run();
}

}  // namespace recmill::bench
