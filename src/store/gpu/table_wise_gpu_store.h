// SPDX-License-Identifier: Apache-2.0
// Rows in the memory of GPUs, one for each rank: every table is stored whole at one rank's.
//
// To who holds a table come all lookups of it in the global batch, so that this rank does what one
// rank alone would do: bags are pooled there, and gradients of all slices are summed there, in the
// same order. lookup() sends each rank its samples' bags by feature (between hosts), then the rows
// that were pooled (between the GPUs); update() sends gradients the other way. prepare() sends
// nothing, so that it can never wait for another rank: lookup() sends the next batch's bags along
// where that has been prepared. Once all ranks have, its holders prepare it beside training.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "comm/gpu/gpu_exchange.h"
#include "kernels/row_copy/gpu_row_copier.h"
#include "store/exchange/packed_rows.h"
#include "store/gpu/gpu_store.h"
#include "store/gpu/held_tables.h"

namespace recmill::store {

/// Makes what moves bytes between the ranks' GPUs; collective. Both outlive it.
using MakeGpuExchange = std::function<Result<std::unique_ptr<GpuExchange>>(Gpu&, Communicator&)>;

class TableWiseGpuStore final : public StoreOnGpu {
 public:
  /// Allocates the tables that table::shares_of() gives this rank, each of which is sharded by
  /// table; the rank may have none. `kernels` are of the whole model. Fails as GpuStore::create.
  /// `places` [tables of the whole model] as there. Collective. The communicator and the pool
  /// outlive the store.
  static Result<std::unique_ptr<TableWiseGpuStore>> create(
      ModelSpec model, uint64_t seed, std::shared_ptr<Gpu> gpu, const GpuStoreKernels& kernels,
      Communicator& communicator, const MakeGpuExchange& make_exchange, ThreadPool& pool,
      std::span<const RowsAt> places = {});
  ~TableWiseGpuStore() override;

  Gpu& gpu() override { return held_->gpu(); }
  GpuStream& stream() override { return held_->stream(); }
  GpuExchange* exchange() override { return exchange_.get(); }

  Result<std::unique_ptr<Prepared>> prepare(const Batch& batch) override;
  Status lookup(Prepared& prepared, Output output, Stream& stream) override;
  Status update(std::span<const Update> updates, const Step& step, Stream& stream) override;
  Status settle() override { return held_->settle(); }
  std::unique_ptr<RowSnapshot> snapshot(int64_t kept_bytes) override;
  table::Extent extent(int table) const override;
  Status write_rows(const RowBlock& block) override;
  StoreStats stats() const override;

 private:
  class TableWisePrepared;
  struct Places;
  /// Of one feature, among packed rows of own samples.
  struct Rows {
    int64_t begin = 0, stride = 0;  // floats
    int64_t count = 0;
  };
  /// Rows go to samples, and gradients to holders.
  enum class Direction { to_samples, to_holders };
  struct Held : HeldTables {
    // Beside features: of rows, and of gradients, which frozen tables have none of.
    std::vector<PackedRows::Feature> rows, gradients;
    const auto& shapes(Direction direction) const {
      return direction == Direction::to_samples ? rows : gradients;
    }
  };
  /// Bags of one rank's samples, for the tables here.
  struct Part {
    std::vector<std::byte> bags;
    int64_t samples = -1;
    bool is_there() const { return samples >= 0; }
  };
  using Parts = std::vector<Part>;  // [ranks]

  TableWiseGpuStore(ModelSpec model, Communicator& communicator, ThreadPool& pool);
  bool is_frozen(size_t feature) const {
    return model_.tables[model_.features[feature].table].frozen;
  }
  std::vector<std::vector<int64_t>> take_messages(const TableWisePrepared& of);
  static void take_in(std::span<const std::byte> message, Part& now, Part& next);
  Status exchange_bags(TableWisePrepared& of);
  bool fits(const Parts& parts, const SliceCut& cut) const;
  Status merge_bags(const Parts& parts, TableWisePrepared& of);
  void prepare_ahead();
  void forget(const TableWisePrepared& of);
  Result<Places> place(std::span<TableWisePrepared* const> batches, Direction direction);
  Status move(const Places& places);
  template <class F>
  void for_each_feature(const Places& places, const F& f) const;
  template <class Copy>
  void copy_rows(const Places& places, const Copy& copy);
  Status hand_out(const Places& places, Output output, bool to_host);
  Status take_gradients(const Places& places, std::span<const Update> updates, bool of_host);

  const ModelSpec model_;
  const int rank_, ranks_;
  std::vector<Held> of_ranks_;  // [ranks]
  std::vector<int> places_;     // [tables]: its number among this rank's; -1: another's
  Communicator& communicator_;
  ThreadPool& pool_;

  std::unique_ptr<GpuStore> held_;  // this rank's tables, by their places
  std::mutex mutex_;                // guards all below
  std::unique_ptr<GpuExchange> exchange_;
  std::unique_ptr<kernels::GpuRowCopier> copier_;
  // Packed rows: of this rank's features for all samples; of each rank's features, one rank after
  // the other, for this rank's samples.
  GpuBuffer of_all_samples_, of_own_samples_;
  PinnedBuffer of_own_samples_on_host_;  // where outputs and gradients are the host's
  int64_t ahead_ = -1;                   // number of the batch sent as the next one; -1: none
  std::shared_ptr<Parts> next_;          // what ranks have sent as theirs

  std::mutex waiting_mutex_;                       // guards what follows
  int64_t batches_ = 0;                            // that were numbered
  std::map<int64_t, TableWisePrepared*> waiting_;  // by number: prepared, and not looked up yet

  std::atomic<int64_t> lookups_{0};
};

}  // namespace recmill::store
