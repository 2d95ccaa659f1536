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

// MemAvailable of /proc/meminfo in bytes; 0 where there is none.
int64_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  for (int64_t value = 0; file >> key >> value; std::getline(file, unit)) {
    if (key == "MemAvailable:") return value * 1024;
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

}  // namespace

MemoryLedger memory_ledger(const ResolvedRun& run) {
  MemoryLedger ledger = store::tables_need(run.spec, run.ranks);
  for (int rank = 0; rank < run.ranks; ++rank) add_dense(run, rank, ledger);
  return ledger;
}

Status check_memory(const MemoryLedger& ledger) {
  int64_t need = 0;
  for (const MemoryItem& item : ledger.items) need += item.bytes;
  const int64_t available = available_bytes();
  if (available == 0 || need <= available) return {};
  auto largest = ledger.items;
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
