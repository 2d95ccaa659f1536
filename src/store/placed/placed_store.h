// SPDX-License-Identifier: Apache-2.0
// The store that carries a placement plan out (OPER, section 5): each row of each table is stored
// where the plan says, and each rank fetches it from where the plan says.
//
// A map of half a byte a row at most (table::RowMap), in the memory of the host, turns ids into
// addresses in prepare(), ahead of training; one lookup() serves all tables. Rows with copies are
// updated at all ranks that have one, in one of the ways of CopyReduce. Bitwise the same with every
// plan, every way, and with de-duplication or without.
//
// The plan may change while training goes on: batches of a coming iteration and later ones are
// prepared by another plan, and the first of them that is looked up finds rows where that one has
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "store/placed/row_migration.h"
#include "store/sharded/host_rows.h"
#include "store/sharded/sharded_options.h"
#include "store/tables/rank_tables.h"
#include "table/placed_tables.h"

namespace recmill::store {

class PlacedStore final : public EmbeddingStore {
 public:
  /// Collective. Allocates what this rank, a device of `placed`, holds of all tables, with initial
  /// rows. As many devices as ranks. Fails as create_tables().
  static Result<std::unique_ptr<PlacedStore>> create(
      ModelSpec model, uint64_t seed, Communicator& communicator, ThreadPool& pool,
      std::shared_ptr<const table::PlacedTables> placed, ShardedOptions options = {},
      StoreKernels kernels = {});
  ~PlacedStore() override;

  /// Collective, on the thread that trains. From `iteration` on, no batch of which has been
  /// prepared, rows are stored as `placed` says: the first lookup of such a batch moves them
  /// between the ranks (move_rows()). Not while is_moving(). A snapshot that is still being read
  /// then keeps the rows that were, all of them, until it is read.
  Status place_from(int64_t iteration, std::shared_ptr<const table::PlacedTables> placed);
  /// Whether rows are still to go where place_from() said.
  bool is_moving() const;
  /// Of the last move: what went between ranks, and how long this rank took.
  struct Moved : MigratedRows {
    double seconds = 0;
  };
  const Moved& moved() const { return moved_; }

  /// Of the plan's devices.
  Result<std::unique_ptr<Prepared>> prepare(const Batch& batch) override;
  Status lookup(Prepared& prepared, Output output, Stream& stream) override;
  Status update(std::span<const Update> updates, const Step& step, Stream& stream) override;
  Status settle() override { return {}; }
  std::unique_ptr<RowSnapshot> snapshot(int64_t kept_bytes) override;
  table::Extent extent(int table) const override;
  Status write_rows(const RowBlock& block) override;
  StoreStats stats() const override;

 private:
  struct Placed;
  class PlacedPrepared;
  class PlacedSnapshot;

  PlacedStore(ModelSpec model, uint64_t seed, Communicator& communicator, ThreadPool& pool,
              ShardedOptions options, StoreKernels kernels);
  std::unique_ptr<HostRows> host_rows(std::span<const table::TableShare> shares) const;
  std::shared_ptr<Placed> make(std::shared_ptr<const table::PlacedTables> placed,
                               std::vector<table::EmbeddingTable> tables,
                               std::unique_ptr<HostRows> host) const;
  std::shared_ptr<Placed> now() const;
  Status reach(const std::shared_ptr<Placed>& wanted);

  const ModelSpec model_;
  const uint64_t seed_;
  Communicator& communicator_;
  ThreadPool& pool_;
  const ShardedOptions options_;
  const StoreKernels kernels_;

  mutable std::mutex mutex_;
  std::shared_ptr<Placed> now_, coming_;  // guarded by mutex_; coming_ has no rows, or is null
  int64_t coming_from_ = 0;               // iteration; guarded by mutex_
  int64_t prepared_ = -1;                 // the last iteration of a batch; guarded by mutex_
  // Shared while batches are prepared, exclusive while rows get their room.
  std::shared_mutex preparing_;
  StoreStats before_;  // of plans that were
  Moved moved_;
};

/// What stores of the plan's devices allocate: rows, and vectors for dense sums of copies. `placed`
/// itself is already.
MemoryLedger placed_need(const ModelSpec& model, const table::PlacedTables& placed,
                         ShardedOptions options);

}  // namespace recmill::store
