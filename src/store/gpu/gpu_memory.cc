// SPDX-License-Identifier: Apache-2.0
#include "store/gpu/gpu_memory.h"

#include <algorithm>
#include <string>

#include "batch/feature_layout.h"
#include "kernels/distinct_rows/gpu_distinct_rows.h"
#include "kernels/embedding_pool/gpu_fused_pool.h"
#include "store/exchange/packed_rows.h"
#include "store/gpu/far_rows.h"
#include "store/gpu/held_tables.h"
#include "table/embedding_table.h"
#include "table/gpu/gpu_rows.h"
#include "table/gpu/gpu_updater.h"

namespace recmill::store {
namespace {

/// Appends a store's items.
class StoreItems {
 public:
  StoreItems(const ModelSpec& model, const GpuBatches& batches, std::span<const RowsAt> rows,
             GpuLedger& ledger)
      : model_(model), batches_(batches), ledger_(ledger) {
    for (size_t t = 0; t < model.tables.size(); ++t) {
      const bool split = !rows.empty() && rows[t].near != nullptr;
      slots_.push_back(split ? rows[t].near->slots() : model.tables[t].rows);
    }
  }

  void add_rows(std::span<const RowsAt> rows) {
    int64_t hot = 0, numbers = 0, split = 0;
    for (size_t t = 0; t < model_.tables.size(); ++t) {
      const TableSpec& spec = model_.tables[t];
      const int64_t near = rows[t].near_rows(spec.rows);
      const int64_t bytes = table::EmbeddingTable::bytes(spec, table::RowShare(near, 0, 1));
      if (rows[t].by_hot_set) {
        hot += bytes;
      } else if (near > 0) {
        ledger_.device.items.push_back({"table " + spec.name, 0, bytes});
      }
      if (rows[t].near == nullptr) continue;
      numbers += table::GpuRows::bytes_of_numbers(spec, near);
      ++split;
    }
    if (hot > 0) ledger_.device.items.push_back({kHotRows, 0, hot});
    if (numbers > 0) ledger_.device.items.push_back({"numbers of hot rows", 0, numbers});
    add_far_rows(rows, split);
    ledger_.pinned.items.push_back(
        {"pinned, rows to be copied", 0, int64_t{table::GpuRows::kStagingBytes}});
  }

  // Of tables in two memories.
  void add_far_rows(std::span<const RowsAt> rows, int64_t split) {
    const GpuBytes counts = FarRows::need(split);
    if (counts.device > 0) {
      ledger_.device.items.push_back({"numbers of far rows", 0, counts.device});
      ledger_.pinned.items.push_back({"pinned, numbers of far rows", 0, counts.pinned});
    }
    std::vector<char> mapped(model_.tables.size());
    for (size_t f = 0; f < model_.features.size(); ++f)
      if (is_made_there(f) && rows[model_.features[f].table].near != nullptr)
        mapped[model_.features[f].table] = 1;
    if (std::ranges::none_of(mapped, [](char is) { return is != 0; })) return;
    int64_t lines = 0;
    for (size_t t = 0; t < mapped.size(); ++t)
      if (mapped[t] != 0) lines += kernels::NearRows::bytes_of_lines(model_.tables[t].rows);
    ledger_.device.items.push_back({"which rows are hot", 0, lines});
    const auto slots = [&](const GpuBatches::Size& size) {
      int64_t lookups = 0;
      for (size_t f = 0; f < model_.features.size(); ++f)
        if (is_made_there(f) && mapped[model_.features[f].table] != 0) lookups += size.lookups[f];
      return GpuBytes{FarRows::need_of_batch(lookups) * batches_.prepared, 0};
    };
    add_need("slots of rows that preprocessing makes", batches_, slots, ledger_);
  }

  // On average one lookup a sample may be one in each.
  void add_bags() {
    const auto need = [&](const GpuBatches::Size& size, bool may_share) {
      std::vector<kernels::GpuBagsSize> features;
      for (size_t f = 0; f < model_.features.size(); ++f)
        features.push_back({size.lookups[f], model_.dim_of(f), model_.features[f].weighted,
                            parts_of(f), may_share && size.lookups[f] == size.samples,
                            is_made_there(f)});
      return kernels::GpuBags::need(features, size.samples) * batches_.prepared;
    };
    const auto least = [&](const GpuBatches::Size& size) { return need(size, true); };
    add_need("bags", batches_, least, ledger_);
    const GpuBytes all = need(batches_.largest, false), shared = least(batches_.largest);
    constexpr const char* kWhat = "offsets of bags that are not of one lookup each";
    if (all.device > shared.device)
      ledger_.device.items.push_back({kWhat, 0, all.device - shared.device, /*certain=*/false});
    if (all.pinned > shared.pinned)
      ledger_.pinned.items.push_back(
          {std::string("pinned, ") + kWhat, 0, all.pinned - shared.pinned, /*certain=*/false});
  }

  void add_distinct_rows() {
    ledger_.pinned.items.push_back({"pinned, numbers of distinct rows", 0,
                                    std::ssize(model_.tables) * int64_t{sizeof(int64_t)}});
    if (batches_.trained.samples == 0) return;
    std::vector<int64_t> keys, rows, features(model_.tables.size());
    kernels::GpuLookupsSize size{batches_.trained.samples, batches_.slices};
    size.lookups.resize(model_.tables.size());
    for (size_t f = 0; f < model_.features.size(); ++f) {
      const FeatureSpec& feature = model_.features[f];
      ++features[feature.table];
      if (model_.tables[feature.table].frozen) continue;
      ++size.features;
      size.lookups[feature.table] += batches_.trained.lookups[f];
      size.weighted = size.weighted || feature.weighted;
      size.mean = size.mean || feature.pooling == Pooling::mean;
    }
    for (size_t t = 0; t < model_.tables.size(); ++t) {
      keys.push_back(slots_[t]);
      rows.push_back(std::min(size.lookups[t], model_.tables[t].rows));
    }
    using Finder = kernels::GpuDistinctRowsFinder;
    add("lookups in the order of summation", Finder::need_of_batch(size) * batches_.prepared);
    add("distinct rows", Finder::need(size, kernels::row_keys(keys)));
    add("updates", table::GpuUpdater::need(rows, features) * batches_.prepared);
  }

  // Of a caller on the host.
  void add_outputs() {
    if (!batches_.on_host) return;
    const auto floats = [&](const GpuBatches::Size& size, int64_t beside) {
      int64_t all = 0;
      for (size_t f = 0; f < model_.features.size(); ++f)
        all += rows_out(size, f) * model_.dim_of(f) + beside;
      const int64_t bytes = reserved_bytes(all * int64_t{sizeof(float)});
      return GpuBytes{bytes, bytes};
    };
    const auto rows = [&](const GpuBatches::Size& size) { return floats(size, 0); };
    add_need("looked-up rows", batches_, rows, ledger_);
    constexpr int64_t kAligned = 3;  // floats beside a feature's: it begins at 16 bytes
    if (batches_.trained.samples > 0)
      add("gradients of looked-up rows", floats(batches_.trained, kAligned));
  }

 private:
  void add(const std::string& what, const GpuBytes& bytes) {
    if (bytes.device > 0) ledger_.device.items.push_back({what, 0, bytes.device, batches_.certain});
    if (bytes.pinned > 0)
      ledger_.pinned.items.push_back({"pinned, " + what, 0, bytes.pinned, batches_.certain});
  }

  bool is_made_there(size_t feature) const {
    return !batches_.made_there.empty() && batches_.made_there[feature] != 0;
  }

  int64_t rows_out(const GpuBatches::Size& size, size_t feature) const {
    return recmill::rows_out(model_.features[feature].pooling, size.samples, size.lookups[feature]);
  }

  // Where a schedule is not right for all bags, of the default one, which has more blocks.
  kernels::GpuParts parts_of(size_t feature) const {
    const FeatureSpec& of = model_.features[feature];
    const TableSpec& spec = model_.tables[of.table];
    const auto rows = table::EmbeddingTable::layout(spec, table::RowShare(spec.rows, 0, 1));
    auto kernel =
        kernels::find_gpu_pool_kernel(kernels::default_gpu_pool_schedule(of.pooling, rows));
    if (!batches_.pool.empty()) {
      auto chosen = kernels::find_gpu_pool_kernel(batches_.pool[feature]);
      if (chosen.ok() && chosen->of->admits == nullptr) kernel = std::move(chosen);
    }
    return kernel->of->parts(kernel->values);
  }

  const ModelSpec& model_;
  const GpuBatches& batches_;
  GpuLedger& ledger_;
  std::vector<int64_t> slots_;  // [tables]
};

/// Those of the features that are held.
GpuBatches::Size size_of(const GpuBatches::Size& size, const HeldTables& held) {
  GpuBatches::Size of{size.samples};
  for (const size_t f : held.features) of.lookups.push_back(size.lookups[f]);
  return of;
}

/// Rows of the features that are held, for `samples` of a batch, or for a part of them.
int64_t packed_bytes(const HeldTables& held, const ModelSpec& model, const GpuBatches::Size& size,
                     int64_t samples) {
  std::vector<int64_t> lookups;
  for (const size_t f : held.features) lookups.push_back(size.lookups[f]);
  const PackedRows rows(packed_shapes(held, model), samples, std::move(lookups));
  return reserved_bytes(rows.floats() * int64_t{sizeof(float)});
}

int64_t samples_of_rank(int64_t samples, int slices, int ranks) {
  const auto cut = [](int64_t all, int64_t parts) { return (all + parts - 1) / parts; };
  return cut(slices, ranks) * cut(samples, slices);
}

/// TableWiseGpuStore's own. As if all lookups of histories were this rank's samples'.
void add_packed_rows(const ModelSpec& model, const GpuBatches& batches, int rank, int ranks,
                     GpuLedger& ledger) {
  const auto of_ranks = held_tables(model, ranks);
  const auto all = [&](const GpuBatches::Size& size) {
    return GpuBytes{packed_bytes(of_ranks[rank], model, size, size.samples), 0};
  };
  const auto own = [&](const GpuBatches::Size& size) {
    const int64_t samples = samples_of_rank(size.samples, batches.slices, ranks);
    int64_t bytes = 0;
    for (const HeldTables& held : of_ranks) bytes += packed_bytes(held, model, size, samples);
    return GpuBytes{bytes, batches.on_host ? bytes : 0};
  };
  add_need("rows for all samples", batches, all, ledger);
  add_need("rows of own samples", batches, own, ledger);
  const int64_t messages = 2 * std::max(all(batches.largest).device, own(batches.largest).device);
  ledger.device.items.push_back({"messages between GPUs", 0, messages, /*certain=*/false});
  ledger.pinned.items.push_back({"pinned, messages between GPUs", 0, messages, /*certain=*/false});
}

}  // namespace

GpuBatches part_of_rank(const GpuBatches& batches, int ranks) {
  GpuBatches part = batches;
  for (GpuBatches::Size* const size : {&part.largest, &part.trained})
    size->samples = samples_of_rank(size->samples, batches.slices, ranks);
  return part;
}

void add_need(const std::string& what, const GpuBatches& batches,
              const std::function<GpuBytes(const GpuBatches::Size&)>& need, GpuLedger& ledger) {
  const GpuBytes all = need(batches.largest);
  const GpuBytes trained = batches.trained.samples > 0 ? need(batches.trained) : GpuBytes{};
  const auto add = [&](std::vector<MemoryItem>& items, const std::string& name, int64_t certain,
                       int64_t most) {
    if (certain > 0) items.push_back({name, 0, certain, batches.certain});
    if (most > certain)
      items.push_back({name + " of evaluation, beyond those of training", 0, most - certain,
                       /*certain=*/false});
  };
  add(ledger.device.items, what, trained.device, all.device);
  add(ledger.pinned.items, "pinned, " + what, trained.pinned, all.pinned);
}

GpuLedger gpu_store_need(const ModelSpec& model, const GpuBatches& batches,
                         std::span<const RowsAt> rows, int rank, int ranks) {
  const HeldTables held = held_tables(model, ranks)[rank];
  GpuBatches of_held = batches;
  of_held.largest = size_of(batches.largest, held);
  of_held.trained = size_of(batches.trained, held);
  of_held.on_host = batches.on_host && ranks == 1;
  constexpr int64_t kMerged = 2;  // by a TableWiseGpuStore: being looked up; the next one
  if (ranks > 1) of_held.prepared = std::min(batches.prepared, kMerged);
  std::vector<kernels::Schedule> pool;
  if (!batches.pool.empty())
    for (const size_t f : held.features) pool.push_back(batches.pool[f]);
  of_held.pool = pool;
  std::vector<char> made_there;
  if (!batches.made_there.empty())
    for (const size_t f : held.features) made_there.push_back(batches.made_there[f]);
  of_held.made_there = made_there;
  std::vector<RowsAt> held_rows;
  if (!rows.empty())
    for (const int t : held.tables) held_rows.push_back(rows[t]);
  const ModelSpec held_model = model_of(held, model);
  GpuLedger ledger;
  StoreItems items(held_model, of_held, held_rows, ledger);
  if (!rows.empty()) items.add_rows(held_rows);
  items.add_bags();
  items.add_distinct_rows();
  items.add_outputs();
  if (ranks > 1) add_packed_rows(model, batches, rank, ranks, ledger);
  for (auto* const of : {&ledger.device, &ledger.pinned})
    for (MemoryItem& item : of->items) item.device = rank;
  return ledger;
}

}  // namespace recmill::store
