// SPDX-License-Identifier: Apache-2.0
#include "preprocess/run/pool_ops.h"

#include <algorithm>

namespace recmill::preprocess {
namespace {

// Samples of a column that go through all its ops before the next ones do: they stay in the L1
// cache.
constexpr int64_t kTile = 1024;

int64_t tiles_of(int64_t samples) {
  return (samples + kTile - 1) / kTile;
}

/// Tile-sized memory of one task between two ops.
struct Scratch {
  std::vector<float> values;
  struct Bags {
    std::vector<int64_t> offsets;
    std::vector<uint64_t> ids;
    std::vector<float> weights;
  } bags[2];
};
Scratch& scratch() {
  thread_local Scratch memory;
  return memory;
}

/// `counts`: of each op of dense columns, or empty.
void make_dense_tile(PreprocessCall& call, int64_t tile, std::span<FlattenedCounts> counts) {
  const int64_t begin = tile * kTile;
  const int64_t size = std::min(kTile, call.batch.samples - begin);
  auto& values = scratch().values;
  values.resize(kTile);
  const std::span<float> out(values.data(), size);
  for (int64_t c = 0; c < call.dense.columns; ++c) {
    const CompiledChain& chain = call.graph.dense[c];
    std::span<const float> in(call.batch.dense[chain.chain.column_index].data() + begin, size);
    int number = call.graph.dense_ops_before[c];
    for (const auto* op : chain.dense) {
      if (!counts.empty()) count_flattened(*op, in, counts[number++]);
      op->run(in, out);
      in = out;
    }
    float* to = call.dense.values.data() + begin * call.dense.columns + c;
    for (int64_t s = 0; s < size; ++s) to[s * call.dense.columns] = in[s];
  }
}

void bucketize(PreprocessCall& call, const CompiledChain& chain, int64_t begin, int64_t size,
               std::span<uint64_t> rows) {
  auto& values = scratch().values;
  values.resize(kTile);
  const std::span<float> out(values.data(), size);
  std::span<const float> in(call.batch.dense[chain.chain.column_index].data() + begin, size);
  for (const auto* op : chain.dense) {
    op->run(in, out);
    in = out;
  }
  chain.bucket->run(in, rows);
}

/// All bag ops of a tile; the last one writes into `out`.
void run_bags(PreprocessCall& call, const CompiledChain& chain, int64_t begin, int64_t size,
              SparseFeature& out) {
  const IdColumn& column = call.batch.ids[chain.chain.column_index];
  const bool weighted = chain.chain.weighted;
  const int64_t* offsets = out.offsets.data() + begin;
  auto* rows = reinterpret_cast<uint64_t*>(out.rows.data()) + offsets[0];
  float* weights = weighted ? out.weights.data() + offsets[0] : nullptr;
  BagView in{column.offsets.data() + begin, column.ids.data(),
             column.weights.empty() ? nullptr : column.weights.data(), size};
  if (chain.bags.empty()) {
    const int64_t first = in.offsets[0], count = in.offsets[size] - first;
    std::copy_n(in.ids + first, count, rows);
    if (weighted && in.weights != nullptr) std::copy_n(in.weights + first, count, weights);
    if (weighted && in.weights == nullptr) std::fill_n(weights, count, 1.0f);
    return;
  }
  for (size_t i = 0; i + 1 < chain.bags.size(); ++i) {
    Scratch::Bags& next = scratch().bags[i % 2];
    next.offsets.resize(size + 1);
    next.offsets[0] = 0;
    for (int64_t s = 0; s < size; ++s) {
      next.offsets[s + 1] =
          next.offsets[s] + chain.bags[i]->length(in.offsets[s + 1] - in.offsets[s]);
    }
    next.ids.resize(next.offsets[size]);
    next.weights.resize(weighted ? next.offsets[size] : 0);
    chain.bags[i]->run(in, next.offsets.data(), next.ids.data(),
                       weighted ? next.weights.data() : nullptr);
    in = {next.offsets.data(), next.ids.data(), weighted ? next.weights.data() : nullptr, size};
  }
  chain.bags.back()->run(in, offsets, rows, weights);
}

void run_ids(const CompiledChain& chain, std::span<const uint64_t> ids, std::span<uint64_t> rows,
             IdCounts& counts) {
  for (const auto* op : chain.ids) {
    if (counts.dropped + counts.refused == 0) {
      op->run(ids, rows, counts);
    } else {  // what an earlier op left out stays out
      for (uint64_t& row : rows) row = row == kNoRow ? row : op->plain(row, counts);
    }
    ids = rows;
  }
}

void make_rows_tile(PreprocessCall& call, int feature, int64_t tile, IdCounts& counts) {
  const CompiledChain& chain = call.graph.features[feature];
  const int64_t begin = tile * kTile;
  const int64_t size = std::min(kTile, call.batch.samples - begin);
  SparseFeature& out = call.output(feature);
  const int64_t* offsets = out.offsets.data() + begin;
  const std::span<uint64_t> rows(reinterpret_cast<uint64_t*>(out.rows.data()) + offsets[0],
                                 offsets[size] - offsets[0]);
  std::span<const uint64_t> ids = rows;  // where the ops on ids read
  if (chain.chain.source == Source::dense) {
    bucketize(call, chain, begin, size, rows);
  } else if (call.plain_column[feature]) {
    const IdColumn& column = call.batch.ids[chain.chain.column_index];
    const int64_t first = column.offsets[begin];
    ids = {column.ids.data() + first, static_cast<size_t>(size)};
    if (chain.chain.weighted && column.weights.empty()) {
      std::fill_n(out.weights.data() + begin, size, 1.0f);
    } else if (chain.chain.weighted) {
      std::copy_n(column.weights.data() + first, size, out.weights.data() + begin);
    }
  } else {
    run_bags(call, chain, begin, size, out);
  }
  if (chain.ids.empty() && ids.data() != rows.data()) {
    std::copy(ids.begin(), ids.end(), rows.begin());
  }
  run_ids(chain, ids, rows, counts);
}

}  // namespace

Status PoolOps::run(PreprocessCall& call) {
  const auto features = static_cast<int64_t>(chains_.features.size());
  const int64_t tiles = tiles_of(call.batch.samples), dense_tiles = chains_.dense ? tiles : 0;
  std::vector<IdCounts> tile_counts(features * tiles);
  const size_t ops = call.flattened.size();
  std::vector<FlattenedCounts> flattened(ops * dense_tiles);
  pool_.run(dense_tiles + features * tiles, [&](int64_t task) {
    if (task < dense_tiles)
      return make_dense_tile(call, task, std::span(flattened).subspan(task * ops, ops));
    task -= dense_tiles;
    make_rows_tile(call, chains_.features[task / tiles], task % tiles, tile_counts[task]);
  });
  for (size_t i = 0; i < flattened.size(); ++i) call.flattened[i % ops].add(flattened[i]);
  for (int64_t task = 0; task < features * tiles; ++task)
    call.counts[chains_.features[task / tiles]].ids.add(tile_counts[task]);
  return {};
}

}  // namespace recmill::preprocess
