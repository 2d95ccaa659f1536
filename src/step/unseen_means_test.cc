// SPDX-License-Identifier: Apache-2.0
#include "step/unseen_means.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <utility>

#include "comm/threads.h"
#include "placement_plan/testing/random_plan.h"
#include "store/placed/placed_store.h"
#include "store/table_store.h"
#include "store/tables/plain_store.h"
#include "store/testing/scenario.h"

namespace recmill::train {
namespace {

/// Weights of each (table, row), over all ranks.
using Rows = std::map<std::pair<int, int64_t>, std::vector<float>>;

// A row's elements may be several ranks': each puts its own where they belong.
void read(store::EmbeddingStore& store, const ModelSpec& spec, std::mutex& mutex, Rows& rows) {
  const Status status = store.read_rows([&](const store::RowBlock& block) {
    const std::lock_guard lock(mutex);
    const ColumnRange columns = block.columns_of(spec.tables[block.table].dim);
    for (int64_t i = 0; i < block.count; ++i) {
      auto& row = rows[{block.table, block.row(i)}];
      row.resize(spec.tables[block.table].dim);
      for (int64_t c = 0; c < columns.count; ++c)
        row[columns.first + c] = block.weights[i * columns.count + c];
    }
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

ModelSpec spec_of() {
  ModelSpec spec = store::testing::scenario_model();
  for (TableSpec& table : spec.tables)
    if (table.rows == 1) table.rows = 2;  // a dictionary's
  return spec;
}

// Dictionary d is of table t = last - d, so that their orders differ; every third asks for no mean.
preprocess::FeatureGraph graph_of(const ModelSpec& spec) {
  preprocess::FeatureGraph graph;
  for (size_t t = spec.tables.size(); t-- > 0;)
    graph.dictionaries.push_back({.name = spec.tables[t].name,
                                  .rows = spec.tables[t].rows,
                                  .unseen = t % 3 == 0 ? "row" : "mean"});
  return graph;
}

// None, some, or all rows are an id's.
preprocess::DictionaryVersions entries_of(const ModelSpec& spec) {
  preprocess::DictionaryVersions entries;
  for (size_t t = spec.tables.size(); t-- > 0;)
    entries.push_back(t % 4 == 1 ? 0 : t % 4 == 2 ? spec.tables[t].rows - 1 : 1);
  return entries;
}

/// The plain reference: sums in long double, row after row.
Rows with_means(const ModelSpec& spec, const Rows& rows) {
  const auto graph = graph_of(spec);
  const auto entries = entries_of(spec);
  ThreadPool pool(1);
  auto store = *store::PlainStore::create(spec, 1, pool);
  for (size_t t = 0; t < spec.tables.size(); ++t) {
    const size_t d = spec.tables.size() - 1 - t;
    std::vector<float> row_0 = rows.at({static_cast<int>(t), 0});
    if (graph.dictionaries[d].unseen == "mean") {
      for (int64_t c = 0; c < spec.tables[t].dim; ++c) {
        long double sum = 0.0L;
        for (int64_t row = 1; row <= entries[d]; ++row)
          sum += rows.at({static_cast<int>(t), row})[c];
        row_0[c] = entries[d] == 0 ? 0.0f : static_cast<float>(sum / entries[d]);
      }
    }
    // In the precision of the rows.
    EXPECT_TRUE(store->write_rows({static_cast<int>(t), 0, 1, row_0, {}}).ok());
  }
  Rows written, expected = rows;
  std::mutex mutex;
  read(*store, spec, mutex, written);
  for (auto& [place, row] : expected)
    if (place.second == 0) row = written.at(place);
  return expected;
}

enum class Kind { local, placed, plain };

Result<std::unique_ptr<store::EmbeddingStore>> make_store(Kind kind, const ModelSpec& spec,
                                                          Communicator& communicator,
                                                          ThreadPool& pool) {
  std::unique_ptr<store::EmbeddingStore> store;
  if (kind == Kind::plain) {
    RECMILL_ASSIGN_OR_RETURN(store, store::PlainStore::create(spec, 5, pool));
  } else if (kind == Kind::local) {
    RECMILL_ASSIGN_OR_RETURN(store, store::create_table_store(spec, 5, communicator, pool));
  } else {
    const int ranks = communicator.ranks();
    RECMILL_ASSIGN_OR_RETURN(
        auto placed, table::PlacedTables::create(testing::random_plan(spec.tables, ranks, 9),
                                                 spec.tables, ranks));
    RECMILL_ASSIGN_OR_RETURN(store,
                             store::PlacedStore::create(spec, 5, communicator, pool, placed, {}));
  }
  return store;
}

TEST(UnseenMeans, are_row_0_of_every_store_while_a_pass_is_scored) {
  const ModelSpec spec = spec_of();
  const auto graph = graph_of(spec);
  for (const auto& [kind, ranks] : {std::pair{Kind::plain, 1}, std::pair{Kind::local, 1},
                                    std::pair{Kind::local, 3}, std::pair{Kind::placed, 2}}) {
    Rows before, during, after;
    std::mutex mutex;
    const Status status = run_ranks(ranks, [&, kind = kind](Communicator& communicator) -> Status {
      ThreadPool pool(1);
      RECMILL_ASSIGN_OR_RETURN(const auto store, make_store(kind, spec, communicator, pool));
      const auto means = UnseenMeans::make(graph, spec, *store, communicator);
      RankBatch batch;
      batch.dictionaries = entries_of(spec);
      RECMILL_RETURN_IF_ERROR(means->before(batch));  // of training: nothing happens
      EXPECT_FALSE(means->are_in());
      read(*store, spec, mutex, before);
      batch.purpose = store::Purpose::evaluate;
      RECMILL_RETURN_IF_ERROR(means->before(batch));
      RECMILL_RETURN_IF_ERROR(means->after(batch));  // more of the pass follow
      EXPECT_TRUE(means->are_in());
      batch.last_of_pass = true;
      RECMILL_RETURN_IF_ERROR(means->before(batch));
      read(*store, spec, mutex, during);
      RECMILL_RETURN_IF_ERROR(means->after(batch));
      EXPECT_FALSE(means->are_in());
      read(*store, spec, mutex, after);
      return {};
    });
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(during, with_means(spec, before)) << ranks;
    EXPECT_EQ(after, before) << ranks;
  }
}

TEST(UnseenMeans, are_nowhere_where_no_table_asks_for_them) {
  const ModelSpec spec = spec_of();
  preprocess::FeatureGraph graph = graph_of(spec);
  for (auto& dictionary : graph.dictionaries) dictionary.unseen = "zero";
  const ThreadsGroup group(1);
  const auto communicator = group.communicator(0);
  ThreadPool pool(1);
  const auto store = *make_store(Kind::local, spec, *communicator, pool);
  EXPECT_EQ(UnseenMeans::make(graph, spec, *store, *communicator), nullptr);
}

}  // namespace
}  // namespace recmill::train
