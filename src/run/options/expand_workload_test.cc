// SPDX-License-Identifier: Apache-2.0
#include "run/options/expand_workload.h"

#include <gtest/gtest.h>

namespace recmill::train {
namespace {

RunOptions with_lines(std::vector<WorkloadLine> lines) {
  RunOptions options;
  options.data.format = DataFormat::synthetic;
  options.data.synthetic.shape = reader::SyntheticShape::columns;
  options.workload.lines = std::move(lines);
  return options;
}

std::string refusal(WorkloadLine line) {
  const auto expanded = expand_workload(with_lines({{.dims = {4}}, std::move(line)}));
  return expanded.ok() ? "accepted" : expanded.status().message();
}

}  // namespace

TEST(ExpandWorkload, writes_out_columns_tables_and_features_in_the_order_of_the_lines) {
  const auto options =
      expand_workload(with_lines({{.kind = LineKind::normal,
                                   .count = 3,
                                   .mean = 20,
                                   .deviation = 5,
                                   .longest = 40,
                                   .coverage = 0.75,
                                   .rows = 100,
                                   .dims = {8, 4},
                                   .dim_counts = {1, 2}},
                                  {.count = 2, .mean = 7, .rows = 50, .dims = {16}},
                                  {.kind = LineKind::one_side,
                                   .mean = 10,
                                   .deviation = 4.5,
                                   .law = reader::IdLaw::zipf,
                                   .zipf = 1.1,
                                   .dims = {2}}}));
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_TRUE(options->workload.lines.empty());
  const std::vector<int64_t> dims{8, 4, 4, 16, 16, 2}, rows{100, 100, 100, 50, 50, 1000};
  const std::vector<int64_t> lines{1, 1, 1, 2, 2, 3}, longest{40, 40, 40, 7, 7, 46};
  const auto& ids = options->data.synthetic.ids;
  ASSERT_EQ(ids.size(), dims.size());
  ASSERT_EQ(options->tables.size(), dims.size());
  ASSERT_EQ(options->features.size(), dims.size());
  for (size_t f = 0; f < dims.size(); ++f) {
    const std::string name = "f" + std::to_string(f);
    EXPECT_EQ(ids[f].name, name);
    EXPECT_EQ(ids[f].cardinality, rows[f]);
    EXPECT_EQ(ids[f].line, lines[f]);
    EXPECT_EQ(ids[f].max_length, longest[f]);
    EXPECT_TRUE(ids[f].direct);
    EXPECT_EQ(options->tables[f].name, name);
    EXPECT_EQ(options->tables[f].rows, rows[f]);
    EXPECT_EQ(options->tables[f].dim, dims[f]);
    EXPECT_EQ(options->tables[f].mapping, preprocess::Mapping::direct);
    EXPECT_EQ(options->features[f].name, name);
    EXPECT_EQ(options->features[f].missing, preprocess::MissingId::empty);
  }
  EXPECT_EQ(ids[0].lengths, reader::LengthLaw::normal);
  EXPECT_EQ(ids[0].empty_share, 0.25);
  EXPECT_EQ(ids[0].deviation, 5);
  EXPECT_EQ(ids[3].lengths, reader::LengthLaw::fixed);
  EXPECT_EQ(ids[3].law, reader::IdLaw::power);
  EXPECT_EQ(ids[5].law, reader::IdLaw::zipf);
  EXPECT_EQ(ids[5].zipf, 1.1);
}

TEST(ExpandWorkload, leaves_other_columns_and_what_is_written_out_as_they_are) {
  RunOptions options = with_lines({{.count = 2, .dims = {4}}});
  options.data.synthetic.ids.push_back({.name = "own", .line = 6});
  options.tables.emplace_back().name = "own";
  const auto once = expand_workload(options);
  ASSERT_TRUE(once.ok()) << once.status().message();
  EXPECT_EQ(once->data.synthetic.ids.size(), 3u);
  EXPECT_EQ(once->data.synthetic.ids[0].name, "own");
  EXPECT_EQ(once->data.synthetic.ids[1].line, 7);
  const auto twice = expand_workload(*once);
  ASSERT_TRUE(twice.ok());
  EXPECT_EQ(twice->data.synthetic.ids.size(), 3u);
  EXPECT_EQ(twice->tables.size(), 3u);
}

TEST(ExpandWorkload, refuses_an_impossible_value_naming_line_and_key) {
  using enum LineKind;
  const std::vector<int64_t> four{4};
  EXPECT_EQ(refusal({}), "workload.lines[1].dims: must be given");
  EXPECT_EQ(refusal({.count = 0, .dims = four}),
            "workload.lines[1].count: must be at least 1 and at most 1000000, is 0");
  EXPECT_EQ(refusal({.coverage = 1.5, .dims = four}),
            "workload.lines[1].coverage: must be at least 0 and at most 1, is 1.5");
  EXPECT_EQ(refusal({.rows = 0, .dims = four}),
            "workload.lines[1].rows: must be at least 1 and at most 2147483648, is 0");
  EXPECT_EQ(refusal({.zipf = 1.0, .dims = four}), "workload.lines[1].zipf: is for law = \"zipf\"");
  EXPECT_EQ(refusal({.mean = 1.5, .dims = four}),
            "workload.lines[1].mean: must be a whole number with kind = \"fixed\", is 1.5");
  EXPECT_EQ(refusal({.deviation = 1, .dims = four}),
            "workload.lines[1].deviation: is for kind = \"normal\" and \"one_side\"");
  EXPECT_EQ(refusal({.kind = normal, .mean = 9, .longest = 20, .dims = four}),
            "workload.lines[1].deviation: must be at least 0.001, is 0");
  EXPECT_EQ(refusal({.kind = normal, .mean = 9, .deviation = 2, .longest = 8, .dims = four}),
            "workload.lines[1].longest: must be at least mean, is 8");
  EXPECT_EQ(refusal({.kind = one_side, .mean = 9, .deviation = 2, .longest = 8, .dims = four}),
            "workload.lines[1].longest: is for kind = \"normal\"");
  EXPECT_EQ(refusal({.dims = {4, 8}}), "workload.lines[1].dim_counts: 0 numbers for 2 dims");
  EXPECT_EQ(refusal({.count = 5, .dims = {4, 8}, .dim_counts = {2, 2}}),
            "workload.lines[1].dim_counts: the sum is 4, and count is 5");
}

TEST(ExpandWorkload, refuses_data_that_it_cannot_add_columns_to) {
  RunOptions files = with_lines({{.dims = {4}}});
  files.data.format = DataFormat::csv;
  EXPECT_NE(expand_workload(files).status().message().find("data.format"), std::string::npos);
  RunOptions criteo = with_lines({{.dims = {4}}});
  criteo.data.synthetic.shape = reader::SyntheticShape::criteo;
  EXPECT_NE(expand_workload(criteo).status().message().find("data.synthetic.shape"),
            std::string::npos);
}

}  // namespace recmill::train
