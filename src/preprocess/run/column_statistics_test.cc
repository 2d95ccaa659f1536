// SPDX-License-Identifier: Apache-2.0
#include "preprocess/run/column_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/json/json.h"
#include "base/random.h"

namespace recmill::preprocess {
namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

FeatureGraph graph_of(const std::vector<std::vector<std::string>>& columns) {
  FeatureGraph graph;
  for (size_t c = 0; c < columns.size(); ++c) {
    const std::string name = "d" + std::to_string(c);
    graph.dense.push_back({name, Source::dense, name, static_cast<int>(c), {}, false});
    for (const std::string& op : columns[c]) {
      graph.dense.back().ops.push_back({op, Json::object()});
      if (op == "fill_null") *graph.dense.back().ops.back().parameters = {{"value", 1.5}};
    }
  }
  return graph;
}

/// The statistics of `batches`, found by all passes that they take.
FeatureGraph fitted(FeatureGraph graph, const std::vector<ColumnBatch>& batches, int threads,
                    StatisticsPass::Way way) {
  ThreadPool pool(threads);
  while (lacks_statistics(graph)) {
    auto pass = StatisticsPass::begin(graph, way);
    RECMILL_CHECK(pass.ok(), pass.status().message());
    for (const ColumnBatch& batch : batches) pass->add(batch, pool);
    RECMILL_CHECK(pass->finish(graph).ok());
  }
  return graph;
}

ColumnBatch batch_of(std::vector<std::vector<float>> columns) {
  ColumnBatch batch;
  batch.samples = std::ssize(columns[0]);
  batch.dense.assign(columns.begin(), columns.end());
  return batch;
}

}  // namespace

TEST(ColumnStatistics, are_of_the_values_that_come_to_the_op_without_missing_ones) {
  const std::vector<ColumnBatch> batches{batch_of({{1, 2, kMissing}, {5, kMissing, 5}}),
                                         batch_of({{3, 6}, {kMissing, 5}})};
  const auto graph = fitted(graph_of({{"standardize", "fill_null"}, {"standardize"}}), batches, 1,
                            StatisticsPass::Way::fast);
  EXPECT_EQ((*graph.dense[0].ops[0].parameters)["mean"], 3.0);
  EXPECT_EQ((*graph.dense[0].ops[0].parameters)["deviation"], std::sqrt(3.5));
  EXPECT_EQ((*graph.dense[1].ops[0].parameters)["mean"], 5.0);
  EXPECT_EQ((*graph.dense[1].ops[0].parameters)["deviation"], 1.0) << "all are the same";
  const auto filled =
      fitted(graph_of({{"fill_null", "standardize"}, {}}), batches, 1, StatisticsPass::Way::fast);
  EXPECT_EQ((*filled.dense[0].ops[1].parameters)["mean"], (1 + 2 + 1.5 + 3 + 6) / 5);
  const auto none =
      fitted(graph_of({{"standardize"}}), {batch_of({{kMissing}})}, 1, StatisticsPass::Way::fast);
  EXPECT_EQ((*none.dense[0].ops[0].parameters)["mean"], 0.0);
  EXPECT_EQ((*none.dense[0].ops[0].parameters)["deviation"], 1.0);
}

TEST(ColumnStatistics, are_the_same_bits_in_any_pieces_on_any_threads_and_plainly) {
  const Random random(5, Purpose::test);
  std::vector<ColumnBatch> pieces;
  std::vector<std::vector<float>> whole(3);
  for (const int64_t samples : {1, 1000, 24, 2000}) {
    std::vector<std::vector<float>> columns(3);
    for (int64_t s = 0; s < samples; ++s) {
      for (size_t c = 0; c < 3; ++c) {
        const uint32_t bits = random.bits(whole[c].size(), c);
        const float value = bits % 7 == 0 ? kMissing : 1e6f + static_cast<float>(bits % 3000);
        columns[c].push_back(value);
        whole[c].push_back(value);
      }
    }
    pieces.push_back(batch_of(columns));
  }
  const FeatureGraph graph = graph_of({{"log", "standardize", "fill_null", "standardize"},
                                       {"standardize"},
                                       {"fill_null", "standardize"}});
  const auto plain = fitted(graph, {batch_of(whole)}, 1, StatisticsPass::Way::plain);
  EXPECT_EQ(fitted(graph, pieces, 3, StatisticsPass::Way::fast), plain);
  FeatureGraph taken = graph;
  take_statistics(plain, taken);
  EXPECT_EQ(taken, plain);
  FeatureGraph other = graph_of({{"standardize"}, {"standardize"}, {"standardize"}});
  take_statistics(plain, other);
  EXPECT_TRUE(other.dense[0].ops[0].parameters->empty()) << "of other ops";
  EXPECT_FALSE(other.dense[1].ops[0].parameters->empty());
}

}  // namespace recmill::preprocess
