// SPDX-License-Identifier: Apache-2.0
// The plain reference: every store must give its bits. One process, one thread, the reference
// kernels and straight loops in the contract's order; `recmill verify` trains with it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "store/embedding_store.h"
#include "table/embedding_table.h"
#include "table/table_snapshots.h"

namespace recmill::store {

class PlainStore final : public EmbeddingStore {
 public:
  /// Allocates all tables, whole. Fails as table::EmbeddingTable::create.
  static Result<std::unique_ptr<PlainStore>> create(ModelSpec model, uint64_t seed,
                                                    ThreadPool& pool);

  /// The batch holds all slices.
  Result<std::unique_ptr<Prepared>> prepare(const Batch& batch) override;
  Status lookup(Prepared& prepared, Output output, Stream& stream) override;
  Status update(std::span<const Update> updates, const Step& step, Stream& stream) override;
  Status settle() override { return {}; }
  std::unique_ptr<RowSnapshot> snapshot(int64_t kept_bytes) override {
    return snapshots_.take(kept_bytes);
  }
  table::Extent extent(int table) const override { return tables_[table].extent(); }
  Status write_rows(const RowBlock& block) override;
  StoreStats stats() const override { return {lookups_.load(), 0, updated_rows_}; }

 private:
  using SliceSums = std::vector<std::vector<float>>;  // [S][dim]

  PlainStore(ModelSpec model, std::vector<table::EmbeddingTable> tables)
      : model_(std::move(model)), tables_(std::move(tables)), snapshots_(tables_) {}
  void add_gradients(const Update& update, int slice, size_t feature,
                     std::map<int64_t, SliceSums>& sums) const;

  const ModelSpec model_;
  std::vector<table::EmbeddingTable> tables_;
  table::TableSnapshots snapshots_;
  std::atomic<int64_t> lookups_{0};  // evaluations may look up at the same time
  int64_t updated_rows_ = 0;
};

}  // namespace recmill::store
