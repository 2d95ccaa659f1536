// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "bench/benches.h"
#include "bench/oracle/figure_cases.h"
#include "bench/oracle/streams.h"
#include "lookahead/oracle.h"

namespace recmill::bench {
namespace {

constexpr int64_t kSamples = kOracleSamples, kLookahead = 200, kPrefetch = 8;
constexpr int64_t kWindow = kLookahead + 1, kTimed = 60;  // steps; the window is filled before
constexpr double kZipf = 1.09;
constexpr double kPaper = 3.27e6;  // samples a second, BagPipe, section 5

struct Outcome {
  double seconds = 0.0;               // of the steps that follow the first window
  int64_t fetched = 0, distinct = 0;  // of the same
  int64_t slots = 0;                  // rows in slots, at most
  double bytes_of_row = 0.0;          // of a distinct row of the window, when it is full
};

/// The window is full before time counts; each step is then one that is seen and one decided.
Result<Outcome> decide(const OracleStream& stream, const lookahead::OracleOptions& options) {
  lookahead::Oracle oracle(options);
  Outcome outcome;
  size_t seen = 0;
  const auto decide_next = [&]() -> Result<LookaheadStep> {
    while (!oracle.ready()) oracle.see(stream[seen++]);
    return oracle.decide();
  };
  int64_t decided = 0;
  for (; decided < kWindow; ++decided) RECMILL_RETURN_IF_ERROR(decide_next().status());
  outcome.bytes_of_row =
      static_cast<double>(oracle.bytes()) / static_cast<double>(oracle.window_rows());
  const Stopwatch watch;
  for (; decided < kWindow + kTimed; ++decided) {
    RECMILL_ASSIGN_OR_RETURN(const LookaheadStep step, decide_next());
    outcome.fetched += std::ssize(step.fetch);
    outcome.distinct += std::ssize(step.uses);
  }
  outcome.seconds = watch.seconds();
  outcome.slots = oracle.most_resident();
  return outcome;
}

}  // namespace

Status run_oracle_bench(const BenchOptions& options, const BenchSink& sink) {
  const std::string name = "kaggle_zipf_1.09";
  ThreadPool pool(static_cast<int>(options.threads));
  RECMILL_RETURN_IF_ERROR(run_oracle_figures(options, pool, sink));
  if (!options.wants(name)) return {};
  const OracleStream stream =
      make_stream(kaggle_rows(), kaggle_zipf(kZipf), 2 * kWindow + kTimed, kSamples, pool);
  const lookahead::OracleOptions of{.lookahead = kLookahead, .prefetch = kPrefetch};
  Outcome counted;
  const auto ours = [&](std::span<const int64_t>) -> Result<double> {
    RECMILL_ASSIGN_OR_RETURN(counted, decide(stream, of));
    return counted.seconds;
  };
  RECMILL_ASSIGN_OR_RETURN(
      const Timing timing,
      alternate(ours, {}, {.batches = kTimed, .passes = 1, .pairs = options.pairs}));
  RECMILL_ASSIGN_OR_RETURN(const Outcome whole_window,
                           decide(stream, {.lookahead = kLookahead, .prefetch = kLookahead}));
  const auto line = [&](const std::string& metric, double value, const std::string& unit,
                        double limit, double of_limit) {
    BenchLine told{.bench = "oracle",
                   .name = name,
                   .metric = metric,
                   .value = value,
                   .unit = unit,
                   .rival = "",
                   .ratio = {}};
    told.limit = limit;
    told.of_limit = of_limit;
    told.foreign_load = timing.foreign_load;
    sink(told);
  };
  const double rate = static_cast<double>(kSamples) / median(timing.ours);
  line("samples_per_second", rate, "samples/s", kPaper, rate / kPaper);
  const double fetched =
      static_cast<double>(counted.fetched) / static_cast<double>(counted.distinct);
  line("fetched_of_distinct", fetched, "", 0.16, fetched / 0.16);
  const double slots = static_cast<double>(counted.slots) / static_cast<double>(whole_window.slots);
  line("slots_of_window_rows", slots, "", 0.4, slots / 0.4);
  line("bytes_of_window_row", counted.bytes_of_row, "bytes", 64, counted.bytes_of_row / 64);
  return {};
}

}  // namespace recmill::bench
