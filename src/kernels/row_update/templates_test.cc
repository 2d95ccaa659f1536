// SPDX-License-Identifier: Apache-2.0
#include "kernels/row_update/templates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kernels/testing/instruction_sets.h"
#include "kernels/testing/random_bags.h"

namespace recmill::kernels {
namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

struct Case {
  int64_t samples = 64;
  int slices = 8;
  int64_t dim = 8;
  int64_t longest = 3;
  bool scaled = false;  // means, weights
  int64_t rows = 40;
};

/// One table, three features, and the gradients of its rows by the references.
struct TestTable {
  std::vector<SparseFeature> features;
  std::vector<std::vector<float>> values;
  std::vector<int64_t> begins;
  std::vector<BagGradients> bags;
  TableBags table;
  std::vector<int64_t> rows;
  std::vector<float> expected;  // [rows][dim]

  explicit TestTable(const Case& of, uint64_t seed = 77) {
    const Pooling poolings[] = {of.scaled ? Pooling::mean : Pooling::sum, Pooling::none,
                                Pooling::sum};
    begins = slice_begins(of.samples, of.slices);
    std::vector<FeatureBags> plain;
    std::vector<GradientRows> gradients;
    for (int f = 0; f < 3; ++f) {
      features.push_back(random_bags(
          {of.samples, of.longest, of.rows, of.scaled && f != 1, of.longest < 0 ? 0 : 3},
          seed + f));
      const int64_t items = std::max<int64_t>(of.samples, features[f].offsets.back());
      values.push_back(random_floats(items * (of.dim + f), seed + 5 + f));
    }
    for (int f = 0; f < 3; ++f) {
      gradients.push_back({values[f].data(), of.dim + f});
      plain.push_back({features[f].view(of.samples), poolings[f]});
      bags.push_back({plain[f].bags, poolings[f], gradients[f], begins});
    }
    table = {bags, of.rows, of.dim, of.slices};
    DistinctRows distinct;
    distinct_rows_reference({of.rows, plain}, {0, begins}, distinct);
    const SliceRange whole{0, of.slices};
    std::vector<float> sums(distinct.count() * of.dim);
    sum_gradients_reference({&distinct, gradients, of.dim}, {nullptr, 0, distinct.count()},
                            {&whole, 1}, sums.data());
    rows = distinct.rows;
    std::sort(rows.begin(), rows.end());
    for (const int64_t row : rows) {
      const auto at = std::find(distinct.rows.begin(), distinct.rows.end(), row);
      const float* sum = sums.data() + (at - distinct.rows.begin()) * of.dim;
      expected.insert(expected.end(), sum, sum + of.dim);
    }
  }

  /// What `sums` gives, by ascending row, taken `block` rows at a time.
  void expect_from(RowSums& sums, ParameterValues values, int64_t block = 7) const {
    sums.fold(table, values);
    const std::vector<int64_t> listed(sums.rows().begin(), sums.rows().end());
    const auto count = static_cast<int64_t>(listed.size());
    std::vector<float> taken(count * table.dim + 1, 9.0f);
    for (int64_t i = 0; i < count; i += block)
      sums.take(i, std::min(block, count - i), taken.data() + i * table.dim);
    ASSERT_EQ(taken.back(), 9.0f);
    std::vector<int64_t> order(count);
    for (int64_t i = 0; i < count; ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](int64_t a, int64_t b) { return listed[a] < listed[b]; });
    std::vector<int64_t> found_rows;
    std::vector<float> found;
    for (const int64_t i : order) {
      found_rows.push_back(listed[i]);
      found.insert(found.end(), taken.begin() + i * table.dim, taken.begin() + (i + 1) * table.dim);
    }
    ASSERT_EQ(found_rows, rows);
    ASSERT_TRUE(same_bits(found, expected));
  }
};

/// body(template, sums, values) for every schedule that works on bags.
template <class Body>
void for_each_schedule(const Body& body) {
  for (const RowUpdateTemplate& of : row_update_templates()) {
    if (of.needs_distinct_rows()) continue;
    const auto sums = of.make_sums();
    for (const Schedule& schedule : candidates(of.spec, {.rows = 40, .dim = 8, .bags = {}}, {})) {
      SCOPED_TRACE(schedule.name());
      body(*sums, *values_of(schedule, of.spec));
    }
  }
}

TEST(RowUpdateTemplates, equal_the_reference_at_every_dimension) {
  on_every_instruction_set([&] {
    for (int64_t dim : {1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 48, 64, 100, 128, 1024}) {
      for (bool scaled : {false, true}) {
        const TestTable table({.dim = dim, .scaled = scaled});
        for_each_schedule([&](RowSums& sums, ParameterValues values) {
          SCOPED_TRACE("dim " + std::to_string(dim) + " scaled " + std::to_string(scaled));
          table.expect_from(sums, values);
        });
      }
    }
  });
}

TEST(RowUpdateTemplates, equal_the_reference_at_every_number_of_slices) {
  for (int slices : {1, 2, 4, 8, 16, 64}) {
    for (int64_t longest : {-1, 0, 1, 9}) {
      const TestTable table({.samples = 70, .slices = slices, .longest = longest, .scaled = true});
      for_each_schedule([&](RowSums& sums, ParameterValues values) {
        SCOPED_TRACE(std::to_string(slices) + " slices, longest bag " + std::to_string(longest));
        table.expect_from(sums, values);
      });
    }
  }
}

// From batches of no samples to a row that is named more often than 16 bits count.
TEST(RowUpdateTemplates, equal_the_reference_at_every_size) {
  const Case cases[] = {{.samples = 0, .slices = 1},
                        {.samples = 1, .slices = 1},
                        {.samples = 3, .slices = 8},
                        {.samples = 20, .rows = 5000},
                        {.samples = 2, .dim = 1, .longest = 150000, .rows = 2},
                        {.samples = 300, .longest = 12, .rows = 700}};
  for (const Case& of : cases) {
    const TestTable table(of);
    for_each_schedule([&](RowSums& sums, ParameterValues values) {
      SCOPED_TRACE(std::to_string(of.samples) + " samples, " + std::to_string(of.rows) + " rows");
      table.expect_from(sums, values, 64);
    });
  }
}

// Whatever came before, in the same memory.
TEST(RowUpdateTemplates, leave_nothing_behind_for_the_next_table) {
  std::vector<TestTable> tables;
  for (int64_t dim : {16, 3, 40, 8})
    for (int64_t rows : {300, 7, 40}) tables.emplace_back(Case{.dim = dim, .rows = rows}, dim);
  for_each_schedule([&](RowSums& sums, ParameterValues values) {
    for (const TestTable& table : tables) table.expect_from(sums, values);
  });
}

TEST(RowUpdateTemplates, are_looked_up_by_their_schedules) {
  for (const RowUpdateTemplate& of : row_update_templates()) {
    for (const Schedule& schedule : candidates(of.spec, {.rows = 40, .dim = 8, .bags = {}}, {})) {
      const auto kernel = row_update_kernel(*parse_schedule(schedule.name()));
      ASSERT_TRUE(kernel.ok()) << kernel.status().message();
      EXPECT_EQ(kernel->of, &of);
      EXPECT_EQ(kernel->values, *values_of(schedule, of.spec));
    }
  }
  EXPECT_EQ(row_update_kernel({"bags", {}}).status().message(),
            "schedule 'bags': row_update has no template 'bags'");
  EXPECT_FALSE(row_update_kernel({"dense_sums", {{"leaves", 3}}}).ok());
}

TEST(RowUpdateTemplates, may_come_from_a_list_of_the_users_own) {
  const RowUpdateTemplate& dense = row_update_templates()[1];
  std::vector<RowUpdateTemplate> own{{TemplateSpec{dense.spec}, dense.make_sums}};
  own[0].spec.name = "ours";
  const auto kernel = row_update_kernel({"ours", {{"leaves", 4}}}, own);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  EXPECT_EQ(kernel->of, &own[0]);
  const TestTable table(Case{});
  RowSumsStock stock;
  for (int round = 0; round < 2; ++round) {  // the second one in used memory
    auto sums = stock.take(*kernel->of);
    table.expect_from(*sums, kernel->values);
    stock.give_back(*kernel->of, std::move(sums));
  }
  EXPECT_FALSE(row_update_kernel({"ours", {{"leaves", 4}}}).ok());
}

TEST(RowUpdateTemplates, are_chosen_untuned_by_the_size_of_the_table_and_its_lookups) {
  const auto chosen = [](const RowUpdateWork& work) {
    const RowUpdateKernel& kernel = default_row_update(work);
    return kernel.of->spec.name + " " + std::to_string(kernel.values[0]);
  };
  EXPECT_EQ(chosen({4096, 8, 12800, 4}), "dense_sums 8");
  EXPECT_EQ(chosen({4096, 64, 12800, 4}), "placed_sums 1");
  EXPECT_EQ(chosen({4096, 64, 50000, 8}), "placed_sums 0");
  EXPECT_EQ(chosen({1024, 4, 256, 4}), "placed_sums 0");
  EXPECT_EQ(chosen({1024, 16, 256, 4}), "distinct_rows 16");
  EXPECT_EQ(chosen({4096, 8, 100, 4}), "distinct_rows 16");
  EXPECT_EQ(chosen({1000000, 16, 2048, 8}), "distinct_rows 16");
  EXPECT_EQ(chosen({100, 16, 0, 1}), "distinct_rows 16");
}

}  // namespace
}  // namespace recmill::kernels
