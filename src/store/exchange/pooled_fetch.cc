// SPDX-License-Identifier: Apache-2.0
#include "store/exchange/pooled_fetch.h"

#include <algorithm>
#include <utility>

#include "batch/feature_layout.h"
#include "comm/begin_messages.h"
#include "kernels/embedding_pool/embedding_pool.h"

namespace recmill::store {

PooledFetch::PooledFetch(Communicator& communicator,
                         const std::vector<table::EmbeddingTable>& tables, const ModelSpec& model,
                         PooledFeatures features, ThreadPool& pool)
    : communicator_(communicator),
      tables_(tables),
      model_(model),
      features_(std::move(features)),
      index_(model.features.size(), -1),
      pool_(pool),
      requests_(communicator, WantedParts::kGroups * features_.size()),
      replies_(communicator.ranks()),
      parts_(communicator.ranks()),
      begins_(communicator.ranks()) {
  for (size_t k = 0; k < features_.size(); ++k) {
    RECMILL_CHECK(is_pooled(model_.features[features_[k]].pooling),
                  model_.features[features_[k]].name);
    index_[features_[k]] = static_cast<int>(k);
  }
}

void PooledFetch::plan(const SparseBatch& sparse, std::span<const int64_t> begins,
                       WantedParts& wanted) const {
  wanted.features.resize(features_.size());
  wanted.to_ask.resize(communicator_.ranks());
  pool_.run(std::ssize(features_), [&](int64_t k) {
    wanted.set(k, sparse.features[features_[k]].view(sparse.samples), table_of(k));
  });
  wanted.address(begins);
}

void PooledFetch::set_means(const SparseBatch& sparse, std::span<const size_t> features_of,
                            DistinctRows& distinct) const {
  const auto is_mean = [&](size_t f) {
    return index_[f] >= 0 && model_.features[f].pooling == Pooling::mean;
  };
  if (distinct.rows.empty() || std::ranges::none_of(features_of, is_mean)) return;
  distinct.counts.assign(distinct.lookups(), 1.0f);
  for (int64_t i = 0; i < distinct.lookups(); ++i) {
    const size_t f = features_of[distinct.sources[i].feature];
    const auto sample = distinct.sources[i].gradient_row;
    const auto& offsets = sparse.features[f].offsets;
    if (is_mean(f)) distinct.counts[i] = static_cast<float>(offsets[sample + 1] - offsets[sample]);
  }
}

Status PooledFetch::fetch(const SparseBatch& sparse, const WantedParts& wanted, Output output,
                          std::vector<std::vector<AskedBags>>& asked) {
  RECMILL_ASSIGN_OR_RETURN(const auto requests, requests_.ask(wanted.to_ask));
  asked.resize(requests.size());
  for (size_t rank = 0; rank < requests.size(); ++rank) {
    asked[rank].resize(features_.size());
    for (size_t k = 0; k < features_.size(); ++k)
      RECMILL_RETURN_IF_ERROR(asked[rank][k].read(requests[rank], k, table_of(k)));
  }
  pool_asked(asked);
  RECMILL_RETURN_IF_ERROR(bring(wanted));
  pool_.run(std::ssize(features_), [&](int64_t k) {
    add_parts(k, wanted, output[features_[k]]);
    divide(k, sparse, output[features_[k]]);
  });
  return {};
}

void PooledFetch::pool_asked(std::span<const std::vector<AskedBags>> asked) {
  std::vector<kernels::PoolTask> tasks;
  for (size_t rank = 0; rank < asked.size(); ++rank) {
    int64_t floats = 0;
    for (size_t k = 0; k < features_.size(); ++k)
      floats += asked[rank][k].bags() * table_of(k).columns().count;
    replies_[rank].resize(floats);
    float* out = replies_[rank].data();
    for (size_t k = 0; k < features_.size(); ++k) {
      const AskedBags& bags = asked[rank][k];
      const int64_t columns = table_of(k).columns().count;
      if (bags.bags() > 0)
        tasks.push_back({bags.view(bags.slots), table_of(k).rows(), Pooling::sum, out, columns});
      out += bags.bags() * columns;
    }
  }
  kernels::embedding_pool(tasks, pool_);
}

Status PooledFetch::bring(const WantedParts& wanted) {
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    std::vector<int64_t> ends{0};
    for (size_t k = 0; k < features_.size(); ++k)
      ends.push_back(ends.back() + std::ssize(wanted.features[k].parts[rank].samples) *
                                       table_of(k).columns_of(rank).count);
    const bool own = rank == communicator_.rank();
    parts_[rank].resize(own ? 0 : ends.back());
    const std::vector<float>& from = own ? replies_[rank] : parts_[rank];
    begins_[rank].clear();
    for (size_t k = 0; k < features_.size(); ++k) begins_[rank].push_back(from.data() + ends[k]);
  }
  RECMILL_ASSIGN_OR_RETURN(const auto exchange, communicator_.exchange(0));
  RECMILL_RETURN_IF_ERROR(begin_messages(*exchange, communicator_.rank(), replies_, parts_, 0));
  return exchange->wait(0);
}

void PooledFetch::add_parts(size_t feature, const WantedParts& wanted,
                            const FeatureOutput& output) const {
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    const ColumnRange columns = table_of(feature).columns_of(rank);
    const float* from = begins_[rank][feature];
    for (const int64_t sample : wanted.features[feature].parts[rank].samples) {
      float* to = output.data + sample * output.stride + columns.first;
      for (int64_t e = 0; e < columns.count; ++e) to[e] += from[e];
      from += columns.count;
    }
  }
}

void PooledFetch::divide(size_t feature, const SparseBatch& sparse,
                         const FeatureOutput& output) const {
  const FeatureSpec& spec = model_.features[features_[feature]];
  if (spec.pooling != Pooling::mean) return;
  const int64_t dim = table_of(feature).spec().dim;
  const auto& offsets = sparse.features[features_[feature]].offsets;
  for (int64_t sample = 0; sample < sparse.samples; ++sample) {
    const auto lookups = static_cast<float>(offsets[sample + 1] - offsets[sample]);
    float* of = output.data + sample * output.stride;
    for (int64_t e = 0; e < dim && lookups > 0; ++e) of[e] = of[e] / lookups;
  }
}

}  // namespace recmill::store
