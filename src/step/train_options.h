// SPDX-License-Identifier: Apache-2.0
// The section [train] of a configuration.
#pragma once

#include <cstdint>
#include <string>

#include "schema/options.h"

namespace recmill::train {

enum class Transport { automatic, threads, mpi, nccl, nccl_emulated };

enum class DecayKind { none, linear, cosine, exponential };

struct WarmupOptions {
  int64_t iterations = 0;
  double start = 0.0;
};
template <typename Visitor>
void describe(Visitor& v, WarmupOptions& o) {
  v("iterations", o.iterations, "the learning rate grows linearly over so many iterations");
  v("start", o.start, "share of the learning rate at iteration 0", between(0, 1));
}

struct DecayOptions {
  DecayKind kind = DecayKind::none;
  int64_t start = 0;
  int64_t iterations = 0;
  double end = 0.0;
};
template <typename Visitor>
void describe(Visitor& v, DecayOptions& o) {
  v("kind", o.kind, "none, linear, cosine or exponential");
  v("start", o.start, "first iteration that decays");
  v("iterations", o.iterations, "how many iterations the decay takes; 0: to the end of training");
  v("end", o.end, "share of the learning rate after the decay", between(0, 1));
}

/// A metric of evaluations by which one is better than another.
enum class StopMetric { log_loss, auc, gauc, normalized_entropy, accuracy };

struct EarlyStopOptions {
  int64_t patience = 0;
  StopMetric metric = StopMetric::log_loss;
  double minimum_gain = 0.0;
};
template <typename Visitor>
void describe(Visitor& v, EarlyStopOptions& o) {
  v("patience", o.patience, "evaluations without gain after which training stops; 0: never");
  v("metric", o.metric,
    "metric that must gain: log_loss and normalized_entropy by falling, auc, gauc (which needs a "
    "group for each row) and accuracy by rising; where an evaluation does not define it, it does "
    "not gain");
  v("minimum_gain", o.minimum_gain, "change that counts as a gain", at_least(0));
}

struct CheckpointOptions {
  int64_t every = 0;
  int64_t keep = 2;
  bool at_end = true;
  bool keep_best = false;
};
template <typename Visitor>
void describe(Visitor& v, CheckpointOptions& o) {
  v("every", o.every, "iterations between checkpoints; 0: none on the way");
  v("keep", o.keep, "newest checkpoints that are kept");
  v("at_end", o.at_end,
    "whether the end of training is a checkpoint; an interruption is one always");
  v("keep_best", o.keep_best,
    "whether the best evaluation by train.early_stop.metric is a checkpoint, which stays beside "
    "the "
    "newest ones; eval, predict and export then take it");
}

struct TrainOptions {
  int64_t batch_size = 2048;
  int64_t epochs = 1;
  int64_t iterations = 0;
  int64_t slices = 0;
  Transport transport = Transport::automatic;
  int64_t ranks = 0;
  double wait_seconds = 600;
  bool overlap = true;
  int64_t threads = 0;
  int64_t seed = 1;
  bool deterministic = true;
  int64_t queue = 4;
  int64_t evaluate_every = 0;
  int64_t eval_batch_size = 8192;
  int64_t log_every = 0;
  int64_t window = 1000000;
  double negative_keep = 1.0;
  WarmupOptions warmup;
  DecayOptions decay;
  EarlyStopOptions early_stop;
  CheckpointOptions checkpoint;
  std::string runs = "runs";
};
template <typename Visitor>
void describe(Visitor& v, TrainOptions& o) {
  v("batch_size", o.batch_size, "samples of a global batch, over all ranks", between(1, 1 << 24));
  v("epochs", o.epochs, "passes over the training rows", between(1, 1e6));
  v("iterations", o.iterations, "stop after so many iterations in all; 0: by epochs");
  v("slices", o.slices,
    "parts into which a batch is cut for summation, a power of two, part of the run's identity; 0: "
    "the largest up to 8 that leaves 64 samples each",
    between(0, 1024));
  v("transport", o.transport,
    "threads: all ranks in this process; mpi: one in each process that an MPI launcher started; "
    "auto: mpi where such a launcher did; nccl: as auto, each rank with a CUDA GPU, between which "
    "what all ranks exchange at once goes by NCCL; nccl_emulated: as threads, the same by a "
    "stand-in, between GPUs that the CPU plays (slow, to try and to test)");
  v("ranks", o.ranks,
    "ranks, at most as many as slices; 0: 1 by threads, by MPI one for each process",
    between(0, 1024));
  v("wait_seconds", o.wait_seconds, "the longest that a rank waits for others, by MPI or NCCL",
    above_up_to(0, 1e9));
  v("overlap", o.overlap,
    "whether ranks on several hosts sum dense gradients while they update rows");
  v("threads", o.threads,
    "compute threads of a process; 0: one for each core, divided by the processes that share them",
    between(0, 4096));
  v("seed", o.seed, "seed of everything random");
  v("deterministic", o.deterministic,
    "bitwise the same for every store, plan, device, number of threads and ranks; false: ways that "
    "reorder sums may be chosen too (dense layers on the GPU of `device`, owners of placed rows "
    "that pool bags, tuned lookups)");
  v("queue", o.queue, "batches that are read and prepared ahead of training", between(1, 4096));
  v("evaluate_every", o.evaluate_every,
    "iterations between evaluations; 0: at the end of an epoch");
  v("eval_batch_size", o.eval_batch_size, "samples of an evaluation batch", between(1, 1 << 24));
  v("log_every", o.log_every, "iterations between lines of metrics; 0: about every second");
  v("window", o.window, "samples of the metrics while training, scored before their update",
    between(0, 0x1p32));
  v("negative_keep", o.negative_keep,
    "share of negative samples that training keeps; predictions are calibrated for it",
    above_up_to(0, 1));
  v("warmup", o.warmup, "");
  v("decay", o.decay, "");
  v("early_stop", o.early_stop, "");
  v("checkpoint", o.checkpoint, "");
  v("runs", o.runs, "folder that holds the run folders");
}

}  // namespace recmill::train

namespace recmill {
template <>
struct EnumNames<train::Transport> {
  static constexpr std::array names{
      std::pair{train::Transport::automatic, std::string_view{"auto"}},
      std::pair{train::Transport::threads, std::string_view{"threads"}},
      std::pair{train::Transport::mpi, std::string_view{"mpi"}},
      std::pair{train::Transport::nccl, std::string_view{"nccl"}},
      std::pair{train::Transport::nccl_emulated, std::string_view{"nccl_emulated"}}};
};
template <>
struct EnumNames<train::StopMetric> {
  static constexpr std::array names{
      std::pair{train::StopMetric::log_loss, std::string_view{"log_loss"}},
      std::pair{train::StopMetric::auc, std::string_view{"auc"}},
      std::pair{train::StopMetric::gauc, std::string_view{"gauc"}},
      std::pair{train::StopMetric::normalized_entropy, std::string_view{"normalized_entropy"}},
      std::pair{train::StopMetric::accuracy, std::string_view{"accuracy"}}};
};
template <>
struct EnumNames<train::DecayKind> {
  static constexpr std::array names{
      std::pair{train::DecayKind::none, std::string_view{"none"}},
      std::pair{train::DecayKind::linear, std::string_view{"linear"}},
      std::pair{train::DecayKind::cosine, std::string_view{"cosine"}},
      std::pair{train::DecayKind::exponential, std::string_view{"exponential"}}};
};
}  // namespace recmill
