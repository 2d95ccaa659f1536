// SPDX-License-Identifier: Apache-2.0
// `recmill bench reader`: from a file of Criteo rows to ready batches (ids hashed to rows, integers
// through the logarithm) against PyArrow, which only reads the same file, with the same threads.
#include <cmath>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/temporary_folder.h"
#include "bench/benches.h"
#include "bench/rival.h"
#include "preprocess/ops/log.h"
#include "preprocess/ops/sigrid_hash.h"
#include "reader/open_reader.h"
#include "reader/writers/convert.h"

namespace recmill::bench {
namespace {

constexpr int64_t kRows = 3'000'000;
constexpr int64_t kBatchRows = 16384;
constexpr uint64_t kTableRows = 1'000'000;

struct ReaderCase {
  std::string name;
  DataFormat format;
  std::string file;
  std::string rival;
};

/// Criteo's shape at the sizes of Kaggle's tables.
DataOptions source() {
  DataOptions options;
  options.format = DataFormat::synthetic;
  options.synthetic.rows = kRows;
  options.synthetic.cardinality_scale = 1.0;
  return options;
}

/// What a model would be given: rows of tables and transformed numbers.
struct ReadyBatch {
  std::vector<std::vector<uint64_t>> rows;
  std::vector<std::vector<float>> dense;
};

void transform(const ColumnBatch& batch, ThreadPool& pool, ReadyBatch& ready) {
  static const preprocess::Log log;
  static const preprocess::SigridHash hash(kTableRows, /*salt=*/7);
  ready.rows.resize(batch.ids.size());
  ready.dense.resize(batch.dense.size());
  const auto ids = static_cast<int64_t>(batch.ids.size());
  pool.run(ids + static_cast<int64_t>(batch.dense.size()), [&](int64_t task) {
    if (task < ids) {
      const auto& column = batch.ids[static_cast<size_t>(task)].ids;
      auto& rows = ready.rows[static_cast<size_t>(task)];
      rows.resize(column.size());
      preprocess::IdCounts counts;
      hash.run(column, rows, counts);
    } else {
      const auto column = static_cast<size_t>(task - ids);
      ready.dense[column].resize(batch.dense[column].size());
      log.run(batch.dense[column], ready.dense[column]);
    }
  });
}

/// Reads the file once, from opening it to its last ready batch; the count of rows.
Result<int64_t> read_file(const DataOptions& options, ThreadPool& pool) {
  RECMILL_ASSIGN_OR_RETURN(auto reader,
                           reader::open_reader(options, Subset::train, 0, pool, posix_files()));
  ColumnBatch batch;
  ReadyBatch ready;
  int64_t rows = 0;
  do {
    RECMILL_RETURN_IF_ERROR(reader->read(/*epoch=*/0, rows, kBatchRows, batch));
    transform(batch, pool, ready);
    rows += batch.samples;
  } while (batch.samples > 0);
  return rows;
}

bool same_numbers(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(
      a, b, [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

/// The first and the last rows of the file are those that were generated.
Status check_rows(const DataOptions& file, ThreadPool& pool) {
  RECMILL_ASSIGN_OR_RETURN(auto expected,
                           reader::open_reader(source(), Subset::train, 0, pool, posix_files()));
  RECMILL_ASSIGN_OR_RETURN(auto found,
                           reader::open_reader(file, Subset::train, 0, pool, posix_files()));
  for (const int64_t first : {int64_t{0}, kRows - kBatchRows}) {
    ColumnBatch a, b;
    RECMILL_RETURN_IF_ERROR(expected->read(0, first, kBatchRows, a));
    RECMILL_RETURN_IF_ERROR(found->read(0, first, kBatchRows, b));
    bool same = a.samples == b.samples && same_numbers(a.labels, b.labels) &&
                std::ranges::equal(a.dense, b.dense, same_numbers);
    for (size_t column = 0; same && column < a.ids.size(); ++column) {
      same =
          a.ids[column].offsets == b.ids[column].offsets && a.ids[column].ids == b.ids[column].ids;
    }
    if (!same) return Status::Failed(file.train[0] + ": other rows than were written");
  }
  return {};
}

Contender ours(const DataOptions& options, ThreadPool& pool) {
  return [&](std::span<const int64_t> order) -> Result<double> {
    const Stopwatch watch;
    for ([[maybe_unused]] const int64_t pass : order) {
      RECMILL_ASSIGN_OR_RETURN(const int64_t rows, read_file(options, pool));
      if (rows != kRows) return Status::Failed(options.train[0] + ": rows are missing");
    }
    return watch.seconds();
  };
}

Contender theirs(Rival& rival) {
  return [&](std::span<const int64_t> order) -> Result<double> {
    Json request;
    request["run"] = order.size();
    RECMILL_ASSIGN_OR_RETURN(const Json answer, rival.ask(request));
    if (answer["rows"] != kRows) return Status::Failed("the rival read other rows");
    return answer["seconds"].get<double>();
  };
}

Status run_case(const ReaderCase& what, const BenchOptions& options, const BenchSink& sink) {
  const TemporaryFolder folder;
  ThreadPool pool(static_cast<int>(options.threads));
  DataOptions file;
  file.format = what.format;
  file.train = {folder.path() + "/" + what.file};
  file.cache = folder.path() + "/cache";
  RECMILL_ASSIGN_OR_RETURN(auto rows,
                           reader::open_reader(source(), Subset::train, 0, pool, posix_files()));
  const auto written = reader::convert(*rows, {}, file.train[0], posix_files(), nullptr);
  RECMILL_RETURN_IF_ERROR(written.status());
  RECMILL_RETURN_IF_ERROR(check_rows(file, pool));

  AlternationOptions alternation;
  alternation.batches = 1;
  alternation.passes = 1;
  alternation.pairs = options.pairs;
  BenchLine line;
  line.bench = "reader";
  line.name = what.name;
  line.metric = "rows_per_second";
  line.unit = "rows/s";
  Timing timing;
  if (options.rivals) {
    RECMILL_ASSIGN_OR_RETURN(
        Rival rival,
        Rival::start(options.python, {options.scripts + "/click_log_reading.py", what.rival,
                                      file.train[0], std::to_string(options.threads)}));
    alternation.own = {rival.pid()};
    RECMILL_ASSIGN_OR_RETURN(timing, alternate(ours(file, pool), theirs(rival), alternation));
    line.rival = what.rival;
    line.ratio = ratio_of(timing);
  } else {
    RECMILL_ASSIGN_OR_RETURN(timing, alternate(ours(file, pool), {}, alternation));
  }
  line.value = kRows / median(timing.ours);
  line.foreign_load = timing.foreign_load;
  sink(line);
  return {};
}

}  // namespace

Status run_reader_bench(const BenchOptions& options, const BenchSink& sink) {
  const ReaderCase cases[] = {
      {"criteo_tsv", DataFormat::criteo_tsv, "rows.tsv", "pyarrow_csv"},
      {"criteo_parquet", DataFormat::parquet, "rows.parquet", "pyarrow_parquet"}};
  for (const ReaderCase& what : cases) {
    if (options.wants(what.name)) RECMILL_RETURN_IF_ERROR(run_case(what, options, sink));
  }
  return {};
}

}  // namespace recmill::bench
