// SPDX-License-Identifier: Apache-2.0
#include "batch/feature_layout.h"

#include <gtest/gtest.h>

namespace recmill {
namespace {

ModelSpec model_of_two_sequences() {
  ModelSpec model;
  model.tables = {{.name = "a", .rows = 9, .dim = 3, .optimizer = {}},
                  {.name = "b", .rows = 9, .dim = 5, .optimizer = {}}};
  model.features = {{.name = "sum", .table = 1},
                    {.name = "first", .table = 0, .pooling = Pooling::none},
                    {.name = "mean", .table = 0, .pooling = Pooling::mean},
                    {.name = "second", .table = 1, .pooling = Pooling::none}};
  return model;
}

TEST(FeatureLayout, puts_pooled_rows_side_by_side_and_numbers_sequences) {
  const FeatureLayout layout(model_of_two_sequences());
  ASSERT_EQ(layout.features().size(), 4u);
  EXPECT_EQ(layout.features()[0].column, 0);
  EXPECT_EQ(layout.features()[2].column, 5);
  EXPECT_EQ(layout.columns(), 8);
  ASSERT_EQ(layout.sequences().size(), 2u);
  for (size_t i : {0, 1}) {
    const FeatureLayout::Feature& of = layout.sequences()[i];
    EXPECT_EQ(of.index, 1 + 2 * i);
    EXPECT_EQ(of.sequence, i);
    EXPECT_EQ(layout.features()[of.index].sequence, i);
    EXPECT_FALSE(of.is_pooled());
  }
  EXPECT_EQ(layout.sequences()[1].dim, 5);
  EXPECT_EQ(layout.sequences()[1].table, 1);
}

TEST(FeatureLayout, gives_a_row_a_sample_of_pooled_features_and_a_row_a_lookup_of_others) {
  const FeatureLayout layout(model_of_two_sequences());
  SparseBatch batch;
  batch.samples = 2;
  batch.features.resize(4);
  for (SparseFeature& feature : batch.features) feature = {{0, 3, 3}, {7, 1, 7}, {}, false};
  std::vector<int64_t> rows;
  for (const FeatureLayout::Feature& feature : layout.features())
    rows.push_back(feature.rows_out(batch));
  EXPECT_EQ(rows, (std::vector<int64_t>{2, 3, 2, 3}));
}

TEST(FeatureLayout, does_not_overflow_where_dimensions_are_too_large_to_be_trained) {
  ModelSpec model = model_of_two_sequences();
  model.tables[0].dim = model.tables[1].dim = int64_t{1} << 62;
  EXPECT_GE(FeatureLayout(model).columns(), int64_t{1} << 62);
}

}  // namespace
}  // namespace recmill
