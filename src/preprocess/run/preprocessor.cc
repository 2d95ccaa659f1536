// SPDX-License-Identifier: Apache-2.0
#include "preprocess/run/preprocessor.h"

#include <algorithm>
#include <mutex>

#include "preprocess/run/compiled_graph.h"

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

class PoolPreprocessor final : public Preprocessor {
 public:
  PoolPreprocessor(CompiledGraph graph, Pool& pool) : graph_(std::move(graph)), pool_(pool) {
    for (size_t d = 0; d < graph_.dictionaries.size(); ++d) {
      dictionaries_.emplace_back(graph_.dictionaries[d].rows, graph_.when_full[d]);
    }
    counts_.resize(graph_.features.size());
  }

  Status train(const ColumnBatch& batch, DenseBatch& dense, SparseBatch& sparse) override {
    return run(batch, nullptr, dense, sparse);
  }
  Status evaluate(const ColumnBatch& batch, const DictionaryVersions& as_of, DenseBatch& dense,
                  SparseBatch& sparse) override {
    return run(batch, &as_of, dense, sparse);
  }
  DictionaryVersions versions() const override {
    std::lock_guard lock(mutex_);
    DictionaryVersions versions;
    for (const auto& dictionary : dictionaries_) versions.push_back(dictionary.version());
    return versions;
  }
  void read_dictionary(int dictionary, int64_t first, std::span<uint64_t> ids) const override {
    std::lock_guard lock(mutex_);
    const auto all = dictionaries_[dictionary].ids();
    RECMILL_CHECK(first >= 0 && first + ids.size() <= all.size(), std::to_string(first));
    std::copy_n(all.begin() + first, ids.size(), ids.begin());
  }
  Status restore_dictionary(int dictionary, std::span<const uint64_t> ids) override {
    std::lock_guard lock(mutex_);
    return dictionaries_[dictionary].restore(ids).at("dictionary '" +
                                                     graph_.dictionaries[dictionary].name + "'");
  }
  std::vector<FeatureCounts> counts() const override {
    std::lock_guard lock(mutex_);
    std::vector<FeatureCounts> counts;
    for (const int feature : graph_.feature_of_output) counts.push_back(counts_[feature]);
    return counts;
  }

 private:
  /// One call of train() or evaluate().
  struct Call {
    const ColumnBatch& batch;
    const DictionaryVersions* as_of;  // null: training
    DenseBatch& dense;
    SparseBatch& sparse;
    std::vector<char> plain_column;     // [features] every bag is one id that no bag op changes
    std::vector<FeatureCounts> counts;  // [features]
    std::vector<IdCounts> tile_counts;  // [features][tiles]
  };

  SparseFeature& output(Call& call, int feature) const {
    return call.sparse.features[graph_.output_of_feature[feature]];
  }

  Status run(const ColumnBatch& batch, const DictionaryVersions* as_of, DenseBatch& dense,
             SparseBatch& sparse) {
    const auto features = static_cast<int64_t>(graph_.features.size());
    const int64_t tiles = tiles_of(batch.samples);
    Call call{batch, as_of, dense, sparse, {}, {}, {}};
    call.plain_column.resize(features);
    call.counts.resize(features);
    call.tile_counts.resize(features * tiles);
    start(call);
    pool_.run(features + tiles, [&](int64_t task) {
      if (task < features) {
        lay_out(call, static_cast<int>(task));
      } else {
        make_dense_tile(call, task - features);
      }
    });
    pool_.run(features * tiles, [&](int64_t task) {
      make_rows_tile(call, static_cast<int>(task / tiles), task % tiles);
    });
    categorify(call);
    for (int64_t task = 0; task < features * tiles; ++task) {
      call.counts[task / tiles].ids.add(call.tile_counts[task]);
    }
    RECMILL_RETURN_IF_ERROR(first_refused(call));
    pool_.run(static_cast<int64_t>(graph_.feature_of_output.size()), [&](int64_t i) {
      const int feature = graph_.feature_of_output[i];
      if (graph_.output_of_feature[feature] == i) finish(call, feature);
    });
    pool_.run(static_cast<int64_t>(graph_.feature_of_output.size()), [&](int64_t i) {
      const int source = graph_.output_of_feature[graph_.feature_of_output[i]];
      if (source != i) sparse.features[i] = sparse.features[source];
    });
    std::lock_guard lock(mutex_);
    for (int64_t f = 0; f < features; ++f) {
      counts_[f].lookups += call.counts[f].lookups;
      counts_[f].missing += call.counts[f].missing;
      counts_[f].ids.add(call.counts[f].ids);
    }
    return {};
  }

  void start(Call& call) const {
    call.sparse.first = call.dense.first = call.batch.first;
    call.sparse.samples = call.dense.samples = call.batch.samples;
    call.sparse.features.resize(graph_.feature_of_output.size());
    call.dense.columns = static_cast<int64_t>(graph_.dense.size());
    call.dense.values.resize(static_cast<size_t>(call.dense.samples * call.dense.columns));
    call.dense.labels = call.batch.labels;
    call.dense.sample_weights = call.batch.sample_weights;
    call.dense.groups = call.batch.groups;
  }

  void make_dense_tile(Call& call, int64_t tile) const {
    const int64_t begin = tile * kTile;
    const int64_t size = std::min(kTile, call.batch.samples - begin);
    auto& values = scratch().values;
    values.resize(kTile);
    const std::span<float> out(values.data(), size);
    for (int64_t c = 0; c < call.dense.columns; ++c) {
      const CompiledChain& chain = graph_.dense[c];
      std::span<const float> in(call.batch.dense[chain.chain.column_index].data() + begin, size);
      for (const auto* op : chain.dense) {
        op->run(in, out);
        in = out;
      }
      float* to = call.dense.values.data() + begin * call.dense.columns + c;
      for (int64_t s = 0; s < size; ++s) to[s * call.dense.columns] = in[s];
    }
  }

  /// Offsets of a feature before any lookup is left out, and room for its rows.
  void lay_out(Call& call, int feature) const {
    const CompiledChain& chain = graph_.features[feature];
    const int64_t samples = call.batch.samples;
    SparseFeature& out = output(call, feature);
    out.offsets.resize(samples + 1);
    int64_t* to = out.offsets.data();
    to[0] = 0;
    out.one_each = true;
    if (chain.chain.source == Source::dense) {
      for (int64_t s = 0; s <= samples; ++s) to[s] = s;
    } else {
      const int64_t* from = call.batch.ids[chain.chain.column_index].offsets.data();
      int64_t different = 0;
      for (int64_t s = 0; s < samples; ++s) different |= from[s + 1] - from[0] - s - 1;
      call.plain_column[feature] = different == 0 && chain.keeps_single;
      if (call.plain_column[feature]) {
        for (int64_t s = 0; s <= samples; ++s) to[s] = s;
      } else {
        int64_t missing = 0, total = 0, others = 0;
        for (int64_t s = 0; s < samples; ++s) {
          const int64_t before = from[s + 1] - from[s];
          const int64_t length = chain.length(before);
          missing += before == 0;
          others |= length - 1;
          to[s + 1] = total += length;
        }
        call.counts[feature].missing = missing;
        out.one_each = others == 0;
      }
    }
    out.rows.resize(to[samples]);
    out.weights.resize(chain.chain.weighted ? to[samples] : 0);
  }

  void make_rows_tile(Call& call, int feature, int64_t tile) const {
    const CompiledChain& chain = graph_.features[feature];
    const int64_t begin = tile * kTile;
    const int64_t size = std::min(kTile, call.batch.samples - begin);
    IdCounts& counts = call.tile_counts[feature * tiles_of(call.batch.samples) + tile];
    SparseFeature& out = output(call, feature);
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

  void bucketize(Call& call, const CompiledChain& chain, int64_t begin, int64_t size,
                 std::span<uint64_t> rows) const {
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
  static void run_bags(Call& call, const CompiledChain& chain, int64_t begin, int64_t size,
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

  static void run_ids(const CompiledChain& chain, std::span<const uint64_t> ids,
                      std::span<uint64_t> rows, IdCounts& counts) {
    for (const auto* op : chain.ids) {
      if (counts.dropped + counts.refused == 0) {
        op->run(ids, rows, counts);
      } else {  // what an earlier op left out stays out
        for (uint64_t& row : rows) row = row == kNoRow ? row : op->plain(row, counts);
      }
      ids = rows;
    }
  }

  /// Dictionaries, in parallel; each in the order of the samples.
  void categorify(Call& call) {
    if (dictionaries_.empty()) return;
    std::lock_guard lock(mutex_);
    pool_.run(static_cast<int64_t>(dictionaries_.size()), [&](int64_t d) {
      const auto& features = graph_.features_of_dictionary[d];
      Dictionary& dictionary = dictionaries_[d];
      if (call.as_of != nullptr || features.size() == 1) {
        for (const int feature : features) {
          auto& out = output(call, feature).rows;
          const std::span<uint64_t> rows(reinterpret_cast<uint64_t*>(out.data()), out.size());
          IdCounts& counts = call.counts[feature].ids;
          if (call.as_of != nullptr) {
            dictionary.find_all(rows, (*call.as_of)[d], rows, counts);
          } else {
            dictionary.add_all(rows, rows, counts);
          }
        }
        return;
      }
      for (int64_t s = 0; s < call.batch.samples; ++s) {
        for (const int feature : features) {
          SparseFeature& out = output(call, feature);
          for (int64_t i = out.offsets[s]; i < out.offsets[s + 1]; ++i) {
            out.rows[i] = static_cast<int64_t>(
                dictionary.add(static_cast<uint64_t>(out.rows[i]), call.counts[feature].ids));
          }
        }
      }
    });
  }

  /// The error of the first feature, and its first sample, with an id that has no row.
  Status first_refused(Call& call) const {
    for (size_t f = 0; f < graph_.features.size(); ++f) {
      if (call.counts[f].ids.refused == 0) continue;
      const auto feature = static_cast<int>(f);
      const SparseFeature& out = output(call, feature);
      const auto at = std::find(out.rows.begin(), out.rows.end(), static_cast<int64_t>(kNoRow)) -
                      out.rows.begin();
      const auto sample =
          std::upper_bound(out.offsets.begin(), out.offsets.end(), at) - out.offsets.begin() - 1;
      const CompiledChain& chain = graph_.features[f];
      if (chain.chain.source == Source::dense) {
        return refused_id(graph_, feature, call.batch.first + sample,
                          static_cast<uint64_t>(out.rows[at]));
      }
      const IdColumn& column = call.batch.ids[chain.chain.column_index];
      Bag bag;
      for (int64_t i = column.offsets[sample]; i < column.offsets[sample + 1]; ++i) {
        bag.ids.push_back(column.ids[i]);
        bag.weights.push_back(1.0f);
      }
      for (const auto* op : chain.bags) bag = op->plain(bag);
      return refused_id(graph_, feature, call.batch.first + sample,
                        bag.ids[at - out.offsets[sample]]);
    }
    return {};
  }

  /// Takes out the lookups that were dropped.
  void finish(Call& call, int feature) const {
    SparseFeature& out = output(call, feature);
    if (graph_.features[feature].chain.source == Source::dense) {
      const auto& column = call.batch.dense[graph_.features[feature].chain.column_index];
      for (const float value : column) call.counts[feature].missing += value != value ? 1 : 0;
    }
    if (call.counts[feature].ids.dropped > 0) {
      int64_t kept = 0, others = 0;
      for (int64_t s = 0, from = 0; s < call.batch.samples; ++s) {
        const int64_t before = kept;
        for (const int64_t end = out.offsets[s + 1]; from < end; ++from) {
          if (out.rows[from] == static_cast<int64_t>(kNoRow)) continue;
          if (!out.weights.empty()) out.weights[kept] = out.weights[from];
          out.rows[kept++] = out.rows[from];
        }
        others |= kept - before - 1;
        out.offsets[s + 1] = kept;
      }
      out.rows.resize(kept);
      if (!out.weights.empty()) out.weights.resize(kept);
      out.one_each = others == 0;
    }
    call.counts[feature].lookups = static_cast<int64_t>(out.rows.size());
  }

  const CompiledGraph graph_;
  Pool& pool_;
  mutable std::mutex mutex_;
  std::vector<Dictionary> dictionaries_;  // guarded by mutex_
  std::vector<FeatureCounts> counts_;     // [features], guarded by mutex_
};

}  // namespace

Result<std::unique_ptr<Preprocessor>> make_preprocessor(const FeatureGraph& graph,
                                                        const ModelSpec& model, Pool& pool) {
  RECMILL_ASSIGN_OR_RETURN(auto compiled, compile(graph, model));
  return std::unique_ptr<Preprocessor>(new PoolPreprocessor(std::move(compiled), pool));
}

}  // namespace recmill::preprocess
