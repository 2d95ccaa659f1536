// SPDX-License-Identifier: Apache-2.0
#include "train/verification.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

#include "comm/threads.h"
#include "device/buffer.h"
#include "table/embedding_table.h"
#include "train/memory.h"
#include "train/rank.h"
#include "train/resolved_run.h"
#include "train/scores.h"

namespace recmill::train {
namespace {

/// What a run of either way leaves.
struct Trace {
  std::vector<double> losses;     // of each training iteration, then of each evaluation batch
  std::vector<float> evaluation;  // probabilities
  std::vector<float> parameters;
  std::vector<DenseOptimizer::State> dense_state;
  std::vector<std::vector<uint64_t>> dictionaries;
};

/// All rows of a table as the plain way left them.
struct TableRows {
  Buffer weights;             // float32 [rows][dim]
  std::vector<Buffer> state;  // [columns], float32 [rows][width]
};

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

size_t first_difference(std::span<const float> a, std::span<const float> b) {
  size_t i = 0;
  while (i < a.size() && std::bit_cast<uint32_t>(a[i]) == std::bit_cast<uint32_t>(b[i])) ++i;
  return i;
}

Status train_and_score(const ResolvedRun& run, Rank& rank, Communicator& communicator,
                       Trace& trace) {
  DataStage stage(run.schedule(communicator.rank()), *rank.train_rows, rank.eval_rows.get(),
                  *rank.preprocessor, *rank.store, {},
                  static_cast<size_t>(run.options.train.queue));
  Scores scores;
  while (true) {
    RECMILL_ASSIGN_OR_RETURN(auto batch, stage.next());
    if (batch == nullptr) break;
    const int64_t iteration = batch->before.iteration;
    const bool training = batch->purpose == store::Purpose::train;
    const double scale = rank.learning_rate.scale(iteration);
    RECMILL_ASSIGN_OR_RETURN(const StepResult step,
                             training ? rank.trainer->train(*batch, store::Step{iteration, scale})
                                      : rank.trainer->score(*batch));
    trace.losses.push_back(step.loss);
    if (!training) {
      RECMILL_RETURN_IF_ERROR(gather_scores(communicator, *batch, step, scores));
      trace.evaluation.insert(trace.evaluation.end(), scores.probabilities.begin(),
                              scores.probabilities.end());
    }
    stage.recycle(std::move(batch));
  }
  const std::span<const float> parameters = rank.trainer->parameters();
  trace.parameters.assign(parameters.begin(), parameters.end());
  trace.dense_state = rank.dense_optimizer->state();
  const preprocess::DictionaryVersions versions = rank.preprocessor->versions();
  for (size_t d = 0; d < versions.size(); ++d) {
    trace.dictionaries.emplace_back(versions[d]);
    rank.preprocessor->read_dictionary(static_cast<int>(d), 0, trace.dictionaries.back());
  }
  return rank.store->settle();
}

constexpr const char *kPlainRows = "rows of the plain run",
                     *kDiffers = "differs from the plain run";

Result<Buffer> blank_column(const TableSpec& table, int64_t width) {
  auto column = Buffer::allocate(static_cast<size_t>(table.rows * width) * sizeof(float));
  if (!column.ok()) return column.status().at("table " + table.name + ", " + kPlainRows);
  return column;
}

Result<std::vector<TableRows>> blank_rows(const ModelSpec& spec) {
  std::vector<TableRows> tables;
  for (const TableSpec& table : spec.tables) {
    TableRows rows;
    RECMILL_ASSIGN_OR_RETURN(rows.weights, blank_column(table, table.dim));
    for (const table::StateColumn& column : table::row_state(table)) {
      RECMILL_ASSIGN_OR_RETURN(auto state, blank_column(table, column.width));
      rows.state.push_back(std::move(state));
    }
    tables.push_back(std::move(rows));
  }
  return tables;
}

void keep(const store::RowBlock& block, int64_t dim, TableRows& rows) {
  std::ranges::copy(block.weights, rows.weights.as<float>().begin() + block.first * dim);
  for (size_t c = 0; c < block.state.size(); ++c) {
    const auto width =
        static_cast<int64_t>(block.state[c].size()) / std::max<int64_t>(block.count, 1);
    std::ranges::copy(block.state[c], rows.state[c].as<float>().begin() + block.first * width);
  }
}

Status compare_column(const std::string& what, const store::RowBlock& block,
                      std::span<const float> engine, const Buffer& plain) {
  const auto width = static_cast<int64_t>(engine.size()) / std::max<int64_t>(block.count, 1);
  for (int64_t i = 0; i < block.count; ++i) {
    const auto row = engine.subspan(i * width, width);
    const auto expected = plain.as<const float>().subspan(block.row(i) * width, width);
    if (same_bits(row, expected)) continue;
    const size_t at = first_difference(row, expected);
    return Status::Failed(fmt::format("{}, row {}, element {}: engine {}, plain {}", what,
                                      block.row(i), at, row[at], expected[at]));
  }
  return {};
}

Status compare_block(const ModelSpec& spec, const store::RowBlock& block,
                     const std::vector<TableRows>& plain) {
  const TableSpec& table = spec.tables[block.table];
  const TableRows& rows = plain[block.table];
  RECMILL_RETURN_IF_ERROR(
      compare_column("table " + table.name, block, block.weights, rows.weights));
  const table::RowState columns = table::row_state(table);
  for (size_t c = 0; c < columns.size(); ++c) {
    RECMILL_RETURN_IF_ERROR(compare_column("table " + table.name + ", state " + columns[c].name,
                                           block, block.state[c], rows.state[c]));
  }
  return {};
}

Status compare_layers(const model::Model& model, const std::string& what,
                      std::span<const float> engine, std::span<const float> plain) {
  if (same_bits(engine, plain)) return {};
  const auto at = static_cast<int64_t>(first_difference(engine, plain));
  for (const model::ParameterSpec& layer : model.parameters()) {
    if (at < layer.offset || at >= layer.offset + layer.size()) continue;
    return Status::Failed(fmt::format("layer {}{}, element {}: engine {}, plain {}", layer.name,
                                      what, at - layer.offset, engine[at], plain[at]));
  }
  return Status::Failed("a dense parameter outside of all layers");
}

Status compare_losses(const Trace& engine, const Trace& plain) {
  if (engine.losses.size() != plain.losses.size()) {
    return Status::Failed(
        fmt::format("batches: engine {}, plain {}", engine.losses.size(), plain.losses.size()));
  }
  for (size_t i = 0; i < plain.losses.size(); ++i) {
    if (std::bit_cast<uint64_t>(engine.losses[i]) == std::bit_cast<uint64_t>(plain.losses[i]))
      continue;
    return Status::Failed(
        fmt::format("loss of batch {}: engine {}, plain {}", i, engine.losses[i], plain.losses[i]));
  }
  return {};
}

Status compare_rest(const model::Model& model, const Trace& engine, const Trace& plain) {
  RECMILL_RETURN_IF_ERROR(compare_layers(model, "", engine.parameters, plain.parameters));
  for (size_t s = 0; s < plain.dense_state.size(); ++s) {
    RECMILL_RETURN_IF_ERROR(compare_layers(model, ", state " + plain.dense_state[s].name,
                                           engine.dense_state[s].values,
                                           plain.dense_state[s].values));
  }
  if (engine.dictionaries != plain.dictionaries) return Status::Failed("a dictionary differs");
  if (!same_bits(engine.evaluation, plain.evaluation)) {
    return Status::Failed(fmt::format("evaluation sample {}: scores differ",
                                      first_difference(engine.evaluation, plain.evaluation)));
  }
  return {};
}

ResolvedRun with_ranks(ResolvedRun run, int ranks, int threads) {
  run.ranks = ranks;
  run.threads = threads;
  return run;
}

Status run_plain(const ResolvedRun& run, Files& files, Trace& trace, std::vector<TableRows>& rows) {
  const auto pool = make_pool(1);
  return run_ranks(1, [&](Communicator& communicator) -> Status {
    RECMILL_ASSIGN_OR_RETURN(Rank rank, make_rank(run, Way::plain, communicator, *pool, files));
    RECMILL_RETURN_IF_ERROR(train_and_score(run, rank, communicator, trace));
    return rank.store->read_rows([&](const store::RowBlock& block) {
      keep(block, run.spec.tables[block.table].dim, rows[block.table]);
      return Status();
    });
  });
}

// Compares on each rank the rows that it owns, and counts them: every row must be owned once.
Status run_engine(const ResolvedRun& run, Files& files, const Trace& plain,
                  const std::vector<TableRows>& rows) {
  const auto pool = make_pool(run.threads);
  std::mutex mutex;
  int64_t rows_seen = 0, rows_there = 0;
  for (const TableSpec& table : run.spec.tables) rows_there += table.rows;
  RECMILL_RETURN_IF_ERROR(run_ranks(run.ranks, [&](Communicator& communicator) -> Status {
    RECMILL_ASSIGN_OR_RETURN(Rank rank, make_rank(run, Way::engine, communicator, *pool, files));
    Trace trace;
    RECMILL_RETURN_IF_ERROR(train_and_score(run, rank, communicator, trace));
    const auto compare = [&]() -> Status {
      RECMILL_RETURN_IF_ERROR(compare_losses(trace, plain));
      RECMILL_RETURN_IF_ERROR(rank.store->read_rows([&](const store::RowBlock& block) {
        std::lock_guard lock(mutex);
        rows_seen += block.count;
        return compare_block(run.spec, block, rows);
      }));
      return compare_rest(*rank.model, trace, plain);
    };
    return compare().at(kDiffers);
  }));
  if (rows_seen == rows_there) return {};
  return Status::Failed(fmt::format("ranks own {} rows of {}", rows_seen, rows_there)).at(kDiffers);
}

}  // namespace

Result<Json> verify(const RunOptions& options, const VerificationRequest& request, Files& files) {
  RunOptions limited = options;
  limited.train.epochs = 1;
  limited.train.ranks = 1;
  limited.train.evaluate_every = 0;
  limited.train.iterations = options.train.iterations > 0
                                 ? std::min(options.train.iterations, request.iterations)
                                 : request.iterations;
  RECMILL_ASSIGN_OR_RETURN(const ResolvedRun run, resolve_run(limited, files));
  RECMILL_RETURN_IF_ERROR(
      check_memory(with_all_rows(memory_ledger(run), run.spec, kPlainRows, sizeof(float))));
  Trace plain;
  RECMILL_ASSIGN_OR_RETURN(std::vector<TableRows> rows, blank_rows(run.spec));
  RECMILL_RETURN_IF_ERROR(run_plain(with_ranks(run, 1, 1), files, plain, rows));
  request.say(fmt::format("plain run: {} batches", plain.losses.size()));
  Json result;
  result["verified"] = true;
  result["batches"] = plain.losses.size();
  result["tables"] = run.spec.tables.size();
  result["evaluation_samples"] = plain.evaluation.size();
  Json compared = Json::array();
  for (const int64_t ranks : request.ranks) {
    if (ranks > run.most_ranks()) {
      request.say(fmt::format("ranks {}: left out, the run can have {}", ranks, run.most_ranks()));
      continue;
    }
    RECMILL_RETURN_IF_ERROR(
        run_engine(with_ranks(run, static_cast<int>(ranks), run.threads), files, plain, rows)
            .at(fmt::format("ranks {}", ranks)));
    request.say(fmt::format("ranks {}: bitwise the same", ranks));
    compared.push_back(ranks);
  }
  result["ranks"] = compared;
  return result;
}

}  // namespace recmill::train
