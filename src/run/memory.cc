// SPDX-License-Identifier: Apache-2.0
#include "run/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>
#include <vector>

#include "base/proc_bytes.h"
#include "base/saturating.h"
#include "comm/slice_tree.h"
#include "comm/subtree_sums.h"
#include "model/make_model.h"
#include "run/checkpoint/checkpoint_saver.h"
#include "run/gpu/gpu_memory.h"
#include "run/gpu/gpu_run.h"
#include "run/placement/run_placement.h"
#include "run/placement/run_replanning.h"
#include "run/sample_lookups.h"
#include "step/optimizer/dense_optimizer.h"
#include "store/placed/placed_store.h"
#include "store/tables/table_rows.h"
#include "table/embedding_table.h"
#include "table/table_snapshots.h"

namespace recmill::train {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr const char* kDense = "dense ";  // items of the model's layers

// Vectors that SubtreeSums holds at most: each slice in hand has one and leaves at most a finished
// subtree of each size before it; all of them where a synchronisation makes every slice wait.
int64_t gradient_vectors(const model::Model& model, int own_slices, int threads) {
  if (model.phases() > 1) return own_slices;
  return std::min<int64_t>(own_slices,
                           threads * (1 + std::bit_width(static_cast<unsigned>(own_slices))));
}

// Whether kernels/dense_layer computes all of the layers.
bool has_own_layers(const model::ModelOptions& options) {
  return options.kind == model::ModelKind::dlrm || options.kind == model::ModelKind::mlp;
}

// Whole pages; huge ones leave up to 2 MiB unused, of a large table or of all small ones.
int64_t rest_of_pages(const ResolvedRun& run, int rank) {
  int64_t rest = 0, shared = 0;
  const auto shares = shares_of(run, rank);
  for (size_t t = 0; t < shares.size(); ++t) {
    const TableSpec& spec = run.spec.tables[t];
    const auto mapped = table::EmbeddingTable::mapped_bytes(spec, shares[t]);
    rest += mapped.own - table::EmbeddingTable::bytes(spec, shares[t]);
    shared += mapped.shared;
  }
  return rest + static_cast<int64_t>(Buffer::mapped_bytes(static_cast<size_t>(shared)));
}

/// Appends the items of one rank.
class RankItems {
 public:
  RankItems(const ResolvedRun& run, const model::Model& model, int rank, bool training,
            MemoryLedger& ledger)
      : run_(run),
        train_(run.options.train),
        training_(training),
        batch_size_(training ? train_.batch_size : 0),
        largest_batch_(std::max(batch_size_, train_.eval_batch_size)),
        model_(model),
        rank_(rank),
        own_slices_(slices_of_rank(rank, run.ranks, run.slices).size()),
        ledger_(ledger) {}

  void add_dense() {
    const int64_t parameters = model_.parameter_count();
    if (layers_are_on_gpu(run_.options)) {
      add("dense parameters and optimizer state",
          saturating_product({SubtreeSums::vector_bytes(parameters), 1 + dense_states()}));
      return;
    }
    const int64_t vector = SubtreeSums::vector_bytes(parameters);  // the others are alike
    if (training_) {
      add("dense parameters, gradient and optimizer state",
          saturating_product({vector, 2 + dense_states()}));
      add("dense gradients by slice",
          saturating_product({vector, gradient_vectors(model_, own_slices_, run_.threads)}));
    } else {
      add("dense parameters", vector);
    }
    const model::ModelOptions& options = run_.options.model;
    const bool in_place =
        has_own_layers(options) && options.precision == model::LayerPrecision::float32;
    if (!in_place) estimate("dense parameters as kernels read them", parameters * 2 * 4);
    // No more than there are rows to score, which is not known yet.
    const int64_t stride = model_.embedding_layout().stride;
    const int64_t row = stride * 4;
    if (training_) add("looked-up rows and their gradient", 2 * batch_size_ / run_.ranks * row);
    estimate("looked-up rows of scored batches", (largest_batch_ - batch_size_) / run_.ranks * row);
    int64_t samples = largest_batch_ / run_.slices + 1;
    if (model_.scores_in_any_block())
      samples = std::max(samples, train_.eval_batch_size / run_.ranks / run_.threads + 1);
    samples = std::min(samples, model_.block_samples());
    const int64_t in_hand = model_.phases() > 1 ? own_slices_ : std::min(own_slices_, run_.threads);
    // Values and again their gradients; LibTorch keeps the results of each operation.
    estimate("activations",
             saturating_product(
                 {in_hand, samples, 4, has_own_layers(options) ? 2 : 4,
                  layer_numbers(options, stride + run_.spec.num_dense + steps_of_histories())}));
  }

  // What holds rows on their way to training: what a row takes is not known before it is read.
  // Text and parsed columns both take some 8 bytes a cell.
  void add_data() {
    const DataOptions& data = run_.options.data;
    const auto cells = static_cast<int64_t>(1 + run_.schema.dense.size() + run_.schema.ids.size());
    if (data.format != DataFormat::synthetic) {  // whose rows are made as they are read
      estimate("rows read ahead", (data.prefetch + 2) * data.shuffle.window * cells * 8);
    }
    // Raw and preprocessed values; of each id its row, and in training its place and where its
    // gradient goes. A batch in hand has been either kind before.
    const int64_t ids = lookups();
    const int64_t dense = run_.spec.num_dense * 12;
    const int64_t batch =
        std::max(batch_size_ * (dense + ids * 56), train_.eval_batch_size * (dense + ids * 24));
    estimate("batches in hand", saturating_product({batches_in_hand(train_), batch}) / run_.ranks);
    int64_t entries = 0;
    for (const auto& dictionary : run_.graph.dictionaries)  // as many ids may wait for a row
      entries += dictionary.rows * (dictionary.min_count > 1 ? 2 : 1);
    constexpr int64_t kEntryBytes = 40;  // the id, its slot, and what growing takes
    if (entries > 0)
      estimate("dictionaries, when full", saturating_product({entries, kEntryBytes}));
  }

  void add_metrics() {
    if (rank_ != 0) return;
    // The window, the same in the order of time, and sorted.
    estimate("window of metrics", train_.window * (2 * bytes_of_scored() + 16));
  }

  // While rows move, one table is stored twice; the largest, in shares as they are.
  void add_replanning() {
    if (!replans(run_)) return;
    add("counts of lookups", Replanner::bytes(run_.spec));
    int64_t largest = 0;
    const auto shares = shares_of(run_, rank_);
    for (size_t t = 0; t < shares.size(); ++t)
      largest = std::max(largest, table::EmbeddingTable::bytes(run_.spec.tables[t], shares[t]));
    estimate("a table whose rows move", largest);
  }

  // Training goes on over rows that are not written yet; a copy of the rest waits for the disk.
  void add_checkpoint() {
    if (train_.checkpoint.every > 0 || train_.checkpoint.keep_best) {
      estimate("rows kept for a checkpoint",
               std::min(CheckpointSaver::kept_bytes(run_.ranks), most_kept()));
    }
    if (rank_ != 0) return;
    estimate(
        "layers and metrics of a checkpoint",
        model_.parameter_count() * (1 + dense_states()) * 4 + train_.window * bytes_of_scored());
  }

 private:
  void add(const char* what, int64_t bytes) { ledger_.items.push_back({what, rank_, bytes}); }
  void estimate(const char* what, int64_t bytes) {
    ledger_.items.push_back({what, rank_, bytes, /*certain=*/false});
  }

  int64_t dense_states() const {
    return static_cast<int64_t>(DenseOptimizer(run_.options.optimizer, 0, {}).state().size());
  }

  int64_t lookups() const {
    const auto of_features = sample_lookups(run_);
    return static_cast<int64_t>(std::accumulate(of_features.begin(), of_features.end(), 0.5));
  }
  int64_t steps_of_histories() const {
    int64_t numbers = 0;
    for (size_t f = 0; f < run_.spec.features.size(); ++f) {
      if (run_.spec.features[f].pooling != Pooling::none) continue;
      numbers = saturating_sum(
          {numbers, saturating_product({longest_history(run_.options), run_.spec.dim_of(f)})});
    }
    return numbers;
  }

  int64_t bytes_of_scored() const {
    return 12 + (run_.schema.has_sample_weight ? 4 : 0) + (run_.schema.has_group ? 8 : 0);
  }

  int64_t most_kept() const {
    int64_t bytes = 0;
    const auto shares = shares_of(run_, rank_);
    for (size_t t = 0; t < shares.size(); ++t) {
      const TableSpec& spec = run_.spec.tables[t];
      const int64_t columns = shares[t].own_columns(spec.dim).count;
      bytes += shares[t].rows.slots() * table::kept_bytes_of_row(spec, columns);
    }
    return bytes;
  }

  const ResolvedRun& run_;
  const TrainOptions& train_;
  const bool training_;
  const int64_t batch_size_, largest_batch_;  // of training: 0 where nothing is trained; of all
  const model::Model& model_;
  const int rank_, own_slices_;
  MemoryLedger& ledger_;
};

MemoryLedger rows_need(const ResolvedRun& run) {
  if (run.placed != nullptr) return store::placed_need(run.spec, *run.placed, sharded_options(run));
  return store::tables_need(run.spec, run.ranks);
}

MemoryLedger ledger_of(const ResolvedRun& run, bool training) {
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
    ledger.items.push_back({"rest of the tables' pages", rank, rest_of_pages(run, rank)});
    RankItems items(run, **model, rank, training, ledger);
    items.add_dense();
    items.add_data();
    if (!training) continue;
    items.add_metrics();
    items.add_checkpoint();
    items.add_replanning();
  }
  // What training touches of the libraries comes on top of what is held now.
  constexpr int64_t kTouchedLater = int64_t{24} << 20;
  ledger.items.push_back({"program and libraries", 0,
                          proc_bytes("/proc/self/status", "VmRSS:") + kTouchedLater,
                          /*certain=*/false});
  return ledger;
}

/// What decides how large an item is.
std::string key_of(const MemoryItem& item, const ResolvedRun& run) {
  if (item.what.starts_with("looked-up rows")) return "train.batch_size";
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

int64_t layer_numbers(const model::ModelOptions& options, int64_t inputs) {
  const auto sum = [](const std::vector<int64_t>& sizes) {
    int64_t sum = 0;
    for (const int64_t size : sizes) sum = saturating_sum({sum, size});
    return sum;
  };
  const bool steps = options.kind == model::ModelKind::tbsm;
  const bool crosses = options.kind == model::ModelKind::deep_cross;
  return saturating_sum(
      {inputs, sum(options.bottom), sum(options.deep), sum(options.over), sum(options.attention),
       saturating_product({steps ? options.sequence_length : 1, sum(options.top)}),
       saturating_product({crosses ? options.cross_layers : 0, inputs})});
}

MemoryLedger memory_ledger(const ResolvedRun& run) {
  return ledger_of(run, /*training=*/true);
}

MemoryLedger scoring_ledger(const ResolvedRun& run) {
  return ledger_of(run, /*training=*/false);
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
