// SPDX-License-Identifier: Apache-2.0
#include "model/model_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/initialize.h"
#include "schema/testing/tables_of_dims.h"

namespace recmill::model {
namespace {

using testing::HasSubstr;

ModelSpec spec_of(const std::vector<int64_t>& dims, int64_t num_dense = 13) {
  return tables_of_dims(dims, 100, num_dense);
}

ModelSpec with_history(ModelSpec spec) {
  FeatureSpec history;
  history.name = "history";
  history.table = 0;
  history.pooling = Pooling::none;
  spec.features.push_back(history);
  return spec;
}

std::string error(const ModelOptions& options, const ModelSpec& spec) {
  return check_options(options, spec).message();
}

TEST(CheckOptions, accepts_each_kind_with_fitting_sizes) {
  EXPECT_EQ("",
            error({.kind = ModelKind::dlrm, .bottom = {64, 48}, .top = {8, 1}}, spec_of({48, 48})));
  EXPECT_EQ("", error({.kind = ModelKind::dlrm, .top = {1}}, spec_of({48, 48}, 0)));
  EXPECT_EQ("", error({.kind = ModelKind::wide_and_deep, .deep = {8, 8}}, spec_of({4, 16})));
  EXPECT_EQ("",
            error({.kind = ModelKind::deep_fm, .deep = {8, 1}, .dropout = 0.5, .batch_norm = true},
                  spec_of({4, 4})));
  EXPECT_EQ("", error({.kind = ModelKind::deep_cross, .bottom = {64, 48}, .over = {8, 1}},
                      spec_of({4, 16})));
  EXPECT_EQ("", error({.kind = ModelKind::tbsm, .bottom = {4}, .top = {5}, .over = {1}},
                      with_history(spec_of({4, 4}))));
  EXPECT_EQ("", error({.kind = ModelKind::mlp, .top = {8, 1}}, spec_of({4, 16, 3}, 0)));
}

TEST(CheckOptions, names_the_key_and_both_sizes_when_layers_do_not_fit) {
  EXPECT_EQ("model.bottom: last size 16 must equal the rows' dimension 48",
            error({.kind = ModelKind::dlrm, .bottom = {64, 16}, .top = {8, 1}}, spec_of({48, 48})));
  EXPECT_EQ("model.top: last size 8 must equal the logit's size 1",
            error({.kind = ModelKind::dlrm, .bottom = {48}, .top = {8}}, spec_of({48, 48})));
  EXPECT_EQ("model.top: 'dlrm' needs at least one layer size",
            error({.kind = ModelKind::dlrm, .bottom = {48}}, spec_of({48, 48})));
  EXPECT_EQ("model.bottom: 'dlrm' needs at least one layer size",
            error({.kind = ModelKind::dlrm, .top = {1}}, spec_of({48, 48})));
  EXPECT_EQ("model.bottom: the data has no dense columns to put layers over",
            error({.kind = ModelKind::dlrm, .bottom = {48}, .top = {1}}, spec_of({48}, 0)));
}

TEST(CheckOptions, mlp_wants_pooled_rows_and_layers_to_the_logit) {
  EXPECT_EQ("model.top: last size 8 must equal the logit's size 1",
            error({.kind = ModelKind::mlp, .top = {16, 8}}, spec_of({4, 16})));
  EXPECT_EQ("model.top: 'mlp' needs at least one layer size",
            error({.kind = ModelKind::mlp}, spec_of({4})));
  EXPECT_EQ("model.bottom: 'mlp' has no such layers",
            error({.kind = ModelKind::mlp, .bottom = {4}, .top = {1}}, spec_of({4})));
  EXPECT_THAT(error({.kind = ModelKind::mlp, .top = {1}}, with_history(spec_of({4}))),
              HasSubstr("'mlp' takes pooled features, and 'history' is not"));
}

TEST(CheckOptions, refuses_what_the_kind_does_not_use) {
  EXPECT_EQ(
      "model.deep: 'dlrm' has no such layers",
      error({.kind = ModelKind::dlrm, .bottom = {48}, .top = {1}, .deep = {4}}, spec_of({48})));
  EXPECT_EQ("model.dropout: 'wide_and_deep' has none",
            error({.kind = ModelKind::wide_and_deep, .deep = {4}, .dropout = 0.1}, spec_of({48})));
  EXPECT_EQ("model.batch_norm: 'deep_cross' has none",
            error({.kind = ModelKind::deep_cross, .bottom = {4}, .over = {1}, .batch_norm = true},
                  spec_of({48})));
  EXPECT_THAT(error({.kind = ModelKind::wide_and_deep, .deep = {4}}, with_history(spec_of({4}))),
              HasSubstr("'wide_and_deep' takes pooled features, and 'history' is not"));
  EXPECT_THAT(error({.kind = ModelKind::deep_fm, .deep = {1}}, spec_of({4, 8})),
              HasSubstr("feature 'F0' has 4, 'F1' has 8"));
}

TEST(CheckOptions, tbsm_wants_one_target_for_each_history) {
  const ModelOptions options{.kind = ModelKind::tbsm, .bottom = {4}, .top = {5}, .over = {1}};
  EXPECT_THAT(error(options, spec_of({4})), HasSubstr("needs an unpooled feature"));
  ModelSpec two_targets = with_history(spec_of({4}));
  two_targets.features.push_back(two_targets.features[0]);
  EXPECT_THAT(error(options, two_targets), HasSubstr("of history 'history', and there are 2"));
}

TEST(WithModelTables, deep_fm_adds_first_order_tables_that_repeat_the_ids) {
  ModelSpec spec = spec_of({4, 4});
  spec.features.push_back(spec.features[0]);  // a second feature on table 0
  spec.features[2].name = "again";
  spec.features[1].pooling = Pooling::mean;
  spec.tables[1].frozen = true;
  const ModelSpec wide = with_model_tables(spec, {.kind = ModelKind::deep_fm, .deep = {1}});
  ASSERT_EQ(4u, wide.tables.size());
  ASSERT_EQ(6u, wide.features.size());
  EXPECT_EQ("T1.first_order", wide.tables[3].name);
  EXPECT_EQ(1, wide.tables[3].dim);
  EXPECT_EQ(100, wide.tables[3].rows);
  EXPECT_TRUE(wide.tables[3].frozen);
  EXPECT_EQ("again.first_order", wide.features[5].name);
  EXPECT_EQ(2, wide.features[5].table);
  EXPECT_EQ(2, wide.features[5].same_ids_as);
  EXPECT_EQ(Pooling::mean, wide.features[4].pooling);
  EXPECT_EQ(spec.features[0], wide.features[0]);
}

TEST(WithModelTables, others_add_nothing) {
  const ModelSpec spec = spec_of({4, 4});
  for (const ModelOptions& options :
       {ModelOptions{.kind = ModelKind::dlrm},
        ModelOptions{.kind = ModelKind::deep_fm, .first_order = FirstOrder::dense}}) {
    EXPECT_EQ(2u, with_model_tables(spec, options).tables.size());
    EXPECT_EQ(2u, with_model_tables(spec, options).features.size());
  }
}

TEST(InitializeLinear, has_the_stated_mean_and_variance_and_depends_on_seed_and_name_only) {
  const ParameterSpec weight{"bottom.0.weight", {300, 100}, 0};
  const ParameterSpec bias{"bottom.0.bias", {10000}, 0};
  std::vector<float> w(weight.size()), again(weight.size()), other(weight.size()), b(bias.size());
  initialize_linear(7, weight, w);
  initialize_linear(7, weight, again);
  initialize_linear(8, weight, other);
  initialize_linear(7, bias, b);
  EXPECT_EQ(w, again);
  EXPECT_NE(w, other);
  const auto moments = [](const std::vector<float>& v) {
    double sum = 0, squares = 0;
    for (float x : v) sum += x, squares += double(x) * x;
    return std::pair{sum / double(v.size()), squares / double(v.size())};
  };
  EXPECT_NEAR(0.0, moments(w).first, 4 * std::sqrt(2.0 / 400 / 30000));
  EXPECT_NEAR(2.0 / 400, moments(w).second, 0.03 * 2.0 / 400);
  EXPECT_NEAR(1.0 / 10000, moments(b).second, 0.05 / 10000);
}

}  // namespace
}  // namespace recmill::model
