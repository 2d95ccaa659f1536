// SPDX-License-Identifier: Apache-2.0
#include "table/table_update.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/row_update/with_l2.h"
#include "kernels/testing/instruction_sets.h"
#include "kernels/testing/random_bags.h"
#include "table/optimizers/row_formulas.h"

namespace recmill::table {
namespace {

using kernels::on_every_instruction_set;

struct Optimizer {
  OptimizerKind kind;
  BiasCorrection correction = BiasCorrection::global;
  double l2 = 0.0;
};
constexpr Optimizer kOptimizers[] = {{OptimizerKind::sgd, BiasCorrection::global, 0.02},
                                     {OptimizerKind::adagrad},
                                     {OptimizerKind::rowwise_adagrad, BiasCorrection::global, 0.02},
                                     {OptimizerKind::rowwise_adagrad},
                                     {OptimizerKind::adam},
                                     {OptimizerKind::adam, BiasCorrection::row, 0.02},
                                     {OptimizerKind::ftrl, BiasCorrection::global, 0.02}};

TableSpec spec_of(const Optimizer& of, int64_t rows, int64_t dim, RowPrecision precision) {
  TableSpec spec;
  spec.name = "C7";
  spec.rows = rows;
  spec.dim = dim;
  spec.precision = precision;
  spec.optimizer = {of.kind, 0.05, 1e-6, 0.1, 0.9, 0.99, 0.01, of.l2, 1.0, of.correction};
  return spec;
}

EmbeddingTable make(const TableSpec& spec, int rank = 0, int ranks = 1) {
  ThreadPool pool(1);
  return *EmbeddingTable::create(spec, 42, RowShare(spec.rows, rank, ranks), pool);
}

/// Weights and state of a table, one after the other.
std::vector<float> contents(const EmbeddingTable& table) {
  const int64_t slots = table.share().slots();
  std::vector<float> all(slots * table.spec().dim);
  std::vector<std::vector<float>> columns;
  columns.reserve(table.state().size());
  std::vector<std::span<float>> views;
  for (const auto& column : table.state()) columns.emplace_back(slots * column.width);
  for (auto& column : columns) views.emplace_back(column);
  table.read(0, slots, all, views);
  for (const auto& column : columns) all.insert(all.end(), column.begin(), column.end());
  return all;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Lookups of two features in one table and the gradients of their bags.
struct Lookups {
  std::vector<SparseFeature> features;
  std::vector<kernels::FeatureBags> bags;
  std::vector<std::vector<float>> values;
  std::vector<kernels::GradientRows> gradients;
  DistinctRows distinct;
  std::vector<int64_t> begins;
  std::vector<kernels::BagGradients> bag_gradients;

  Lookups(const TableSpec& spec, int64_t samples, int slices, int64_t longest, uint64_t seed)
      : begins(kernels::slice_begins(samples, slices)) {
    for (int f = 0; f < 2; ++f)
      features.push_back(kernels::random_bags({samples, longest, spec.rows, f == 1, 3}, seed + f));
    for (int f = 0; f < 2; ++f) {
      bags.push_back({features[f].view(samples), f == 0 ? Pooling::sum : Pooling::mean});
      values.push_back(kernels::random_floats(samples * spec.dim, seed + 10 + f));
    }
    for (int f = 0; f < 2; ++f) gradients.push_back({values[f].data(), spec.dim});
    kernels::distinct_rows_reference({spec.rows, bags}, {0, begins}, distinct);
    for (int f = 0; f < 2; ++f)
      bag_gradients.push_back({bags[f].bags, bags[f].pooling, gradients[f], begins});
  }
  TableUpdate update_of(EmbeddingTable& table, const kernels::RowUpdateKernel* kernel) const {
    const int slices = static_cast<int>(begins.size()) - 1;
    const auto& spec = table.spec();
    return {&table, &distinct, gradients,
            slices, kernel,    {bag_gradients, spec.rows, spec.dim, slices}};
  }
};

TEST(TableUpdate, equals_the_reference_for_every_optimizer_dimension_and_precision) {
  ThreadPool pool(2);
  on_every_instruction_set([&] {
    for (const Optimizer& optimizer : kOptimizers) {
      for (auto precision :
           {RowPrecision::float32, RowPrecision::bfloat16, RowPrecision::float16}) {
        for (int64_t dim : {1, 2, 3, 4, 8, 15, 16, 17, 31, 32, 48, 64, 100, 128, 256, 1024}) {
          if (precision != RowPrecision::float32 && dim > 100) continue;
          const auto spec = spec_of(optimizer, 50, dim, precision);
          auto fast = make(spec), plain = make(spec);
          for (int64_t iteration : {0, 1, 2}) {
            const Lookups lookups(spec, 40, 4, 3, 100 * dim + iteration);
            const RowStep step{iteration, 0.5};
            const TableUpdate to_fast{&fast, &lookups.distinct, lookups.gradients, 4};
            const TableUpdate to_plain{&plain, &lookups.distinct, lookups.gradients, 4};
            update_tables({&to_fast, 1}, step, pool);
            update_tables_reference({&to_plain, 1}, step);
          }
          ASSERT_TRUE(same_bits(contents(fast), contents(plain)))
              << name_of(optimizer.kind) << " " << name_of(precision) << " dim " << dim;
        }
      }
    }
  });
}

/// Of every template, the schedule with the first value of each parameter, and with the last.
std::vector<kernels::RowUpdateKernel> kernels_of_every_template() {
  std::vector<kernels::RowUpdateKernel> all;
  for (const auto& of : kernels::row_update_templates()) {
    all.push_back({&of, {}});
    for (const auto& tunable : of.spec.tunables)
      all.back().values.push_back(tunable.values.front());
    all.push_back({&of, {}});
    for (const auto& tunable : of.spec.tunables) all.back().values.push_back(tunable.values.back());
  }
  return all;
}

TEST(TableUpdate, at_learning_rate_0_weights_keep_their_bits_and_state_takes_the_gradient) {
  ThreadPool pool(2);
  const auto end_of = [&](TableSpec spec, double scale, bool fast) {
    auto table = make(spec);
    std::vector<float> weights(spec.rows * spec.dim);
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] = i % 3 == 0 ? -0.0f : static_cast<float>(i % 7) - 3.0f;
    table.write(0, spec.rows, weights, {});
    for (int64_t iteration : {0, 1}) {
      Lookups lookups(spec, 40, 4, 3, iteration);
      // Steps of 0 / 0, and of 0 times infinity.
      for (auto& values : lookups.values) std::fill_n(values.begin(), 5 * spec.dim, 0.0f);
      if (scale == 0.0) lookups.values[0][6 * spec.dim] = 3e38f;
      const TableUpdate update = lookups.update_of(table, nullptr);
      if (fast) update_tables({&update, 1}, {iteration, scale}, pool);
      if (!fast) update_tables_reference({&update, 1}, {iteration, scale});
    }
    return std::pair(weights, contents(table));
  };
  for (const Optimizer& optimizer : kOptimizers) {
    for (auto precision : {RowPrecision::float32, RowPrecision::bfloat16, RowPrecision::float16}) {
      for (int64_t dim : {3, 8, 17}) {
        SCOPED_TRACE(std::string(name_of(optimizer.kind)) + " " + std::string(name_of(precision)));
        auto spec = spec_of(optimizer, 50, dim, precision);
        spec.optimizer.epsilon = spec.optimizer.initial_accumulator = 0.0;
        const auto state_at = [&](const std::vector<float>& all) { return all.begin() + 50 * dim; };
        const auto [weights, fast] = end_of(spec, 0.0, true);
        const auto plain = end_of(spec, 0.0, false).second;
        EXPECT_TRUE(same_bits(fast, plain));
        EXPECT_TRUE(same_bits({fast.begin(), state_at(fast)}, weights));
        if (optimizer.kind == OptimizerKind::ftrl) {  // a quotient by such a rate overflows
          const auto least = end_of(spec, 1e-40 / spec.optimizer.learning_rate, true).second;
          EXPECT_TRUE(same_bits({least.begin(), state_at(least)}, weights));
        }
        const bool changed =
            std::any_of(state_at(fast), fast.end(), [](float value) { return value != 0.0f; });
        EXPECT_EQ(changed,
                  optimizer.kind != OptimizerKind::sgd && optimizer.kind != OptimizerKind::ftrl);
      }
    }
  }
}

TEST(TableUpdate, equals_the_reference_with_every_kernel) {
  ThreadPool pool(2);
  const auto kernels = kernels_of_every_template();
  on_every_instruction_set([&] {
    for (const Optimizer& optimizer : kOptimizers) {
      for (auto precision :
           {RowPrecision::float32, RowPrecision::bfloat16, RowPrecision::float16}) {
        for (int64_t dim : {1, 3, 4, 5, 8, 16, 17, 32, 64, 100, 128, 1024}) {
          if (precision != RowPrecision::float32 && dim > 100) continue;
          const auto spec = spec_of(optimizer, 50, dim, precision);
          auto plain = make(spec);
          std::vector<EmbeddingTable> tables;
          for (size_t k = 0; k < kernels.size(); ++k) tables.push_back(make(spec));
          TableUpdater updater;
          for (int64_t iteration : {0, 1}) {
            const Lookups lookups(spec, 20, 4, 3, 100 * dim + iteration);
            const RowStep step{iteration, 0.5};
            const TableUpdate to_plain = lookups.update_of(plain, nullptr);
            update_tables_reference({&to_plain, 1}, step);
            std::vector<TableUpdate> updates;
            for (size_t k = 0; k < kernels.size(); ++k)
              updates.push_back(lookups.update_of(tables[k], &kernels[k]));
            EXPECT_EQ(updater.update(updates, step, pool),
                      lookups.distinct.count() * static_cast<int64_t>(kernels.size()));
          }
          for (size_t k = 0; k < kernels.size(); ++k)
            ASSERT_TRUE(same_bits(contents(tables[k]), contents(plain)))
                << kernels[k].of->spec.name << " " << name_of(optimizer.kind) << " "
                << name_of(precision) << " dim " << dim;
        }
      }
    }
  });
}

// One table keeps all threads busy, then many do.
TEST(TableUpdate, gives_the_same_bits_however_tables_are_shared_by_threads) {
  for (const auto& kernel : kernels_of_every_template()) {
    for (int64_t tables : {1, 40}) {
      std::vector<std::vector<float>> ends;
      for (int threads : {1, 3}) {
        ThreadPool pool(threads);
        TableUpdater updater;
        std::vector<EmbeddingTable> made;
        std::vector<Lookups> lookups;
        for (int64_t t = 0; t < tables; ++t) {
          const auto spec =
              spec_of(kOptimizers[t % 7], 900, 8 + 4 * (t % 3), RowPrecision::float32);
          made.push_back(make(spec));
          lookups.emplace_back(spec, 300, 4, t == 0 ? 60 : 3, t);
        }
        std::vector<TableUpdate> updates;
        for (int64_t t = 0; t < tables; ++t)
          updates.push_back(lookups[t].update_of(made[t], &kernel));
        updater.update(updates, {0, 1.0}, pool);
        ends.emplace_back();
        for (const auto& table : made) {
          const auto all = contents(table);
          ends.back().insert(ends.back().end(), all.begin(), all.end());
        }
      }
      EXPECT_TRUE(same_bits(ends[0], ends[1]))
          << kernel.of->spec.name << ", " << tables << " tables";
    }
  }
}

TEST(TableUpdate, gives_the_same_bits_at_any_number_of_threads) {
  std::vector<std::vector<float>> ends;
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    std::vector<EmbeddingTable> tables;
    std::vector<Lookups> lookups;
    for (int t = 0; t < 3; ++t) {
      const auto spec = spec_of(kOptimizers[t + 1], 3000, 16 + t, RowPrecision::float32);
      tables.push_back(make(spec));
      lookups.emplace_back(spec, 4000, 8, 5, t);
    }
    std::vector<TableUpdate> updates;
    updates.reserve(3);
    for (int t = 0; t < 3; ++t)
      updates.push_back({&tables[t], &lookups[t].distinct, lookups[t].gradients, 8});
    update_tables(updates, {0, 1.0}, pool);
    ends.emplace_back();
    for (const auto& table : tables) {
      const auto all = contents(table);
      ends.back().insert(ends.back().end(), all.begin(), all.end());
    }
  }
  for (const auto& end : ends) EXPECT_TRUE(same_bits(end, ends[0]));
}

TEST(TableUpdate, from_parts_of_several_ranks_equals_the_update_of_one) {
  ThreadPool pool(2);
  for (const Optimizer& optimizer : kOptimizers) {
    for (int ranks : {1, 2, 3, 4, 8}) {
      const auto spec = spec_of(optimizer, 61, 20, RowPrecision::bfloat16);
      auto whole = make(spec);
      const Lookups lookups(spec, 64, 8, 3, 5);
      const RowStep step{3, 1.0};
      const TableUpdate update{&whole, &lookups.distinct, lookups.gradients, 8};
      update_tables_reference({&update, 1}, step);
      // Every rank's sums over its slices, for all rows at once.
      std::vector<SliceRange> trees;
      for (int r = 0; r < ranks; ++r) {
        const auto own = subtrees(slices_of_rank(r, ranks, 8));
        trees.insert(trees.end(), own.begin(), own.end());
      }
      const int64_t n = lookups.distinct.count();
      std::vector<float> sums(n * trees.size() * spec.dim);
      kernels::sum_gradients({&lookups.distinct, lookups.gradients, spec.dim}, {nullptr, 0, n},
                             trees, sums.data());
      for (int owner = 0; owner < ranks; ++owner) {
        auto part = make(spec, owner, ranks);
        std::vector<int64_t> rows, slots, begins{0};
        std::vector<kernels::GradientPart> parts;
        for (int64_t i = 0; i < n; ++i) {
          if (!part.share().owns(lookups.distinct.rows[i])) continue;
          rows.push_back(lookups.distinct.rows[i]);
          slots.push_back(part.share().slot(rows.back()));
          for (size_t s = 0; s < trees.size(); ++s)
            parts.push_back({sums.data() + (i * trees.size() + s) * spec.dim, trees[s].begin});
          begins.push_back(static_cast<int64_t>(parts.size()));
        }
        const TableParts from_parts{&part, rows, slots, {begins, parts}};
        update_tables_from_parts({&from_parts, 1}, step, pool);
        for (int64_t slot = 0; slot < part.share().slots(); ++slot) {
          std::vector<float> a(spec.dim), b(spec.dim);
          part.read(slot, 1, a, {});
          whole.read(part.share().row(slot), 1, b, {});
          ASSERT_TRUE(same_bits(a, b)) << name_of(optimizer.kind) << " " << ranks << " ranks";
        }
      }
    }
  }
}

TEST(TableUpdate, touches_only_rows_that_are_named_and_no_frozen_table) {
  ThreadPool pool(1);
  auto spec = spec_of({OptimizerKind::adam}, 1000, 8, RowPrecision::float32);
  const Lookups lookups(spec, 16, 2, 2, 1);
  auto table = make(spec);
  const auto before = make(spec);
  const TableUpdate update{&table, &lookups.distinct, lookups.gradients, 2};
  update_tables({&update, 1}, {}, pool);
  const auto& named = lookups.distinct.rows;
  for (int64_t row = 0; row < spec.rows; ++row) {
    std::vector<float> a(8), b(8);
    table.read(row, 1, a, {});
    before.read(row, 1, b, {});
    EXPECT_EQ(a != b, std::find(named.begin(), named.end(), row) != named.end()) << row;
  }
  spec.frozen = true;
  auto frozen = make(spec);
  const TableUpdate to_frozen{&frozen, &lookups.distinct, lookups.gradients, 2};
  update_tables({&to_frozen, 1}, {}, pool);
  EXPECT_TRUE(same_bits(contents(frozen), contents(make(spec))));
}

// Textbook formulas in float64 over a few steps with one gradient.
TEST(RowFormulas, follow_their_papers) {
  const double lr = 0.05, eps = 1e-6, g[3] = {0.5, -0.25, 0.125};
  const auto run = [&](OptimizerKind kind, float weight) {
    const double l2 = kind == OptimizerKind::ftrl ? 0.02 : 0.0;
    auto spec = spec_of({kind, BiasCorrection::global, l2}, 1, 1, RowPrecision::float32);
    auto table = make(spec);
    const float start[] = {weight};
    table.write(0, 1, start, {});
    ThreadPool pool(1);
    DistinctRows distinct;
    distinct.rows = {0};
    distinct.begins = {0, 1};
    distinct.sources = {{0, 0, 0}};
    for (int t = 0; t < 3; ++t) {
      const float gradient = static_cast<float>(g[t]);
      const kernels::GradientRows rows{&gradient, 1};
      const TableUpdate update{&table, &distinct, {&rows, 1}, 1};
      update_tables({&update, 1}, {t, 1.0}, pool);
    }
    return contents(table)[0];
  };
  double sgd = 1.0, adagrad = 1.0, sum = 0.1, adam = 1.0, m = 0.0, v = 0.0, ftrl = 1.0, n = 0.1,
         z = 0.0;
  for (int t = 0; t < 3; ++t) {
    sgd -= lr * g[t];
    sum += g[t] * g[t];
    adagrad -= lr * g[t] / (std::sqrt(sum) + eps);
    m = 0.9 * m + 0.1 * g[t];
    v = 0.99 * v + 0.01 * g[t] * g[t];
    adam -=
        lr * (m / (1 - std::pow(0.9, t + 1))) / (std::sqrt(v / (1 - std::pow(0.99, t + 1))) + eps);
    const double sigma = (std::sqrt(n + g[t] * g[t]) - std::sqrt(n)) / lr;
    n += g[t] * g[t];
    z += g[t] - sigma * ftrl;
    ftrl = std::fabs(z) <= 0.01
               ? 0.0
               : -(z - std::copysign(0.01, z)) / ((1.0 + std::sqrt(n)) / lr + 0.02);
  }
  EXPECT_NEAR(run(OptimizerKind::sgd, 1.0f), sgd, 1e-6);
  EXPECT_NEAR(run(OptimizerKind::adagrad, 1.0f), adagrad, 1e-6);
  EXPECT_NEAR(run(OptimizerKind::rowwise_adagrad, 1.0f), adagrad, 1e-6);
  EXPECT_NEAR(run(OptimizerKind::adam, 1.0f), adam, 1e-6);
  EXPECT_NEAR(run(OptimizerKind::ftrl, 1.0f), ftrl, 1e-6);
}

/// A row of one element whose gradients are `gradients`, one an iteration from `first` on.
std::vector<float> after(const TableSpec& spec, int64_t first, std::vector<float> gradients) {
  auto table = make(spec);
  const float start[] = {1.0f};
  table.write(0, 1, start, {});
  ThreadPool pool(1);
  DistinctRows distinct;
  distinct.rows = {0};
  distinct.begins = {0, 1};
  distinct.sources = {{0, 0, 0}};
  for (const float& gradient : gradients) {
    const kernels::GradientRows rows{&gradient, 1};
    const TableUpdate update{&table, &distinct, {&rows, 1}, 1};
    update_tables({&update, 1}, {first++, 1.0}, pool);
  }
  return contents(table);
}

TEST(RowFormulas, adam_corrects_the_bias_by_the_updates_of_the_row) {
  const std::vector<float> gradients{0.5f, -0.25f, 0.125f, 0.0f, 2.0f};
  const TableSpec by_row =
      spec_of({OptimizerKind::adam, BiasCorrection::row}, 1, 1, RowPrecision::float32);
  const TableSpec by_run = spec_of({OptimizerKind::adam}, 1, 1, RowPrecision::float32);
  // When it comes is all the same; a row of every iteration is the run's.
  const auto late = after(by_row, 100000, gradients);
  EXPECT_TRUE(same_bits(late, after(by_row, 0, gradients)));
  EXPECT_EQ(late.back(), 5.0f);  // updates
  EXPECT_NEAR(late[0], after(by_run, 0, gradients)[0], 1e-6);
  EXPECT_GT(std::fabs(late[0] - after(by_run, 100000, gradients)[0]), 1e-3);
}

TEST(RowFormulas, adam_counts_updates_exactly_and_stays_at_the_last_float_that_is_one) {
  const AdamByRow formula = AdamByRow::at({}, {});
  float factors[2];
  for (const float updates : {0.0f, 1.0f, 999.0f, 16777215.0f, 16777216.0f}) {
    float after = updates;
    formula.row(after, 0.0f, factors);
    EXPECT_EQ(after, std::min(updates + 1.0f, 16777216.0f));
    const double n = after;
    EXPECT_FLOAT_EQ(factors[0], static_cast<float>(0.01 / (1.0 - std::pow(0.9, n))));
    EXPECT_FLOAT_EQ(factors[1], static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(0.999, n))));
  }
}

TEST(RowFormulas, l2_is_added_to_the_gradient_and_0_keeps_every_bit) {
  EXPECT_TRUE(std::signbit(kernels::with_l2(-0.0f, 1.0f, 0.0f)));
  EXPECT_EQ(kernels::with_l2(0.5f, -2.0f, 0.25f), 0.0f);
  // Of a row without a gradient, which is looked up all the same.
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adagrad,
                                   OptimizerKind::rowwise_adagrad, OptimizerKind::adam}) {
    const auto plain = after(spec_of({kind}, 1, 1, RowPrecision::float32), 0, {0.25f});
    const auto with = after(
        spec_of({kind, BiasCorrection::global, 0.25}, 1, 1, RowPrecision::float32), 0, {0.0f});
    EXPECT_TRUE(same_bits(plain, with)) << name_of(kind);
  }
}

TEST(RowFormulas, mean_square_folds_in_sixteen_lanes) {
  std::vector<float> gradient(37);
  for (size_t e = 0; e < gradient.size(); ++e) gradient[e] = 1.0f + static_cast<float>(e) * 0.37f;
  float lanes[16] = {};
  for (size_t e = 0; e < gradient.size(); ++e) lanes[e % 16] += gradient[e] * gradient[e];
  float eight[8], four[4];
  for (int l = 0; l < 8; ++l) eight[l] = lanes[l] + lanes[l + 8];
  for (int l = 0; l < 4; ++l) four[l] = eight[l] + eight[l + 4];
  const float expected = ((four[0] + four[2]) + (four[1] + four[3])) / 37.0f;
  auto spec = spec_of({OptimizerKind::rowwise_adagrad}, 1, 37, RowPrecision::float32);
  spec.optimizer.initial_accumulator = 0.0;
  ThreadPool pool(1);
  DistinctRows distinct;
  distinct.rows = {0};
  distinct.begins = {0, 1};
  distinct.sources = {{0, 0, 0}};
  const kernels::GradientRows rows{gradient.data(), 37};
  on_every_instruction_set([&] {
    auto table = make(spec);
    const TableUpdate update{&table, &distinct, {&rows, 1}, 1};
    update_tables({&update, 1}, {}, pool);
    EXPECT_EQ(contents(table).back(), expected);
  });
}

}  // namespace
}  // namespace recmill::table
