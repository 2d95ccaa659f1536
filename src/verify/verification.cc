// SPDX-License-Identifier: Apache-2.0
#include "verify/verification.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <optional>

#include "base/hash.h"
#include "base/json/json.h"
#include "comm/threads.h"
#include "placement_plan/plan_file.h"
#include "run/fit_columns.h"
#include "run/gpu/gpu_run.h"
#include "run/handshake.h"
#include "run/hotset/choose_hot_rows.h"
#include "run/hotset/hot_folder.h"
#include "run/memory.h"
#include "run/placement/run_placement.h"
#include "run/rank.h"
#include "run/resolved_run.h"
#include "step/scores.h"
#include "verify/plain_rows.h"

namespace recmill::train {
namespace {

/// What a run of either way leaves.
struct Trace {
  std::vector<double> losses;      // of each training iteration, then of each evaluation batch
  std::vector<double> evaluation;  // logits
  std::vector<float> parameters;
  std::vector<DenseOptimizer::State> dense_state;
  std::vector<std::vector<uint64_t>> dictionaries;
};

template <typename T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

template <typename T>
size_t first_difference(std::span<const T> a, std::span<const T> b) {
  size_t i = 0;
  while (i < a.size() && std::memcmp(&a[i], &b[i], sizeof(T)) == 0) ++i;
  return i;
}

Status go_through(DataStage& stage, Rank& rank, Communicator& communicator,
                  const std::function<Status()>& each_batch, Trace& trace) {
  Scores scores;
  while (true) {
    RECMILL_ASSIGN_OR_RETURN(auto batch, stage.next());
    if (batch == nullptr) break;
    const int64_t iteration = batch->before.iteration;
    const bool training = batch->purpose == store::Purpose::train;
    const double scale = rank.learning_rate.scale(iteration);
    RECMILL_ASSIGN_OR_RETURN(const StepResult step,
                             training ? rank.trainer->train(*batch, store::Step{iteration, scale})
                                      : score(rank, *batch));
    trace.losses.push_back(step.loss);
    if (rank.schedules != nullptr && training) rank.schedules->trained(*batch);
    if (!training) {
      RECMILL_RETURN_IF_ERROR(gather_scores(communicator, *batch, step, scores));
      trace.evaluation.insert(trace.evaluation.end(), scores.logits.begin(), scores.logits.end());
      if (batch->judges)
        RECMILL_RETURN_IF_ERROR(rank.schedules->scored(*batch, scores.view()).status());
    }
    stage.recycle(std::move(batch));
    RECMILL_RETURN_IF_ERROR(each_batch());
  }
  return {};
}

Status train_and_score(const ResolvedRun& run, Rank& rank, Communicator& communicator,
                       const std::function<Status()>& each_batch, Trace& trace) {
  const auto stage = make_data_stage(run, rank, run.schedule(communicator.rank()));
  if (const Status status = go_through(*stage, rank, communicator, each_batch, trace);
      !status.ok()) {
    communicator.abort(status);  // stages of ranks may wait for each other
    return status;
  }
  RECMILL_RETURN_IF_ERROR(settle(rank));
  const std::span<const float> parameters = rank.trainer->parameters();
  trace.parameters.assign(parameters.begin(), parameters.end());
  trace.dense_state = rank.dense_optimizer->state();
  const preprocess::DictionaryVersions versions = rank.preprocessor->versions();
  for (size_t d = 0; d < versions.size(); ++d) {
    trace.dictionaries.emplace_back(versions[d]);
    rank.preprocessor->read_dictionary(static_cast<int>(d), 0, trace.dictionaries.back());
  }
  return {};
}

constexpr const char* kDiffers = "differs from the plain run";

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
  const std::span<const double> scores = engine.evaluation, plain_scores = plain.evaluation;
  if (!same_bits(scores, plain_scores)) {
    return Status::Failed(
        fmt::format("evaluation sample {}: scores differ", first_difference(scores, plain_scores)));
  }
  return {};
}

Result<ResolvedRun> with_ranks(ResolvedRun run, int ranks, const JobIdentity& identity,
                               World& world, Files& files) {
  run.ranks = ranks;
  RECMILL_RETURN_IF_ERROR(choose_hot_rows(run, identity, world, files, Progress::Style::silent));
  RECMILL_RETURN_IF_ERROR(place_tables(run, files));
  return run;
}

/// What rank 0 knows of the plain run.
struct Plain {
  Trace trace;
  std::optional<PlainRows> rows;
};

Status run_plain(const ResolvedRun& run, Files& files, const std::function<Status()>& each_batch,
                 Plain& plain) {
  const auto pool = make_pool(1);
  RECMILL_ASSIGN_OR_RETURN(plain.rows, PlainRows::blank(run.spec));
  return run_ranks(1, [&](Communicator& alone) -> Status {
    RECMILL_ASSIGN_OR_RETURN(Rank rank, make_rank(run, Way::plain, alone, *pool, files));
    RECMILL_RETURN_IF_ERROR(train_and_score(run, rank, alone, each_batch, plain.trace));
    return rank.store->read_rows([&](const store::RowBlock& block) {
      plain.rows->keep(block);
      return each_batch();
    });
  });
}

// By rank 0; the others wait for each of its batches, since one call has a limit.
Status run_plain_at_first_rank(ResolvedRun run, const JobIdentity& identity, World& world,
                               Files& files, Plain& plain) {
  run.ranks = 1;
  run.threads = 1;
  RECMILL_ASSIGN_OR_RETURN(const int ranks, world.ranks(0));
  return world.run(ranks, [&](Communicator& communicator) -> Status {
    RECMILL_RETURN_IF_ERROR(shake_hands(run, identity, communicator, files));
    std::byte going_on{1};
    const auto tell = [&] { return communicator.broadcast(std::span(&going_on, 1), 0); };
    if (communicator.rank() == 0) {
      RECMILL_RETURN_IF_ERROR(run_plain(run, files, tell, plain));
      going_on = std::byte{0};
      return tell();
    }
    while (going_on != std::byte{0}) RECMILL_RETURN_IF_ERROR(tell());
    return Status();
  });
}

/// A line for each thing that all ranks must have the same of.
std::string checksums(const Trace& trace) {
  std::string text;
  const auto add = [&](const std::string& what, const auto& values) {
    text += fmt::format("{}: {} of checksum {:08x}\n", what, values.size(),
                        crc32c(std::as_bytes(std::span(values))));
  };
  add("losses", trace.losses);
  add("dense parameters", trace.parameters);
  for (const auto& state : trace.dense_state) add("dense state " + state.name, state.values);
  for (const auto& dictionary : trace.dictionaries) add("dictionary", dictionary);
  add("evaluation scores", trace.evaluation);
  return text;
}

// Each rank compares the rows that it owns; rank 0 all that every rank has.
Status compare(const ResolvedRun& run, const Rank& rank, const Trace& trace, const Plain& plain,
               Communicator& communicator) {
  const bool first = communicator.rank() == 0;
  if (first) RECMILL_RETURN_IF_ERROR(compare_losses(trace, plain.trace));
  RowComparison rows(run.spec, first ? &*plain.rows : nullptr, communicator);
  RECMILL_RETURN_IF_ERROR(
      rank.store->read_rows([&](const store::RowBlock& block) { return rows.compare(block); }));
  RECMILL_RETURN_IF_ERROR(rows.finish());
  if (first) RECMILL_RETURN_IF_ERROR(compare_rest(*rank.model, trace, plain.trace));
  return same_everywhere("end of training", checksums(trace), communicator);
}

Status run_engine(const ResolvedRun& run, World& world, Files& files, const Plain& plain) {
  const auto pool = make_pool(run.threads);
  return world.run(run.ranks, [&](Communicator& communicator) -> Status {
    RECMILL_ASSIGN_OR_RETURN(Rank rank, make_rank(run, Way::engine, communicator, *pool, files));
    Trace trace;
    RECMILL_RETURN_IF_ERROR(train_and_score(
        run, rank, communicator, [] { return Status(); }, trace));
    return compare(run, rank, trace, plain, communicator).at(kDiffers);
  });
}

// Those asked for; by default those of 1, 2, 4 and 8 that the world has, else what it has. A plan
// of a file is for one number.
Result<std::vector<int>> numbers_of_ranks(const RunOptions& options, std::vector<int64_t> asked,
                                          const World& world, Files& files) {
  if (has_plan_file(options)) {
    const auto plan = read_plan(files, options.placement.plan);
    if (!plan.ok()) return plan.status().at("placement.plan");
    for (const int64_t ranks : asked) {
      if (ranks == plan->devices) continue;
      return Status::BadRequest(fmt::format("--ranks: {}, but the plan {} is for {}", ranks,
                                            options.placement.plan, plan->devices));
    }
    asked = {plan->devices};
  }
  std::vector<int> numbers;
  for (const int64_t ranks : asked.empty() ? std::vector<int64_t>{1, 2, 4, 8} : asked) {
    const auto number = world.ranks(ranks);
    if (number.ok()) {
      numbers.push_back(*number);
    } else if (!asked.empty()) {
      return number.status().at("--ranks");
    }
  }
  if (!numbers.empty()) return numbers;
  RECMILL_ASSIGN_OR_RETURN(const int all, world.ranks(0));
  return std::vector{all};
}

}  // namespace

Result<Json> verify(const RunOptions& options, const VerificationRequest& request, World& world,
                    Files& files) {
  if (layers_are_on_gpu(options))
    return Status::BadRequest(
        "train.deterministic: false has the GPU compute dense layers, whose bits are not the "
        "plain run's; --against float64 says whether they are near enough");
  RECMILL_RETURN_IF_ERROR(check_gpu(options));
  RECMILL_ASSIGN_OR_RETURN(const auto numbers,
                           numbers_of_ranks(options, request.ranks, world, files));
  RunOptions limited = options;
  limited.train.epochs = 1;
  limited.train.ranks = 0;
  limited.train.evaluate_every = 0;
  limited.train.iterations = options.train.iterations > 0
                                 ? std::min(options.train.iterations, request.iterations)
                                 : request.iterations;
  RECMILL_ASSIGN_OR_RETURN(ResolvedRun run, resolve_run(limited, world, files));
  if (has_plan_file(options)) run.ranks = numbers[0];
  RECMILL_RETURN_IF_ERROR(open_hot_folder(run, files));
  RECMILL_RETURN_IF_ERROR(
      choose_hot_rows(run, request.identity, world, files, Progress::Style::silent));
  RECMILL_RETURN_IF_ERROR(place_tables(run, files));
  ResolvedRun plainly = run;
  for (const auto& [fitted, way] : {std::pair(&run, Way::engine), {&plainly, Way::plain}})
    RECMILL_RETURN_IF_ERROR(
        fit_columns(*fitted, way, request.identity, world, files, Progress::Style::silent));
  RECMILL_RETURN_IF_ERROR(check_memory(
      run, with_all_rows(memory_ledger(run), run.spec, "rows of the plain run", sizeof(float)),
      world));
  Plain plain;
  RECMILL_RETURN_IF_ERROR(run_plain_at_first_rank(plainly, request.identity, world, files, plain));
  request.say(fmt::format("plain run: {} batches", plain.trace.losses.size()));
  Json result;
  result["verified"] = true;
  result["batches"] = plain.trace.losses.size();
  result["tables"] = run.spec.tables.size();
  result["evaluation_samples"] = plain.trace.evaluation.size();
  Json compared = Json::array();
  for (const int ranks : numbers) {
    if (ranks > run.most_ranks()) {
      request.say(fmt::format("ranks {}: left out, the run can have {}", ranks, run.most_ranks()));
      continue;
    }
    RECMILL_ASSIGN_OR_RETURN(const ResolvedRun engine,
                             with_ranks(run, ranks, request.identity, world, files));
    RECMILL_RETURN_IF_ERROR(
        run_engine(engine, world, files, plain).at(fmt::format("ranks {}", ranks)));
    request.say(fmt::format("ranks {}: bitwise the same", ranks));
    compared.push_back(ranks);
  }
  result["ranks"] = compared;
  return result;
}

}  // namespace recmill::train
