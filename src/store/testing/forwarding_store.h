// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "store/embedding_store.h"

namespace recmill::store::testing {

/// What stores that decorate another one have in common: it does what they do not say otherwise.
class ForwardingStore : public EmbeddingStore {
 public:
  Result<std::unique_ptr<Prepared>> prepare(const Batch& batch) override {
    return inner_->prepare(batch);
  }
  Status lookup(Prepared& prepared, Output output, Stream& stream) override {
    return inner_->lookup(prepared, output, stream);
  }
  Status update(std::span<const Update> updates, const Step& step, Stream& stream) override {
    return inner_->update(updates, step, stream);
  }
  Status settle() override { return inner_->settle(); }
  std::unique_ptr<RowSnapshot> snapshot(int64_t kept_bytes) override {
    return inner_->snapshot(kept_bytes);
  }
  table::Extent extent(int table) const override { return inner_->extent(table); }
  Status write_rows(const RowBlock& block) override { return inner_->write_rows(block); }
  StoreStats stats() const override { return inner_->stats(); }

 protected:
  explicit ForwardingStore(std::unique_ptr<EmbeddingStore> inner) : inner_(std::move(inner)) {}
  EmbeddingStore& inner() const { return *inner_; }

 private:
  const std::unique_ptr<EmbeddingStore> inner_;
};

}  // namespace recmill::store::testing
