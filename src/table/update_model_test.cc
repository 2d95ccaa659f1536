// SPDX-License-Identifier: Apache-2.0
// Random tables, batches and schedules against a std::map of rows that is updated by the contract's
// words: fold each slice, add the slices by the tree, apply the formula once.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>

#include "kernels/distinct_rows/distinct_rows.h"
#include "kernels/row_update/apply_reference.h"
#include "kernels/testing/random_bags.h"
#include "table/optimizers/row_formulas.h"
#include "table/table_update.h"

namespace recmill::table {
namespace {

using Floats = std::vector<float>;

/// One iteration's lookups of a table by some features.
struct Operation {
  std::vector<SparseFeature> features;
  std::vector<Pooling> poolings;
  std::vector<Floats> gradients;  // [features][samples or lookups][dim]
  int64_t samples = 0;
  int slices = 1;
  int64_t iteration = 0;
};

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed, Purpose::test, 99) {}
  template <class T>
  T of(std::initializer_list<T> values) {
    return values.begin()[random_.below(values.size(), next_++)];
  }
  int64_t below(int64_t bound) { return static_cast<int64_t>(random_.below(bound, next_++)); }

 private:
  const Random random_;
  uint64_t next_ = 0;
};

Operation draw_operation(Draw& draw, const TableSpec& spec, size_t features, int64_t iteration) {
  Operation made;
  made.samples = draw.of<int64_t>({0, 1, 2, 17, 64, 150});
  made.slices = draw.of({1, 2, 8, 16});
  made.iteration = iteration;
  const uint64_t seed = draw.below(1 << 30);
  for (size_t f = 0; f < features; ++f) {
    made.poolings.push_back(draw.of({Pooling::sum, Pooling::mean, Pooling::none}));
    made.features.push_back(
        kernels::random_bags({made.samples, draw.of<int64_t>({-1, 0, 1, 7, 40}), spec.rows,
                              draw.below(3) == 0, draw.of<int64_t>({0, 2, 5})},
                             seed + f));
    const int64_t items = std::max<int64_t>(made.samples, made.features[f].rows.size());
    made.gradients.push_back(kernels::random_floats(items * spec.dim, seed + 100 + f));
  }
  return made;
}

using Parts = std::map<int, Floats>;  // by slice

/// The tree over slices [first, first + count); nothing where no slice has a part.
std::optional<Floats> tree(const Parts& parts, int first, int count) {
  if (count == 1) {
    const auto found = parts.find(first);
    return found == parts.end() ? std::nullopt : std::optional(found->second);
  }
  auto left = tree(parts, first, count / 2);
  const auto right = tree(parts, first + count / 2, count / 2);
  if (!left || !right) return left ? left : right;
  for (size_t e = 0; e < left->size(); ++e) (*left)[e] = (*left)[e] + (*right)[e];
  return left;
}

struct Row {
  Floats weights;
  std::vector<Floats> state;  // by column
};

class Model {
 public:
  explicit Model(const EmbeddingTable& table) : spec_(table.spec()), state_(table.state()) {
    for (int64_t row = 0; row < spec_.rows; ++row) rows_[row] = row_of(table, row);
  }

  void update(const Operation& of) {
    std::map<int64_t, Parts> parts;
    for (int slice = 0; slice < of.slices; ++slice) {
      for (size_t f = 0; f < of.features.size(); ++f) {
        const SliceCut cut{of.samples, of.slices};
        for (int64_t i = cut.begin(slice); i < cut.end(slice); ++i) fold(of, f, i, slice, parts);
      }
    }
    for (const auto& [row, by_slice] : parts)
      apply(rows_[row], *tree(by_slice, 0, of.slices), {of.iteration, 0.5});
  }

  /// The first row that is not the table's, or -1.
  int64_t first_difference(const EmbeddingTable& table) const {
    for (const auto& [number, row] : rows_) {
      const Row found = row_of(table, number);
      bool same = same_bits(found.weights, row.weights);
      for (size_t c = 0; c < row.state.size(); ++c) same &= same_bits(found.state[c], row.state[c]);
      if (!same) return number;
    }
    return -1;
  }

 private:
  static bool same_bits(const Floats& a, const Floats& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }
  static Row row_of(const EmbeddingTable& table, int64_t number) {
    Row row{Floats(table.spec().dim), {}};
    std::vector<std::span<float>> views;
    for (const StateColumn& column : table.state()) row.state.emplace_back(column.width);
    for (auto& column : row.state) views.emplace_back(column);
    table.read(number, 1, row.weights, views);
    return row;
  }

  void fold(const Operation& of, size_t f, int64_t sample, int slice,
            std::map<int64_t, Parts>& parts) const {
    const SparseFeature& bags = of.features[f];
    const int64_t begin = bags.offsets[sample], end = bags.offsets[sample + 1];
    for (int64_t j = begin; j < end; ++j) {
      const int64_t at = of.poolings[f] == Pooling::none ? j : sample;
      auto& part = parts[bags.rows[j]].try_emplace(slice, spec_.dim, 0.0f).first->second;
      for (int64_t e = 0; e < spec_.dim; ++e) {
        float gradient = of.gradients[f][at * spec_.dim + e];
        if (of.poolings[f] == Pooling::mean) gradient = gradient / static_cast<float>(end - begin);
        if (!bags.weights.empty()) gradient = gradient * bags.weights[j];
        part[e] = part[e] + gradient;
      }
    }
  }

  void apply(Row& row, Floats gradient, const RowStep& step) const {
    const auto l2 = static_cast<float>(spec_.optimizer.l2);
    for (int64_t e = 0; l2 != 0 && e < spec_.dim; ++e)
      gradient[e] = gradient[e] + l2 * row.weights[e];
    with_formula(spec_.optimizer, step, [&](const auto& formula) {
      using Formula = std::decay_t<decltype(formula)>;
      float factors[Formula::kFactors + 1] = {};
      if constexpr (Formula::kRowState)
        formula.row(row.state.back()[0], kernels::mean_square_reference(gradient.data(), spec_.dim),
                    factors);
      for (int64_t e = 0; e < spec_.dim; ++e) {
        float state[Formula::kElementColumns + 1] = {};
        for (int c = 0; c < Formula::kElementColumns; ++c) state[c] = row.state[c][e];
        formula.element(row.weights[e], state, gradient[e], factors);
        for (int c = 0; c < Formula::kElementColumns; ++c) row.state[c][e] = state[c];
      }
    });
  }

  const TableSpec spec_;
  const RowState state_;
  std::map<int64_t, Row> rows_;
};

/// Every schedule that is valid for the table.
std::vector<kernels::RowUpdateKernel> schedules_for(const TableSpec& spec) {
  kernels::FeatureShape shape;
  shape.rows = spec.rows;
  shape.dim = spec.dim;
  std::vector<kernels::RowUpdateKernel> all;
  for (const auto& of : kernels::row_update_templates()) {
    for (const auto& schedule : kernels::candidates(of.spec, shape, {}))
      all.push_back(*kernels::row_update_kernel(schedule));
  }
  return all;
}

/// Updates a table by one operation with one schedule, as a store does.
void update_with(const Operation& of, const kernels::RowUpdateKernel& kernel, EmbeddingTable& table,
                 TableUpdater& updater, ThreadPool& pool) {
  const TableSpec& spec = table.spec();
  const auto begins = kernels::slice_begins(of.samples, of.slices);
  std::vector<kernels::FeatureBags> bags;
  std::vector<kernels::GradientRows> gradients;
  std::vector<kernels::BagGradients> both;
  for (size_t f = 0; f < of.features.size(); ++f) {
    bags.push_back({of.features[f].view(of.samples), of.poolings[f]});
    gradients.push_back({of.gradients[f].data(), spec.dim});
    both.push_back({bags[f].bags, of.poolings[f], gradients[f], begins});
  }
  DistinctRows distinct;
  if (kernel.needs_distinct_rows()) {
    const kernels::TableLookups lookups{spec.rows, bags};
    kernels::DistinctRowsFinder().find({&lookups, 1}, {0, begins}, {&distinct, 1}, pool);
  }
  const TableUpdate update{&table,    &distinct, gradients,
                           of.slices, &kernel,   {both, spec.rows, spec.dim, of.slices}};
  updater.update({&update, 1}, {of.iteration, 0.5}, pool);
}

TEST(UpdateModel, random_schedules_do_to_a_table_what_the_contract_says) {
  using enum OptimizerKind;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Draw draw(seed);
    TableSpec spec;
    spec.name = "t";
    spec.rows = draw.of<int64_t>({1, 5, 40, 700});
    spec.dim = draw.of<int64_t>({1, 3, 4, 8, 16, 20, 33, 64, 128});
    spec.optimizer = {draw.of({sgd, adagrad, rowwise_adagrad, adam}), 0.05, 1e-6, 0.1, 0.9, 0.99};
    spec.optimizer.l2 = draw.of({0.0, 0.1});
    spec.optimizer.correction = draw.of({BiasCorrection::global, BiasCorrection::row});
    const size_t features = 1 + draw.below(3);
    ThreadPool pool(1 + static_cast<int>(seed % 3));
    auto table = *EmbeddingTable::create(spec, seed, RowShare(spec.rows, 0, 1), pool);
    Model model(table);
    TableUpdater updater(draw.of<int64_t>({64, 4096, kTaskFloats}));
    const auto schedules = schedules_for(spec);
    for (int64_t iteration = 0; iteration < 12; ++iteration) {
      const Operation operation = draw_operation(draw, spec, features, iteration);
      const auto& kernel = schedules[draw.below(static_cast<int64_t>(schedules.size()))];
      model.update(operation);
      update_with(operation, kernel, table, updater, pool);
      ASSERT_EQ(model.first_difference(table), -1)
          << "seed " << seed << " iteration " << iteration << " "
          << kernels::schedule_of(kernel).name() << ", " << name_of(spec.optimizer.kind) << ", "
          << spec.rows << " rows of " << spec.dim << ", " << operation.samples << " samples in "
          << operation.slices << " slices";
    }
  }
}

}  // namespace
}  // namespace recmill::table
