// SPDX-License-Identifier: Apache-2.0
// A small model whose lookups are drawn, counted plainly and by the counter.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "stats/access_counter.h"

namespace recmill::stats {

/// Three tables of 5,000, 70 and 300,000 rows; the first has two features, the last bags.
inline ModelSpec small_model() {
  ModelSpec model;
  for (const int64_t rows : {5000, 70, 300'000}) {
    TableSpec& table = model.tables.emplace_back();
    table.name = "t" + std::to_string(model.tables.size() - 1);
    table.rows = rows;
  }
  for (const int table : {0, 1, 0, 2}) {
    model.features.emplace_back().table = table;
  }
  return model;
}

/// Rows drawn with weight about 1 / rank; samples are a function of their number.
inline SparseBatch draw(int64_t first, int64_t samples, uint64_t seed = 1) {
  const ModelSpec model = small_model();
  SparseBatch batch;
  batch.first = first;
  batch.samples = samples;
  for (size_t f = 0; f < model.features.size(); ++f) {
    const Random random(seed, Purpose::test, f);
    SparseFeature& feature = batch.features.emplace_back();
    feature.one_each = f < 2;
    feature.offsets = {0};
    const auto rows = static_cast<double>(model.tables[model.features[f].table].rows);
    for (int64_t i = first; i < first + samples; ++i) {
      const int64_t bag = feature.one_each ? 1 : i % 4;
      for (int64_t k = 0; k < bag; ++k) {
        const double rank = std::pow(rows, random.uniform64(static_cast<uint64_t>(i), k)) - 1;
        feature.rows.push_back(static_cast<int64_t>(rank) * 7 % static_cast<int64_t>(rows));
      }
      feature.offsets.push_back(std::ssize(feature.rows));
    }
  }
  return batch;
}

using PlainCounts = std::vector<std::map<int64_t, int64_t>>;  // [table], row to lookups

inline void count_plainly(const SparseBatch& batch, PlainCounts& counts) {
  const ModelSpec model = small_model();
  counts.resize(model.tables.size());
  for (size_t f = 0; f < batch.features.size(); ++f) {
    for (const int64_t row : batch.features[f].rows) ++counts[model.features[f].table][row];
  }
}

inline AccessCounter new_counter() {
  return *AccessCounter::create(small_model(), "digest");
}

inline AccessCounter counted(int64_t first, int64_t samples, int64_t batch, int threads) {
  ThreadPool pool(threads);
  AccessCounter counter = new_counter();
  for (int64_t i = first; i < first + samples; i += batch)
    counter.add(draw(i, std::min(batch, first + samples - i)), pool);
  return counter;
}

}  // namespace recmill::stats
