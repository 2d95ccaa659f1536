// SPDX-License-Identifier: Apache-2.0
#include "store/testing/late_store.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "batch/feature_layout.h"
#include "comm/gather_values.h"

namespace recmill::store::testing {

// A batch of its own, so that neither the caller's SparseBatch nor its Prepared has to stay.
struct LateStore::Kept {
  SparseBatch sparse;
  Batch batch;
  std::unique_ptr<Prepared> inner;
};

struct LateStore::LatePrepared final : Prepared {
  explicit LatePrepared(std::shared_ptr<Kept> what) : kept(std::move(what)) {}
  const std::shared_ptr<Kept> kept;
};

struct LateStore::Pending {
  struct OfOneBatch {
    std::shared_ptr<Kept> kept;
    std::vector<std::vector<float>> values;  // [features][samples or lookups][dim]
    std::vector<FeatureGradient> gradient;   // views of values
  };
  std::vector<OfOneBatch> batches;
  Step step;
  Stream stream;
  std::set<Row> rows;  // of all ranks
};

LateStore::LateStore(ModelSpec model, std::unique_ptr<EmbeddingStore> inner,
                     Communicator& communicator)
    : ForwardingStore(std::move(inner)), model_(std::move(model)), communicator_(communicator) {}

LateStore::~LateStore() = default;

Result<std::unique_ptr<Prepared>> LateStore::prepare(const Batch& batch) {
  auto kept = std::make_shared<Kept>();
  kept->sparse = *batch.sparse;
  kept->batch = batch;
  kept->batch.sparse = &kept->sparse;
  RECMILL_ASSIGN_OR_RETURN(kept->inner, inner().prepare(kept->batch));
  return std::unique_ptr<Prepared>(std::make_unique<LatePrepared>(std::move(kept)));
}

std::set<LateStore::Row> LateStore::rows_of(const SparseBatch& batch) const {
  std::set<Row> rows;
  for (size_t f = 0; f < model_.features.size(); ++f) {
    for (int64_t row : batch.features[f].rows) rows.emplace(model_.features[f].table, row);
  }
  return rows;
}

Result<std::set<LateStore::Row>> LateStore::rows_of_all_ranks(const std::set<Row>& own) {
  if (communicator_.ranks() == 1) return own;
  const std::vector<Row> list(own.begin(), own.end());
  RECMILL_ASSIGN_OR_RETURN(const Received received,
                           communicator_.all_gather(std::as_bytes(std::span(list))));
  std::vector<Row> all(received.bytes.size() / sizeof(Row));
  if (!all.empty())
    std::memcpy(static_cast<void*>(all.data()), received.bytes.data(), received.bytes.size());
  return std::set<Row>(all.begin(), all.end());
}

Result<int64_t> LateStore::latest_of_all_ranks(int64_t own) {
  if (communicator_.ranks() == 1) return own;
  RECMILL_ASSIGN_OR_RETURN(const auto all, gather_values(own, communicator_));
  return std::ranges::max(all);
}

Status LateStore::lookup(Prepared& prepared, Output output, Stream& stream) {
  const Kept& kept = *static_cast<LatePrepared&>(prepared).kept;
  {
    std::lock_guard lock(mutex_);
    int64_t needed = 0;  // updates, from the oldest on
    const std::set<Row> wanted = rows_of(kept.sparse);
    for (size_t i = 0; i < pending_.size(); ++i) {
      const auto& touched = pending_[i]->rows;
      if (std::any_of(wanted.begin(), wanted.end(),
                      [&](const Row& row) { return touched.count(row) > 0; })) {
        needed = static_cast<int64_t>(i) + 1;
      }
    }
    RECMILL_ASSIGN_OR_RETURN(needed, latest_of_all_ranks(needed));
    RECMILL_RETURN_IF_ERROR(finish(needed));
  }
  return inner().lookup(*kept.inner, output, stream);
}

Status LateStore::update(std::span<const Update> updates, const Step& step, Stream& stream) {
  auto pending = std::make_unique<Pending>(Pending{{}, step, stream, {}});
  std::set<Row> rows;
  for (const Update& update : updates) {
    Pending::OfOneBatch one{static_cast<LatePrepared&>(*update.prepared).kept, {}, {}};
    const SparseBatch& sparse = one.kept->sparse;
    for (size_t f = 0; f < model_.features.size(); ++f) {
      const int64_t dim = model_.dim_of(f);
      const int64_t items =
          rows_out(model_.features[f].pooling, sparse.features[f].view(sparse.samples));
      std::vector<float> values;
      for (int64_t i = 0; i < items; ++i) {
        const float* from = update.gradient[f].data + i * update.gradient[f].stride;
        values.insert(values.end(), from, from + dim);
      }
      one.values.push_back(std::move(values));
      one.gradient.push_back({one.values.back().data(), dim});
    }
    rows.merge(rows_of(sparse));
    pending->batches.push_back(std::move(one));
  }
  RECMILL_ASSIGN_OR_RETURN(pending->rows, rows_of_all_ranks(rows));
  std::lock_guard lock(mutex_);
  pending_.push_back(std::move(pending));
  return {};
}

// Finishes the `count` oldest updates, in order.
Status LateStore::finish(int64_t count) {
  if (count == 0) return {};
  Status status;
  std::thread([&] {
    for (int64_t i = 0; i < count && status.ok(); ++i) {
      Pending& pending = *pending_.front();
      std::vector<Update> updates;
      for (auto& one : pending.batches) updates.push_back({one.kept->inner.get(), one.gradient});
      status = inner().update(updates, pending.step, pending.stream);
      pending_.pop_front();
    }
  }).join();
  return status;
}

Status LateStore::settle() {
  std::lock_guard lock(mutex_);
  RECMILL_RETURN_IF_ERROR(finish(static_cast<int64_t>(pending_.size())));
  return inner().settle();
}

std::unique_ptr<RowSnapshot> LateStore::snapshot(int64_t kept_bytes) {
  RECMILL_CHECK(pending_.empty(), "snapshot() before settle()");
  return inner().snapshot(kept_bytes);
}

Status LateStore::write_rows(const RowBlock& block) {
  RECMILL_CHECK(pending_.empty(), "write_rows() before settle()");
  return inner().write_rows(block);
}

}  // namespace recmill::store::testing
