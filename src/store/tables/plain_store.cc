// SPDX-License-Identifier: Apache-2.0
#include "store/tables/plain_store.h"

#include <string>

#include "batch/feature_layout.h"
#include "kernels/embedding_pool/embedding_pool.h"
#include "kernels/row_update/apply_reference.h"
#include "store/batch_check.h"
#include "store/tables/table_rows.h"
#include "table/optimizers/row_formulas.h"
#include "table/table_update.h"

namespace recmill::store {
namespace {

struct PlainPrepared final : Prepared {
  explicit PlainPrepared(const Batch& of) : batch(of) {}
  const Batch batch;
};

const Batch& batch_of(Prepared& prepared) {
  return static_cast<PlainPrepared&>(prepared).batch;
}

// The balanced binary tree over slices [begin, end).
std::vector<float> tree(const std::vector<std::vector<float>>& sums, int begin, int end) {
  if (end - begin == 1) return sums[begin];
  const int middle = (begin + end) / 2;
  std::vector<float> left = tree(sums, begin, middle);
  const std::vector<float> right = tree(sums, middle, end);
  for (size_t e = 0; e < left.size(); ++e) left[e] = left[e] + right[e];
  return left;
}

void apply(table::EmbeddingTable& table, int64_t row, const std::vector<float>& gradient,
           const table::RowStep& step) {
  kernels::ApplyRange range;
  range.rows = table.rows();
  range.slots = &row;
  range.keys = &row;
  range.gradients = gradient.data();
  range.count = 1;
  range.rounding = table::rounding_of(table, step);
  range.l2 = table::l2_of_gradients(table.spec().optimizer);
  table::with_formula(table.spec().optimizer, step,
                      [&](const auto& formula) { kernels::apply_rows_reference(range, formula); });
}

}  // namespace

Result<std::unique_ptr<PlainStore>> PlainStore::create(ModelSpec model, uint64_t seed,
                                                       ThreadPool& pool) {
  RECMILL_ASSIGN_OR_RETURN(auto tables, create_tables(model, seed, 0, 1, pool));
  return std::unique_ptr<PlainStore>(new PlainStore(std::move(model), std::move(tables)));
}

Result<std::unique_ptr<Prepared>> PlainStore::prepare(const Batch& batch) {
  RECMILL_CHECK(batch.first_slice == 0 && batch.end_slice == batch.cut.slices);
  RECMILL_RETURN_IF_ERROR(check_batch(model_, batch));
  return std::unique_ptr<Prepared>(std::make_unique<PlainPrepared>(batch));
}

Status PlainStore::lookup(Prepared& prepared, Output output, Stream&) {
  const SparseBatch& batch = *batch_of(prepared).sparse;
  for (size_t f = 0; f < model_.features.size(); ++f) {
    const FeatureSpec& feature = model_.features[f];
    kernels::embedding_pool_reference({batch.features[f].view(batch.samples),
                                       tables_[feature.table].rows(), feature.pooling,
                                       output[f].data, output[f].stride});
    lookups_ += batch.features[f].view(batch.samples).lookups();
  }
  return {};
}

Status PlainStore::update(std::span<const Update> updates, const Step& step, Stream& stream) {
  if (updates.empty()) return {};
  const int slices = batch_of(*updates[0].prepared).cut.slices;
  for (size_t table = 0; table < tables_.size(); ++table) {
    if (model_.tables[table].frozen) continue;
    std::map<int64_t, SliceSums> sums;  // by row
    for (int slice = 0; slice < slices; ++slice) {
      for (const Update& update : updates) {
        RECMILL_CHECK(batch_of(*update.prepared).cut.slices == slices);
        for (size_t f = 0; f < model_.features.size(); ++f) {
          if (model_.features[f].table != static_cast<int>(table)) continue;
          add_gradients(update, slice, f, sums);
        }
      }
    }
    std::vector<int64_t> touched;
    touched.reserve(sums.size());
    for (const auto& [row, by_slice] : sums) touched.push_back(row);
    std::vector<std::span<const int64_t>> rows(tables_.size());
    rows[table] = touched;
    const auto change = snapshots_.before(rows, stream.pool());
    for (const auto& [row, by_slice] : sums) {
      const std::vector<float> gradient = tree(by_slice, 0, slices);
      apply(tables_[table], row, gradient, {step.iteration, step.learning_rate_scale});
      ++updated_rows_;
    }
  }
  return {};
}

// Adds the gradients of one feature's lookups in one slice, in the order (sample, position).
void PlainStore::add_gradients(const Update& update, int slice, size_t feature,
                               std::map<int64_t, SliceSums>& sums) const {
  const Batch& batch = batch_of(*update.prepared);
  const SparseFeature& bags = batch.sparse->features[feature];
  const Pooling pooling = model_.features[feature].pooling;
  const int64_t dim = model_.dim_of(feature);
  const FeatureGradient& gradient = update.gradient[feature];
  for (int64_t i = batch.cut.begin(slice); i < batch.cut.end(slice); ++i) {
    const int64_t begin = bags.offsets[i], end = bags.offsets[i + 1];
    for (int64_t j = begin; j < end; ++j) {
      auto& by_slice = sums[bags.rows[j]];
      if (by_slice.empty()) by_slice.assign(batch.cut.slices, std::vector<float>(dim, 0.0f));
      const int64_t at = is_pooled(pooling) ? i : j - bags.offsets[0];
      for (int64_t e = 0; e < dim; ++e) {
        float g = gradient.data[at * gradient.stride + e];
        if (pooling == Pooling::mean) g = g / static_cast<float>(end - begin);
        if (!bags.weights.empty()) g = g * bags.weights[j];
        by_slice[slice][e] = by_slice[slice][e] + g;
      }
    }
  }
}

Status PlainStore::write_rows(const RowBlock& block) {
  return write_table(tables_, block);
}

}  // namespace recmill::store
