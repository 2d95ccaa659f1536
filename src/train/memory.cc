// SPDX-License-Identifier: Apache-2.0
#include "train/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <string>

#include "comm/shard_tree.h"
#include "model/make_model.h"
#include "store/table_rows.h"
#include "train/optimizer/dense_optimizer.h"

namespace recmill::train {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

// A figure in KiB of a file of /proc, in bytes; 0 where it is not there.
int64_t proc_bytes(const char* path, const std::string& wanted) {
  std::ifstream file(path);
  std::string key, rest;
  while (file >> key) {
    if (int64_t value = 0; key == wanted && file >> value) return value * 1024;
    std::getline(file, rest);
  }
  return 0;
}

// Vectors that SubtreeSums holds at most: each shard in hand has one and leaves at most a finished
// subtree of each size before it; all of them where a synchronisation makes every shard wait.
int64_t gradient_vectors(const model::Model& model, int own_shards, int threads) {
  if (model.phases() > 1) return own_shards;
  return std::min<int64_t>(own_shards,
                           threads * (1 + std::bit_width(static_cast<unsigned>(own_shards))));
}

void add_dense(const ResolvedRun& run, int rank, MemoryLedger& ledger) {
  const auto model =
      model::make_model(run.options.model, run.spec, static_cast<uint64_t>(run.options.train.seed));
  if (!model.ok()) return;  // refused with its own line when the rank is made
  const ShardRange own = shards_of_rank(rank, run.ranks, run.shards);
  const int64_t parameters = (*model)->parameter_count();
  const DenseOptimizer optimizer(run.options.optimizer, 0, {});
  const auto copies = static_cast<int64_t>(2 + optimizer.state().size());
  ledger.items.push_back(
      {"dense parameters, gradient and optimizer state", rank, parameters * copies * 4});
  ledger.items.push_back({"dense gradients by shard", rank,
                          parameters * gradient_vectors(**model, own.size(), run.threads) * 4});
  const int64_t samples = std::max(run.options.train.batch_size, run.options.train.eval_batch_size);
  const int64_t stride = (*model)->embedding_layout().stride;
  ledger.items.push_back(
      {"looked-up rows and their gradient", rank, samples / run.ranks * stride * 2 * 4});
}

// What holds rows on their way to training: estimates, as what a row takes is not known before it
// is read. Text and parsed columns both take some 8 bytes a cell.
void add_data(const ResolvedRun& run, int rank, MemoryLedger& ledger) {
  const DataOptions& data = run.options.data;
  const TrainOptions& train = run.options.train;
  const auto cells = static_cast<int64_t>(1 + run.schema.dense.size() + run.schema.ids.size());
  const auto add = [&](const char* what, int64_t bytes) {
    ledger.items.push_back({what, rank, bytes, /*certain=*/false});
  };
  add("rows read ahead", (data.prefetch + 2) * data.shuffle.window * cells * 8);
  // Raw and preprocessed values, and of each id its row, its place and where its gradient goes.
  const auto features = static_cast<int64_t>(run.spec.features.size());
  constexpr int64_t kInHand = 3;  // being made, being trained, being scored
  add("batches in hand", (train.queue + kInHand) * train.batch_size / run.ranks *
                             (run.spec.num_dense * 12 + features * 56));
  constexpr int64_t kCopies = 3;  // the window, in the order of time, and sorted
  if (rank == 0) add("window of metrics", train.window * kCopies * 8);
}

}  // namespace

MemoryLedger memory_ledger(const ResolvedRun& run) {
  MemoryLedger ledger = store::tables_need(run.spec, run.ranks);
  for (int rank = 0; rank < run.ranks; ++rank) {
    add_dense(run, rank, ledger);
    add_data(run, rank, ledger);
  }
  ledger.items.push_back(
      {"program and libraries", 0, proc_bytes("/proc/self/status", "VmRSS:"), /*certain=*/false});
  return ledger;
}

Status check_memory(const MemoryLedger& ledger) {
  int64_t need = 0;
  for (const MemoryItem& item : ledger.items) need += item.certain ? item.bytes : 0;
  const int64_t available = proc_bytes("/proc/meminfo", "MemAvailable:");
  if (available == 0 || need <= available) return {};
  auto largest = ledger.items;
  std::erase_if(largest, [](const MemoryItem& item) { return !item.certain; });
  std::stable_sort(largest.begin(), largest.end(),
                   [](const MemoryItem& a, const MemoryItem& b) { return a.bytes > b.bytes; });
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(3, largest.size()); ++i) {
    names += fmt::format("{}{} {:.2f} GiB", i == 0 ? "" : ", ", largest[i].what,
                         static_cast<double>(largest[i].bytes) / kGiB);
  }
  return Status::BadRequest(fmt::format(
      "embedding.rows: this run needs {:.2f} GiB and the machine has {:.2f} GiB free, short {:.2f} "
      "GiB; largest: {}",
      static_cast<double>(need) / kGiB, static_cast<double>(available) / kGiB,
      static_cast<double>(need - available) / kGiB, names));
}

}  // namespace recmill::train
