// SPDX-License-Identifier: Apache-2.0
// The least store over a home: what passes with it shows that homes are enough for a store that
// keeps no rows.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "batch/distinct_rows.h"
#include "schema/table_spec.h"
#include "store/embedding_store.h"
#include "table/embedding_table.h"
#include "table/home/home_caller.h"
#include "table/home/row_home.h"

namespace recmill::store::testing {

/// One rank. A lookup fetches the batch's distinct rows and pools them; an update fetches those of
/// all its batches, applies their row optimizers and puts them back, which it does not wait for.
/// Each update, and each write_rows(), is a step of the home.
class HomeStore final : public EmbeddingStore {
 public:
  /// `home` has all rows of the model, has not been called yet, and outlives the store.
  HomeStore(ModelSpec model, uint64_t seed, table::RowHome& home);

  Result<std::unique_ptr<Prepared>> prepare(const Batch& batch) override;
  Status lookup(Prepared& prepared, Output output, Stream& stream) override;
  Status update(std::span<const Update> updates, const Step& step, Stream& stream) override;
  Status settle() override;
  std::unique_ptr<RowSnapshot> snapshot(int64_t kept_bytes) override;
  table::Extent extent(int table) const override {
    return {{0, model_.tables[table].rows}, {0, model_.tables[table].dim}};
  }
  Status write_rows(const RowBlock& block) override;
  StoreStats stats() const override;

 private:
  /// A put that may not have been answered: what it names is the home's.
  struct Put {
    std::vector<std::vector<int64_t>> rows;       // [tables]
    std::vector<std::vector<std::byte>> records;  // [tables]
    table::RowHome::Ticket ticket = 0;
  };

  table::EmbeddingTable room_for(size_t table, int64_t rows) const;
  Result<std::vector<table::EmbeddingTable>> fetch(
      const std::vector<std::span<const int64_t>>& rows);
  void put(std::vector<std::vector<int64_t>> rows, const std::vector<table::EmbeddingTable>& from);
  Status finish_puts();
  std::vector<DistinctRows> distinct_of(std::span<const Update> updates) const;
  void apply(table::EmbeddingTable& table, size_t number, const DistinctRows& distinct,
             std::span<const Update> updates, const Step& step) const;

  const ModelSpec model_;
  const uint64_t seed_;
  std::vector<std::vector<size_t>> features_of_;  // [tables]
  mutable std::mutex mutex_;  // of what follows; evaluations may look up at the same time
  table::HomeCaller home_;
  int64_t step_ = table::RowHome::kNoFence;  // the last one that was put
  std::deque<Put> puts_;                     // not known to be answered, oldest first
  StoreStats stats_;
};

}  // namespace recmill::store::testing
