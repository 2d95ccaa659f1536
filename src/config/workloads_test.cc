// SPDX-License-Identifier: Apache-2.0
// The frozen workloads against what is published of them.
#include "config/workloads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "config/run_config.h"
#include "reader/synthetic/synthetic_columns.h"
#include "run/options/expand_workload.h"

namespace recmill::config {
namespace {

train::RunOptions expanded(const std::string& name) {
  const auto config = load_run_config(name, {});
  EXPECT_TRUE(config.ok()) << config.status().message();
  auto options = train::expand_workload(config->options);
  EXPECT_TRUE(options.ok()) << options.status().message();
  return *std::move(options);
}

int64_t parameters_of(const train::RunOptions& options) {
  int64_t parameters = 0;
  for (const auto& table : options.tables) parameters += *table.rows * *table.dim;
  return parameters;
}

double lookups_of_a_sample(const train::RunOptions& options) {
  reader::SharedTables tables;
  double lookups = 0;
  for (const auto& column : options.data.synthetic.ids) {
    const auto source = reader::IdSource::make(column, {1, 2, 3}, 32, tables);
    EXPECT_TRUE(source.ok()) << source.status().message();
    lookups += source->expected_lookups(1);
  }
  return lookups;
}

struct Published {
  std::string name;
  int64_t width;      // sum of the dimensions
  double parameters;  // millions
  double lookups;     // a sample
  std::map<int64_t, int64_t> dims;
};

}  // namespace

TEST(Workloads, of_recflex_have_the_published_sizes) {
  const Published all[] = {{"recflex_a",
                            24780,
                            113.4,
                            20250,
                            {{4, 283}, {8, 266}, {16, 195}, {32, 91}, {64, 88}, {128, 77}}},
                           {"recflex_b",
                            21976,
                            42.0,
                            4650,
                            {{4, 366}, {8, 408}, {16, 212}, {32, 99}, {64, 63}, {128, 52}}},
                           {"recflex_c",
                            24816,
                            175.6,
                            13200,
                            {{4, 154}, {8, 189}, {16, 166}, {32, 112}, {64, 101}, {128, 78}}},
                           {"recflex_d", 8000, 20.5, 17830, {{8, 1000}}},
                           {"recflex_e", 32000, 81.9, 17830, {{32, 1000}}},
                           {"recflex_f", 80000, 204.8, 178000, {{8, 10000}}}};
  for (const Published& published : all) {
    const train::RunOptions options = expanded(published.name);
    std::map<int64_t, int64_t> dims;
    int64_t width = 0;
    for (const auto& table : options.tables) {
      ++dims[*table.dim];
      width += *table.dim;
    }
    EXPECT_EQ(dims, published.dims) << published.name;
    EXPECT_EQ(width, published.width) << published.name;
    // The published numbers have four digits.
    EXPECT_NEAR(static_cast<double>(parameters_of(options)) * 1e-6, published.parameters,
                0.001 * published.parameters)
        << published.name;
    EXPECT_NEAR(lookups_of_a_sample(options), published.lookups, 0.01 * published.lookups)
        << published.name;
  }
}

TEST(Workloads, of_recflex_have_the_published_shares_of_batch_sizes) {
  const std::vector<int64_t> sizes = expanded("recflex_a").tune.batch_sizes;
  ASSERT_EQ(sizes.size(), 128u);
  const auto of = [&](int64_t size) { return std::count(sizes.begin(), sizes.end(), size); };
  // 44 % of the draws are above 512 and mostly become 512; 16 % become 1. Three standard
  // deviations.
  EXPECT_NEAR(static_cast<double>(of(512)) / 128, 0.40, 0.13);
  EXPECT_NEAR(static_cast<double>(of(1)) / 128, 0.16, 0.10);
  EXPECT_EQ(*std::max_element(sizes.begin(), sizes.end()), 512);
  EXPECT_EQ(*std::min_element(sizes.begin(), sizes.end()), 1);
  for (const char* other : {"recflex_b", "recflex_c", "recflex_d", "recflex_e", "recflex_f"}) {
    EXPECT_EQ(expanded(other).tune.batch_sizes, sizes) << other;
  }
}

TEST(Workloads, of_recflex_share_lengths_by_the_line_and_have_the_lines_of_d_in_e_and_f) {
  const auto d = expanded("recflex_d"), e = expanded("recflex_e"), f = expanded("recflex_f");
  ASSERT_EQ(f.tables.size(), 10 * d.tables.size());
  std::map<std::pair<double, double>, int64_t> in_d, in_f;
  for (size_t i = 0; i < d.tables.size(); ++i) {
    EXPECT_EQ(d.data.synthetic.ids[i].mean_length, e.data.synthetic.ids[i].mean_length);
    EXPECT_EQ(d.data.synthetic.ids[i].line, e.data.synthetic.ids[i].line);
  }
  for (const auto& c : d.data.synthetic.ids) in_d[{c.mean_length, c.empty_share}] += 10;
  for (const auto& c : f.data.synthetic.ids) ++in_f[{c.mean_length, c.empty_share}];
  EXPECT_EQ(in_f, in_d);
}

TEST(Workloads, of_others_have_their_tables_within_their_limits) {
  constexpr double kGiB = 1 << 30;
  const auto mlperf = expanded("mlperf_dlrm");
  EXPECT_EQ(mlperf.tables.size(), 26u);
  EXPECT_NEAR(lookups_of_a_sample(mlperf), 214, 1e-9);
  EXPECT_LT(static_cast<double>(parameters_of(mlperf)) * 4, 2 * kGiB);
  const auto is_bag = [](const auto& column) { return column.max_length > 1; };
  const auto& columns = mlperf.data.synthetic.ids;
  EXPECT_EQ(std::count_if(columns.begin(), columns.end(), is_bag), 15);
  const auto& sizes = mlperf.tune.batch_sizes;
  EXPECT_EQ(*std::min_element(sizes.begin(), sizes.end()), 100);
  EXPECT_EQ(*std::max_element(sizes.begin(), sizes.end()), 700);

  const auto kaggle = expanded("criteo_kaggle");
  EXPECT_EQ(kaggle.tables.size(), 26u);
  EXPECT_NEAR(lookups_of_a_sample(kaggle), 26, 1e-9);

  const auto production = expanded("production_856");
  EXPECT_EQ(production.tables.size(), 856u);
  EXPECT_NEAR(lookups_of_a_sample(production), 887017990.0 / 65536, 135);
  EXPECT_LT(static_cast<double>(parameters_of(production)) * 4, kGiB);
}

TEST(Workloads, are_named_in_one_line_with_the_nearest_where_a_name_is_wrong) {
  const auto wrong = load_run_config("recflx_b", {});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.status().message().rfind(
                "recflx_b: is neither a file nor a workload; did you mean 'recflex_b'? (workloads: "
                "criteo_kaggle, ",
                0),
            0u)
      << wrong.status().message();
  EXPECT_EQ(wrong.status().message().find('\n'), std::string::npos);
  EXPECT_EQ(load_run_config("./recflex_b", {}).status().message().find("workload"),
            std::string::npos);
  EXPECT_FALSE(load_run_config("recflex_b.toml", {}).ok());
}

TEST(Workloads, come_back_from_the_text_of_a_run) {
  for (const Workload& workload : workloads()) {
    const auto config = load_run_config(std::string(workload.name), {"train.seed=7"});
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(config->options.name, workload.name);
    EXPECT_FALSE(config->options.workload.lines.empty());
    const std::string text = to_toml(config->options);
    EXPECT_LT(text.size(), 100'000u);
    EXPECT_EQ(config->options.train.seed, 7);
  }
}

}  // namespace recmill::config
