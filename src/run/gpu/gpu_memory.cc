// SPDX-License-Identifier: Apache-2.0
#include "run/gpu/gpu_memory.h"

#include <algorithm>
#include <string>

#include "base/saturating.h"
#include "batch/feature_layout.h"
#include "device/gpu/staged_arrays.h"
#include "model/gpu_layers.h"
#include "model/make_model.h"
#include "preprocess/run/gpu_preprocessor.h"
#include "run/gpu/gpu_run.h"
#include "run/gpu/place_gpu_rows.h"
#include "run/sample_lookups.h"
#include "step/gpu/gpu_trainer.h"
#include "store/gpu/gpu_slot_store.h"

namespace recmill::train {
namespace {

void add_layers(const ResolvedRun& run, const store::GpuBatches& batches,
                store::GpuLedger& ledger) {
  const RunOptions& options = run.options;
  const auto model =
      model::make_model_of_gpu(options.model, run.spec, static_cast<uint64_t>(options.train.seed));
  if (!model.ok()) return;  // refused when a rank is made
  const auto states = std::ssize(DenseOptimizer(options.optimizer, 0, {}).state());
  GpuTrainer::need(run.spec, **model, states, batches, run.ranks, ledger);
  // LibTorch keeps the results of each operation, and makes their gradients.
  constexpr int64_t kCopies = 4;
  int64_t inputs = run.spec.num_dense;
  const auto lookups = sample_lookups(run);
  for (size_t f = 0; f < run.spec.features.size(); ++f)
    inputs += run.spec.dim_of(f) *
              rows_out(run.spec.features[f].pooling, 1, static_cast<int64_t>(lookups[f]));
  ledger.device.items.push_back(
      {"activations", 0,
       saturating_product({kCopies, int64_t{sizeof(float)}, batches.largest.samples,
                           model::layer_numbers(options.model, inputs)}),
       /*certain=*/false});
}

// A graph that fails is refused when a rank is made.
preprocess::GpuPreprocessorNeed preprocessing_need(const ResolvedRun& run,
                                                   const store::GpuBatches::Size& size) {
  const auto need = preprocess::gpu_preprocessor_need(
      run.graph, run.spec, {size.samples, size.lookups}, row_readers(run.options, run.ranks));
  return need.ok() ? *need : preprocess::GpuPreprocessorNeed();
}

void add_preprocessing(const ResolvedRun& run, const store::GpuBatches& batches,
                       store::GpuLedger& ledger) {
  const int64_t held = row_readers(run.options, run.ranks).gpu ? batches.prepared : 1;
  const auto rows = [&](const store::GpuBatches::Size& size) {
    return preprocessing_need(run, size).rows * held;
  };
  store::add_need("rows that preprocessing makes", batches, rows, ledger);
  const auto all = preprocessing_need(run, batches.largest);
  const auto estimate = [&](const std::string& what, const GpuBytes& bytes) {
    ledger.device.items.push_back({what, 0, bytes.device, /*certain=*/false});
    ledger.pinned.items.push_back({"pinned, " + what, 0, bytes.pinned, /*certain=*/false});
  };
  estimate("columns to be preprocessed", all.columns);
  estimate("offsets of rows that preprocessing makes", all.offsets * held);
}

/// Slots of the GPU's memory, of which `free` bytes are left, and rows on their way.
void add_cache(const ResolvedRun& run, const store::GpuBatches& batches, int64_t free,
               GpuPlan& plan) {
  std::vector<int64_t> lookups(run.spec.tables.size());
  for (size_t f = 0; f < batches.largest.lookups.size(); ++f)
    lookups[run.spec.features[f].table] += batches.largest.lookups[f];
  for (size_t t = 0; t < lookups.size(); ++t)
    lookups[t] = std::min(lookups[t], run.spec.tables[t].rows);
  const GpuBytes moved = store::GpuSlotStore::need(run.spec, lookups);
  constexpr const char* kMoved = "rows on their way to slots and from there";
  plan.need.device.items.push_back({kMoved, plan.rank, moved.device, /*certain=*/false});
  plan.need.pinned.items.push_back(
      {std::string("pinned, ") + kMoved, plan.rank, moved.pinned, /*certain=*/false});
  const SlotTables tables(run.spec);
  const auto slot_bytes = store::GpuSlotStore::slot_bytes(run.spec, tables);
  int64_t rows = 0;
  for (int k = 0; k < tables.count(); ++k)
    rows = saturating_sum({rows, saturating_product({tables.rows_of(k), slot_bytes[k]})});
  // LibTorch and the driver take some that no plan knows.
  const int64_t rest = std::max<int64_t>((free - moved.device) / 10 * 9, 1);
  const auto& asked = run.options.lookahead.cache;
  plan.cache = asked.value_or(std::min(rows, rest));
  plan.need.device.items.push_back({"cached rows and optimizer state", plan.rank,
                                    std::min(plan.cache, rows), asked.has_value()});
}

std::vector<char> features_made_there(const ResolvedRun& run) {
  const auto made = preprocess::features_made_on_gpu(run.graph, run.spec);
  return made.ok() ? *made : std::vector<char>();
}

store::GpuLedger ledger_of(const ResolvedRun& run, const store::GpuBatches& batches,
                           std::span<const store::RowsAt> rows, int rank) {
  store::GpuLedger ledger = store::gpu_store_need(run.spec, batches, rows, rank, run.ranks);
  const store::GpuBatches own = store::part_of_rank(batches, run.ranks);
  if (!batches.on_host) add_layers(run, own, ledger);
  if (run.options.gpu.preprocess) add_preprocessing(run, own, ledger);
  for (auto* const of : {&ledger.device, &ledger.pinned})
    for (MemoryItem& item : of->items) item.device = rank;
  return ledger;
}

}  // namespace

std::vector<GpuPlan> plan_gpu(const ResolvedRun& run, int64_t usable, std::span<const int> ranks,
                              std::span<const kernels::Schedule> pool) {
  store::GpuBatches batches = gpu_batches(run);
  batches.on_host = !layers_are_on_gpu(run.options);
  batches.pool = pool;
  std::vector<char> made_there;
  if (run.options.gpu.preprocess && row_readers(run.options, run.ranks).gpu)
    made_there = features_made_there(run);
  batches.made_there = made_there;
  const bool cached = run.options.embedding.store == StoreKind::cached;
  const std::vector<store::RowsAt> nothing(cached ? 0 : run.spec.tables.size(), GpuMemory::host);
  const int64_t share = usable / std::ssize(ranks);
  std::vector<GpuPlan> plans;
  for (const int rank : ranks) {
    const int64_t besides = ledger_of(run, batches, nothing, rank).device.total(rank);
    GpuPlan& plan =
        plans.emplace_back(GpuPlan{rank, store::held_tables(run.spec, run.ranks)[rank], {}, {}});
    if (!cached) plan.rows = place_gpu_rows(run, plan.held, besides, share);
    plan.need = ledger_of(run, batches, plan.rows, rank);
    if (cached) add_cache(run, batches, share - besides, plan);
  }
  return plans;
}

}  // namespace recmill::train
