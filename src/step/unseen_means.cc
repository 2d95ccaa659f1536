// SPDX-License-Identifier: Apache-2.0
#include "step/unseen_means.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/exact_sum.h"
#include "comm/gather_values.h"

namespace recmill::train {
namespace {

/// An element of a row 0; its place counts through the rows 0 of all tables.
struct Element {
  int64_t place = 0;
  float value = 0.0f;
};

/// What one rank has of tables whose elements of a row count through from table to table.
struct Found {
  std::vector<ExactSum> sums;  // [elements]
  std::vector<Element> row_0;
};

void add_rows(const store::RowBlock& block, int64_t dim, int64_t entries, int64_t place,
              Found& found) {
  const ColumnRange columns = block.columns_of(dim);
  for (int64_t i = 0; i < block.count; ++i) {
    const int64_t row = block.row(i);
    if (row > entries) return;  // rows ascend
    const std::span<const float> values =
        block.weights.subspan(static_cast<size_t>(i * columns.count), columns.count);
    for (int64_t c = 0; c < columns.count; ++c) {
      const int64_t at = place + columns.first + c;
      if (row == 0) {
        found.row_0.push_back({at, values[c]});
      } else {
        found.sums[at].add(values[c]);
      }
    }
  }
}

// Of all ranks, on each.
Status gather(Communicator& communicator, Found& found) {
  if (communicator.ranks() == 1) return {};
  const Found own = std::move(found);
  found = {std::vector<ExactSum>(own.sums.size()), {}};
  RECMILL_ASSIGN_OR_RETURN(const auto sums,
                           gather_lists(std::span<const ExactSum>(own.sums), communicator));
  for (const auto& of_rank : sums)
    for (size_t i = 0; i < of_rank.size(); ++i) found.sums[i].add(of_rank[i]);
  RECMILL_ASSIGN_OR_RETURN(const auto rows,
                           gather_lists(std::span<const Element>(own.row_0), communicator));
  for (const auto& of_rank : rows)
    found.row_0.insert(found.row_0.end(), of_rank.begin(), of_rank.end());
  return {};
}

}  // namespace

std::unique_ptr<UnseenMeans> UnseenMeans::make(const preprocess::FeatureGraph& graph,
                                               const ModelSpec& spec, store::EmbeddingStore& store,
                                               Communicator& communicator) {
  std::vector<Table> tables;
  for (size_t t = 0; t < spec.tables.size(); ++t) {
    for (size_t d = 0; d < graph.dictionaries.size(); ++d) {
      const preprocess::DictionarySpec& dictionary = graph.dictionaries[d];
      if (dictionary.name == spec.tables[t].name && dictionary.unseen == "mean")
        tables.push_back({static_cast<int>(t), d});
    }
  }
  if (tables.empty()) return nullptr;
  return std::unique_ptr<UnseenMeans>(
      new UnseenMeans(std::move(tables), spec, store, communicator));
}

UnseenMeans::UnseenMeans(std::vector<Table> tables, const ModelSpec& spec,
                         store::EmbeddingStore& store, Communicator& communicator)
    : tables_(std::move(tables)), spec_(spec), store_(store), communicator_(communicator) {}

Status UnseenMeans::before(const RankBatch& batch) {
  if (batch.purpose == store::Purpose::train || are_in_) return {};
  RECMILL_RETURN_IF_ERROR(replace(batch.dictionaries));
  are_in_ = true;
  return {};
}

Status UnseenMeans::after(const RankBatch& batch) {
  if (!are_in_ || !batch.last_of_pass) return {};
  are_in_ = false;
  for (const Table& table : tables_)
    RECMILL_RETURN_IF_ERROR(store_.write_rows({table.number, 0, 1, table.row_0, {}}));
  return {};
}

Status UnseenMeans::replace(const preprocess::DictionaryVersions& entries) {
  Found found;
  std::vector<int64_t> places;  // of each table's element 0
  for (const Table& table : tables_) {
    places.push_back(std::ssize(found.sums));
    found.sums.resize(found.sums.size() + spec_.tables[table.number].dim);
  }
  RECMILL_RETURN_IF_ERROR(store_.settle());
  RECMILL_RETURN_IF_ERROR(store_.read_rows([&](const store::RowBlock& block) {
    const auto of = std::ranges::find(tables_, block.table, &Table::number);
    if (of != tables_.end())
      add_rows(block, spec_.tables[block.table].dim, entries[of->dictionary],
               places[of - tables_.begin()], found);
    return Status();
  }));
  RECMILL_RETURN_IF_ERROR(gather(communicator_, found));
  std::vector<float> row_0(found.sums.size());
  for (const Element& element : found.row_0) row_0[element.place] = element.value;
  for (size_t i = 0; i < tables_.size(); ++i) {
    const int64_t dim = spec_.tables[tables_[i].number].dim;
    const int64_t rows = std::max<int64_t>(entries[tables_[i].dictionary], 1);
    tables_[i].row_0.assign(row_0.begin() + places[i], row_0.begin() + places[i] + dim);
    std::vector<float> mean(dim);
    for (int64_t c = 0; c < dim; ++c)
      mean[c] = static_cast<float>(found.sums[places[i] + c].mean(rows));
    RECMILL_RETURN_IF_ERROR(store_.write_rows({tables_[i].number, 0, 1, mean, {}}));
  }
  return {};
}

}  // namespace recmill::train
