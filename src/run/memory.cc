// SPDX-License-Identifier: Apache-2.0
#include "run/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/proc_bytes.h"
#include "base/saturating.h"
#include "batch/feature_layout.h"
#include "model/make_model.h"
#include "preprocess/ops/categorify.h"
#include "reader/open_reader.h"
#include "run/checkpoint/checkpoint_saver.h"
#include "run/gpu/gpu_memory.h"
#include "run/gpu/gpu_run.h"
#include "run/lookahead/row_commits.h"
#include "run/lookahead/run_cache.h"
#include "run/placement/run_placement.h"
#include "run/placement/run_replanning.h"
#include "run/sample_lookups.h"
#include "step/gpu/gpu_trainer.h"
#include "step/metrics/sample_window.h"
#include "step/rank_trainer.h"
#include "store/placed/placed_store.h"
#include "store/tables/table_rows.h"

namespace recmill::train {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr const char* kDense = "dense ";  // items of the model's layers

int64_t resident_bytes() {
  return proc_bytes("/proc/self/status", "VmRSS:");
}

/// What a rank is made of, and so what it takes: a sum over its owners.
class RankNeed {
 public:
  RankNeed(const ResolvedRun& run, const model::Model& model, int rank, bool training,
           MemoryLedger& ledger)
      : run_(run), train_(run.options.train), model_(model), rank_(rank), ledger_(ledger) {
    load_.trained = training ? train_.batch_size : 0;
    load_.scored = train_.eval_batch_size;
    load_.inputs = saturating_sum({run.spec.num_dense, numbers_of_histories(run)});
    load_.states = std::ssize(DenseOptimizer(run.options.optimizer, 0, {}).state());
    load_.slices = run.slices;
    load_.threads = run.threads;
    load_.rank = rank;
    load_.ranks = run.ranks;
  }

  void add_trainer() {
    if (layers_are_on_gpu(run_.options)) {
      ledger_.items.push_back({"dense parameters and optimizer state", rank_,
                               GpuTrainer::host_bytes(model_, load_.states)});
    } else {
      RankTrainer::need(run_.options.model, model_, load_, ledger_);
    }
  }

  // What holds rows on their way to training: what a row takes is not known before it is read.
  void add_data() {
    const auto columns =
        static_cast<int64_t>(1 + run_.schema.dense.size() + run_.schema.ids.size());
    estimate("rows read ahead", reader::read_ahead_bytes(run_.options.data, columns));
    const auto of_features = sample_lookups(run_);
    const auto lookups =
        static_cast<int64_t>(std::accumulate(of_features.begin(), of_features.end(), 0.5));
    estimate("batches in hand",
             saturating_product(
                 {batches_in_hand(run_.options),
                  RankBatch::bytes(load_.trained, load_.scored, run_.spec.num_dense, lookups)}) /
                 run_.ranks);
    int64_t dictionaries = 0;
    for (const auto& dictionary : run_.graph.dictionaries) {
      const int64_t bytes = preprocess::Dictionary::bytes(dictionary.rows, dictionary.min_count);
      dictionaries = saturating_sum({dictionaries, bytes});
    }
    estimate("dictionaries, when full", dictionaries);
  }

  void add_training() {
    if (rank_ == 0) {
      estimate("window of metrics",
               metrics::SampleWindow::bytes(train_.window, run_.schema.has_sample_weight,
                                            run_.schema.has_group));
    }
    CheckpointSaver::need(run_, rank_, model_.parameter_count(), load_.states, ledger_);
    RowCommits::need(run_, rank_, model_.parameter_count(), load_.states, ledger_);
    if (replans(run_)) replanning_need(run_, rank_, ledger_);
  }

 private:
  void estimate(const char* what, int64_t bytes) {
    if (bytes > 0) ledger_.items.push_back({what, rank_, bytes, /*certain=*/false});
  }

  static int64_t numbers_of_histories(const ResolvedRun& run) {
    int64_t numbers = 0;
    const FeatureLayout layout(run.spec);
    for (const FeatureLayout::Feature& feature : layout.sequences()) {
      numbers = saturating_sum(
          {numbers, saturating_product({longest_history(run.options), feature.dim})});
    }
    return numbers;
  }

  const ResolvedRun& run_;
  const TrainOptions& train_;
  const model::Model& model_;
  const int rank_;
  TrainerLoad load_;
  MemoryLedger& ledger_;
};

MemoryLedger rows_need(const ResolvedRun& run) {
  if (has_rows_elsewhere(run)) return {};
  if (run.placed != nullptr) return store::placed_need(run.spec, *run.placed, sharded_options(run));
  return store::tables_need(run.spec, run.ranks);
}

/// Without what looking ahead takes.
MemoryLedger ledger_of_rest(const ResolvedRun& run, bool training) {
  MemoryLedger ledger = rows_need(run);
  for (int rank = 0; rank < run.ranks && run.options.device != DeviceKind::cpu; ++rank) {
    const auto plans = plan_gpu(run, /*usable=*/0,
                                std::span(&rank, 1));  // pinned is as much wherever rows are stored
    const auto& pinned = plans[0].need.pinned.items;
    ledger.items.insert(ledger.items.end(), pinned.begin(), pinned.end());
  }
  const auto model =
      model::make_model(run.options.model, run.spec, static_cast<uint64_t>(run.options.train.seed));
  for (int rank = 0; rank < run.ranks && model.ok(); ++rank) {  // else refused when a rank is made
    ledger.items.push_back(
        {"rest of the tables' pages", rank, store::rest_of_pages(run.spec, shares_of(run, rank))});
    RankNeed need(run, **model, rank, training, ledger);
    need.add_trainer();
    need.add_data();
    if (training) need.add_training();
  }
  // What training touches of the libraries comes on top of what is held now.
  constexpr int64_t kTouchedLater = int64_t{24} << 20;
  ledger.items.push_back({"program and libraries", 0, resident_bytes() + kTouchedLater,
                          /*certain=*/false});
  return ledger;
}

/// Of this machine's free memory, what is left beside items of which `taken` bytes are held
/// already; a fifth of it is left to others.
int64_t free_after(const MemoryLedger& ledger, int64_t taken) {
  const int64_t available = available_bytes();
  if (available == 0) return kMostBytes;
  int64_t rest = -taken;
  for (const MemoryItem& item : ledger.items) rest = saturating_sum({rest, item.bytes});
  return std::max<int64_t>(available - std::max<int64_t>(rest, 0), 0) / 5 * 4;
}

MemoryLedger ledger_of(const ResolvedRun& run, bool training) {
  MemoryLedger ledger = ledger_of_rest(run, training);
  cache_need(run, free_after(ledger, resident_bytes()), ledger);
  return ledger;
}

/// What decides how large an item is.
std::string key_of(const MemoryItem& item, const ResolvedRun& run) {
  if (item.what.starts_with("looked-up rows")) return "train.batch_size";
  if (item.what.starts_with("cached rows")) return "lookahead.cache";
  if (!item.what.starts_with(kDense)) {
    const auto largest = std::ranges::max_element(run.spec.tables, {}, [](const TableSpec& table) {
      return saturating_product({table.rows, table.dim});
    });
    const bool wide = largest != run.spec.tables.end() && largest->dim > largest->rows;
    return wide ? "embedding.dim" : "embedding.rows";
  }
  std::string key = "model.kind";
  int64_t most = 0;
  for (const model::LayerList& list : model::layer_lists(run.options.model, run.spec)) {
    int64_t inputs = list.inputs;
    for (size_t l = 0; l < list.sizes.size(); ++l) {
      if (!list.key.empty() && saturating_product({inputs, list.sizes[l]}) > most) {
        most = saturating_product({inputs, list.sizes[l]});
        key = fmt::format("{}[{}]", list.key, l);
      }
      inputs = list.sizes[l];
    }
  }
  return key;
}

}  // namespace

MemoryLedger memory_ledger(const ResolvedRun& run) {
  return ledger_of(run, /*training=*/true);
}

MemoryLedger scoring_ledger(const ResolvedRun& run) {
  return ledger_of(run, /*training=*/false);
}

int64_t free_beside(const ResolvedRun& run) {
  return free_after(ledger_of_rest(run, /*training=*/true), row_bytes(run, 0) + resident_bytes());
}

MemoryLedger requests_ledger(const ResolvedRun& run, int64_t rows) {
  const int64_t of_row =
      run.spec.num_dense * 4 + static_cast<int64_t>(run.spec.features.size()) * 16;
  MemoryLedger ledger;
  for (int rank = 0; rank < run.ranks; ++rank)
    ledger.items.push_back({"requests", rank, rows / run.ranks * of_row});
  return ledger;
}

MemoryLedger with_all_rows(MemoryLedger ledger, const ModelSpec& spec, const std::string& what,
                           int64_t element) {
  for (const TableSpec& table : spec.tables) {
    int64_t numbers = table.dim;
    for (const table::StateColumn& column : table::row_state(table)) numbers += column.width;
    ledger.items.push_back({"table " + table.name + ", " + what, 0,
                            saturating_product({table.rows, numbers, element})});
  }
  return ledger;
}

int64_t row_bytes(const ResolvedRun& run, int rank) {
  if (has_rows_elsewhere(run)) return 0;
  MemoryLedger ledger;
  store::tables_need(run.spec, shares_of(run, rank), rank, ledger);
  return ledger.total(rank);
}

int64_t peak_resident_bytes() {
  return proc_bytes("/proc/self/status", "VmHWM:");
}

int64_t available_bytes() {
  return proc_bytes("/proc/meminfo", "MemAvailable:");
}

Status check_memory(const ResolvedRun& run, MemoryLedger ledger, const World& world,
                    const std::string& key) {
  std::erase_if(ledger.items, [&](const MemoryItem& item) { return !world.is_here(item.device); });
  int64_t need = 0;
  for (const MemoryItem& item : ledger.items)
    need = saturating_sum({need, item.certain ? item.bytes : 0});
  const int64_t available = available_bytes();
  if (available == 0 || need <= available) return {};
  auto& largest = ledger.items;
  std::erase_if(largest, [](const MemoryItem& item) { return !item.certain; });
  std::stable_sort(largest.begin(), largest.end(),
                   [](const MemoryItem& a, const MemoryItem& b) { return a.bytes > b.bytes; });
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(3, largest.size()); ++i) {
    names += fmt::format("{}{} {:.2f} GiB", i == 0 ? "" : ", ", largest[i].what,
                         static_cast<double>(largest[i].bytes) / kGiB);
  }
  return Status::BadRequest(fmt::format(
      "{}: this run needs {:.2f} GiB and the machine has {:.2f} GiB free, short {:.2f} GiB; "
      "largest: {}",
      key.empty() ? key_of(largest[0], run) : key, static_cast<double>(need) / kGiB,
      static_cast<double>(available) / kGiB, static_cast<double>(need - available) / kGiB, names));
}

}  // namespace recmill::train
