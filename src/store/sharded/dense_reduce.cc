// SPDX-License-Identifier: Apache-2.0
#include "store/sharded/dense_reduce.h"

#include <algorithm>
#include <numeric>

#include "table/row_map.h"

namespace recmill::store {
namespace {

constexpr int64_t kRowsATask = 256;

/// Null: the table has no rows with copies that are updated.
const table::RowMap* map_of_copies(const TableSpec& spec, const table::RowShare& share) {
  return spec.frozen || !share.has_copies() ? nullptr : share.map();
}
const table::RowMap* map_of_copies(const table::EmbeddingTable& table) {
  return map_of_copies(table.spec(), table.share());
}

}  // namespace

int64_t DenseReduce::elements(const std::vector<table::EmbeddingTable>& tables) {
  int64_t elements = 0;
  for (const auto& table : tables)
    if (const auto* map = map_of_copies(table))
      elements += map->copied_rows() * (table.spec().dim + 1);
  return elements;
}

int64_t DenseReduce::bytes(const ModelSpec& model, std::span<const table::TableShare> shares) {
  int64_t bytes = 0;
  for (size_t t = 0; t < shares.size(); ++t) {
    const auto* map = map_of_copies(model.tables[t], shares[t].rows);
    if (map == nullptr) continue;
    const int64_t vectors = 2 * 4 * (model.tables[t].dim + 1);  // its own sums, and the total
    bytes += map->copied_rows() * (vectors + 8);
  }
  return bytes;
}

DenseReduce::DenseReduce(Communicator& communicator,
                         const std::vector<table::EmbeddingTable>& tables, ThreadPool& pool)
    : communicator_(communicator),
      tables_(tables),
      pool_(pool),
      elements_(elements(tables)),
      copied_(tables.size()) {
  int64_t first = 0, first_flag = elements_;
  for (size_t t = 0; t < tables.size(); ++t) {
    const auto* map = map_of_copies(tables[t]);
    if (map == nullptr) continue;
    CopiedRows& copied = copied_[t];
    copied.first = first;
    first += map->copied_rows() * tables[t].spec().dim;
    first_flag -= map->copied_rows();
    copied.first_flag = first_flag;
    copied.rows.assign(map->copied_rows(), -1);
    for (int64_t row = map->next_copied(0, map->rows()); row < map->rows();
         row = map->next_copied(row + 1, map->rows())) {
      const table::RowPlace place = map->place(row);
      if (map->has_copy(place, communicator.rank())) copied.rows[map->copied_number(place)] = row;
    }
  }
}

Result<std::vector<TableSums>> DenseReduce::reduce(std::span<const TableGradients> sources,
                                                   int slices) {
  const auto trees = subtrees(slices_of_rank(communicator_.rank(), communicator_.ranks(), slices));
  sums_.resize(trees.size());
  for (auto& sums : sums_) sums.assign(elements_, 0.0f);
  total_.resize(elements_);
  for (size_t t = 0; t < tables_.size(); ++t)
    if (map_of_copies(tables_[t]) != nullptr) add_table(sources[t], t, trees);
  if (reduce_ == nullptr || slices_ != slices)
    reduce_ = std::make_unique<OrderedReduce<float>>(communicator_, slices, pool_);
  slices_ = slices;
  std::vector<SlicePart<float>> parts;
  for (size_t tree = 0; tree < trees.size(); ++tree)
    parts.push_back({trees[tree], sums_[tree].data()});
  RECMILL_RETURN_IF_ERROR((*reduce_)(parts, total_));
  std::vector<TableSums> result(tables_.size());
  for (size_t t = 0; t < tables_.size(); ++t)
    if (map_of_copies(tables_[t]) != nullptr) result[t] = collect(t);
  return result;
}

void DenseReduce::add_table(const TableGradients& source, size_t table,
                            std::span<const SliceRange> trees) {
  const auto& map = *tables_[table].share().map();
  const int64_t dim = tables_[table].spec().dim;
  std::vector<int64_t> indices, numbers;
  for (size_t i = 0; i < source.places.size(); ++i) {
    if (!map.is_copied(source.places[i])) continue;
    indices.push_back(static_cast<int64_t>(i));
    numbers.push_back(map.copied_number(source.places[i]));
  }
  const auto width = static_cast<int64_t>(trees.size()) * dim;
  pool_.run_ranges(
      static_cast<int64_t>(indices.size()), kRowsATask, [&](int64_t begin, int64_t end) {
        std::vector<float> sums((end - begin) * width);
        kernels::sum_gradients({source.distinct, source.gradients, dim, source.ahead},
                               {indices.data() + begin, 0, end - begin}, trees, sums.data());
        const float* from = sums.data();
        for (int64_t i = begin; i < end; ++i) {
          for (auto& vector : sums_) {
            std::copy_n(from, dim, vector.data() + copied_[table].first + numbers[i] * dim);
            from += dim;
          }
          sums_[0][copied_[table].first_flag + numbers[i]] = 1.0f;
        }
      });
}

TableSums DenseReduce::collect(size_t table) {
  CopiedRows& copied = copied_[table];
  const int64_t dim = tables_[table].spec().dim;
  copied.found.clear();
  copied.parts.clear();
  for (size_t number = 0; number < copied.rows.size(); ++number) {
    if (copied.rows[number] < 0 || total_[copied.first_flag + number] == 0.0f) continue;
    copied.found.push_back(copied.rows[number]);
    copied.parts.push_back({total_.data() + copied.first + static_cast<int64_t>(number) * dim, 0});
  }
  copied.begins.resize(copied.found.size() + 1);
  std::iota(copied.begins.begin(), copied.begins.end(), 0);
  return {copied.found, {copied.begins, copied.parts}};
}

}  // namespace recmill::store
