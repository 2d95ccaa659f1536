// SPDX-License-Identifier: Apache-2.0
#include "preprocess/run/preprocessor.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <shared_mutex>

#include "batch/gpu_sparse_batch.h"
#include "preprocess/run/compiled_graph.h"
#include "preprocess/run/pool_ops.h"
#include "preprocess/run/stateless_ops.h"

namespace recmill::preprocess {
namespace {

class PoolPreprocessor final : public Preprocessor {
 public:
  PoolPreprocessor(CompiledGraph graph, ThreadPool& pool, std::unique_ptr<StatelessOps> ops)
      : graph_(std::move(graph)), pool_(pool), ops_(std::move(ops)) {
    for (size_t d = 0; d < graph_.dictionaries.size(); ++d) {
      dictionaries_.emplace_back(graph_.dictionaries[d].rows, graph_.when_full[d],
                                 graph_.dictionaries[d].min_count);
    }
    counts_.resize(graph_.features.size());
    flattened_.resize(graph_.dense_ops);
  }

  Status train(const ColumnBatch& batch, DenseBatch& dense, SparseBatch& sparse) override {
    return run(batch, nullptr, dense, sparse);
  }
  Status evaluate(const ColumnBatch& batch, const DictionaryVersions& as_of, DenseBatch& dense,
                  SparseBatch& sparse) override {
    return run(batch, &as_of, dense, sparse);
  }
  void stop_counting() override {
    const auto lock = write_lists();
    for (const int d : graph_.counting) dictionaries_[d].stop_counting();
  }
  DictionaryVersions versions() const override {
    const auto lock = read_lists();
    DictionaryVersions versions;
    for (const auto& dictionary : dictionaries_) versions.push_back(dictionary.version());
    for (const int d : graph_.counting)
      versions.push_back(std::ssize(dictionaries_[d].sightings()));
    return versions;
  }
  void read_dictionary(int list, int64_t first, std::span<uint64_t> ids) const override {
    const auto lock = read_lists();
    const int counting = list - static_cast<int>(dictionaries_.size());
    const auto all = counting < 0 ? dictionaries_[list].ids()
                                  : dictionaries_[graph_.counting[counting]].sightings();
    RECMILL_CHECK(first >= 0 && first + ids.size() <= all.size(), std::to_string(first));
    std::copy_n(all.begin() + first, ids.size(), ids.begin());
  }
  Status restore_dictionary(int list, std::span<const uint64_t> ids) override {
    const auto lock = write_lists();
    const int counting = list - static_cast<int>(dictionaries_.size());
    const int number = counting < 0 ? list : graph_.counting[counting];
    Dictionary& dictionary = dictionaries_[number];
    return (counting < 0 ? dictionary.restore(ids) : dictionary.restore_sightings(ids))
        .at("dictionary '" + graph_.dictionaries[number].name + "'");
  }
  std::vector<FeatureCounts> counts() const override {
    const std::lock_guard lock(counts_mutex_);
    std::vector<FeatureCounts> counts;
    for (const int feature : graph_.feature_of_output) counts.push_back(counts_[feature]);
    return counts;
  }
  std::vector<FlattenedCounts> flattened() const override {
    const std::lock_guard lock(counts_mutex_);
    return flattened_;
  }

 private:
  Status run(const ColumnBatch& batch, const DictionaryVersions* as_of, DenseBatch& dense,
             SparseBatch& sparse) {
    const auto features = static_cast<int64_t>(graph_.features.size());
    PreprocessCall call{graph_, batch, as_of, dense, sparse, {}, {}, {}};
    call.plain_column.resize(features);
    call.counts.resize(features);
    if (as_of == nullptr) call.flattened.resize(graph_.dense_ops);
    start(call);
    pool_.run(features, [&](int64_t feature) { lay_out(call, static_cast<int>(feature)); });
    RECMILL_RETURN_IF_ERROR(ops_->run(call));
    categorify(call);
    RECMILL_RETURN_IF_ERROR(first_refused(call));
    pool_.run(static_cast<int64_t>(graph_.feature_of_output.size()), [&](int64_t i) {
      const int feature = graph_.feature_of_output[i];
      if (graph_.output_of_feature[feature] == i) finish(call, feature);
    });
    pool_.run(static_cast<int64_t>(graph_.feature_of_output.size()), [&](int64_t i) {
      const int source = graph_.output_of_feature[graph_.feature_of_output[i]];
      if (source == i) return;
      sparse.features[i] = sparse.features[source];
      if (sparse.on_gpu) sparse.on_gpu->features[i] = sparse.on_gpu->features[source];
    });
    const std::lock_guard lock(counts_mutex_);
    for (int64_t f = 0; f < features; ++f) {
      counts_[f].lookups += call.counts[f].lookups;
      counts_[f].missing += call.counts[f].missing;
      counts_[f].ids.add(call.counts[f].ids);
    }
    for (size_t op = 0; op < call.flattened.size(); ++op) flattened_[op].add(call.flattened[op]);
    return {};
  }

  void start(PreprocessCall& call) const {
    call.sparse.first = call.dense.first = call.batch.first;
    call.sparse.samples = call.dense.samples = call.batch.samples;
    call.sparse.features.resize(graph_.feature_of_output.size());
    call.sparse.on_gpu.reset();
    call.dense.columns = static_cast<int64_t>(graph_.dense.size());
    call.dense.values.resize(static_cast<size_t>(call.dense.samples * call.dense.columns));
    call.dense.labels = call.batch.labels;
    call.dense.sample_weights = call.batch.sample_weights;
    call.dense.groups = call.batch.groups;
  }

  /// Offsets of a feature before any lookup is left out, and room for its rows.
  void lay_out(PreprocessCall& call, int feature) const {
    const CompiledChain& chain = graph_.features[feature];
    const int64_t samples = call.batch.samples;
    SparseFeature& out = call.output(feature);
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
    out.on_host = !ops_->keeps_on_gpu(feature);
    out.rows.resize(out.on_host ? to[samples] : 0);
    out.weights.resize(out.on_host && chain.chain.weighted ? to[samples] : 0);
  }

  // Training waits for those who read at that moment, and not for those who come later.
  std::shared_lock<std::shared_mutex> read_lists() const {
    const std::lock_guard turn(turn_);
    return std::shared_lock(lists_);
  }
  std::unique_lock<std::shared_mutex> write_lists() const {
    const std::lock_guard turn(turn_);
    return std::unique_lock(lists_);
  }

  void categorify(PreprocessCall& call) {
    if (dictionaries_.empty()) return;
    if (call.as_of == nullptr) {
      const auto lock = write_lists();
      look_up_ids(call);
    } else {
      const auto lock = read_lists();
      look_up_ids(call);
    }
  }

  /// Dictionaries, in parallel; each in the order of the samples.
  void look_up_ids(PreprocessCall& call) {
    pool_.run(static_cast<int64_t>(dictionaries_.size()), [&](int64_t d) {
      const auto& features = graph_.features_of_dictionary[d];
      Dictionary& dictionary = dictionaries_[d];
      if (call.as_of != nullptr || features.size() == 1) {
        for (const int feature : features) {
          auto& out = call.output(feature).rows;
          const std::span<uint64_t> rows(reinterpret_cast<uint64_t*>(out.data()), out.size());
          IdCounts& counts = call.counts[feature].ids;
          if (call.as_of != nullptr) {
            dictionary.find_all(rows, (*call.as_of)[d], rows, counts,
                                graph_.dictionaries[d].drops_unseen() ? kNoRow : 0);
          } else {
            dictionary.add_all(rows, rows, counts);
          }
        }
        return;
      }
      for (int64_t s = 0; s < call.batch.samples; ++s) {
        for (const int feature : features) {
          SparseFeature& out = call.output(feature);
          for (int64_t i = out.offsets[s]; i < out.offsets[s + 1]; ++i) {
            out.rows[i] = static_cast<int64_t>(
                dictionary.add(static_cast<uint64_t>(out.rows[i]), call.counts[feature].ids));
          }
        }
      }
    });
  }

  /// The error of the first feature, and its first sample, with an id that has no row.
  Status first_refused(PreprocessCall& call) const {
    for (size_t f = 0; f < graph_.features.size(); ++f) {
      if (call.counts[f].ids.refused == 0) continue;
      const auto feature = static_cast<int>(f);
      const SparseFeature& out = call.output(feature);
      const auto at = std::find(out.rows.begin(), out.rows.end(), static_cast<int64_t>(kNoRow)) -
                      out.rows.begin();
      const auto sample =
          std::upper_bound(out.offsets.begin(), out.offsets.end(), at) - out.offsets.begin() - 1;
      const Bag bag = plain_bag(graph_.features[f], call.batch, sample);
      return refused_id(graph_, feature, call.batch.first + sample,
                        bag.ids[at - out.offsets[sample]]);
    }
    return {};
  }

  /// Takes out the lookups that were dropped.
  void finish(PreprocessCall& call, int feature) const {
    SparseFeature& out = call.output(feature);
    if (graph_.features[feature].chain.source == Source::dense) {
      const auto& column = call.batch.dense[graph_.features[feature].chain.column_index];
      for (const float value : column) call.counts[feature].missing += value != value ? 1 : 0;
    }
    const CompiledChain& chain = graph_.features[feature];
    const bool drops_unseen =
        chain.dictionary >= 0 && graph_.dictionaries[chain.dictionary].drops_unseen();
    if (call.counts[feature].ids.dropped > 0 ||
        (drops_unseen && call.counts[feature].ids.unseen > 0)) {
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
    if (chain.chain.normalized) {
      for (int64_t s = 0; s < call.batch.samples; ++s)
        normalize_weights(
            std::span(out.weights).subspan(out.offsets[s], out.offsets[s + 1] - out.offsets[s]));
    }
    call.counts[feature].lookups = out.offsets[call.batch.samples];
  }

  const CompiledGraph graph_;
  ThreadPool& pool_;
  const std::unique_ptr<StatelessOps> ops_;
  mutable std::mutex turn_;
  mutable std::shared_mutex lists_;
  std::vector<Dictionary> dictionaries_;  // guarded by lists_
  mutable std::mutex counts_mutex_;
  std::vector<FeatureCounts> counts_;       // [features], guarded by counts_mutex_
  std::vector<FlattenedCounts> flattened_;  // [ops of dense columns], guarded by counts_mutex_
};

}  // namespace

std::unique_ptr<Preprocessor> preprocessor_with(CompiledGraph graph, ThreadPool& pool,
                                                std::unique_ptr<StatelessOps> ops) {
  return std::make_unique<PoolPreprocessor>(std::move(graph), pool, std::move(ops));
}

Result<std::unique_ptr<Preprocessor>> make_preprocessor(const FeatureGraph& graph,
                                                        const ModelSpec& model, ThreadPool& pool) {
  RECMILL_ASSIGN_OR_RETURN(auto compiled, compile(graph, model));
  ChainSubset all{true, {}};
  all.features.resize(compiled.features.size());
  std::iota(all.features.begin(), all.features.end(), 0);
  return preprocessor_with(std::move(compiled), pool,
                           std::make_unique<PoolOps>(pool, std::move(all)));
}

}  // namespace recmill::preprocess
