// SPDX-License-Identifier: Apache-2.0
#include "bench/oracle/streams.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/random.h"
#include "bench/placement/frozen_shapes.h"
#include "lookahead/batch_rows.h"

namespace recmill::bench {
namespace {

const FrozenShape& kaggle() {
  static const FrozenShape shape = *frozen_shape("kaggle");
  return shape;
}

}  // namespace

OracleStream make_stream(const std::vector<int64_t>& rows, const RowLaw& law, int64_t steps,
                         int64_t samples, ThreadPool& pool) {
  ModelSpec model;
  for (size_t t = 0; t < rows.size(); ++t) {
    model.tables.emplace_back().rows = rows[t];
    model.features.emplace_back().table = static_cast<int>(t);
  }
  lookahead::BatchRows finder(model);
  OracleStream stream(static_cast<size_t>(steps));
  SparseBatch batch;
  batch.samples = samples;
  batch.features.resize(rows.size());
  for (int64_t step = 0; step < steps; ++step) {
    pool.run(std::ssize(batch.features), [&](int64_t t) {
      const Random random(/*seed=*/1, Purpose::test, static_cast<uint64_t>(t));
      SparseFeature& feature = batch.features[t];
      feature.rows.clear();
      feature.offsets.assign(1, 0);
      for (int64_t i = 0; i < samples; ++i) {
        const auto sample = static_cast<uint64_t>(step * samples + i);
        feature.rows.push_back(
            law(static_cast<size_t>(t), random.bits64(sample, 0), random.bits64(sample, 1)));
        feature.offsets.push_back(i + 1);
      }
    });
    finder.find(batch, 0, samples, pool, stream[step]);
  }
  return stream;
}

std::vector<int64_t> kaggle_rows() {
  return kaggle().rows;
}

RowLaw kaggle_zipf(double exponent) {
  auto laws = std::make_shared<std::vector<TableLaw>>();
  for (size_t t = 0; t < kaggle().rows.size(); ++t) laws->emplace_back(kaggle(), t, exponent);
  return [laws](size_t table, uint64_t first, uint64_t second) {
    return (*laws)[table].row(first, second);
  };
}

RowLaw top_hundredth(std::vector<int64_t> rows, double share) {
  return [rows = std::move(rows), share](size_t table, uint64_t first, uint64_t second) {
    const int64_t all = rows[table], top = std::max<int64_t>(1, all / 100);
    const bool is_top = top == all || static_cast<double>(first >> 11) * 0x1p-53 < share;
    const auto count = static_cast<uint64_t>(is_top ? top : all - top);
    const auto place = static_cast<unsigned __int128>(second) * count >> 64;
    return static_cast<int64_t>(place) + (is_top ? 0 : top);
  };
}

}  // namespace recmill::bench
