// SPDX-License-Identifier: Apache-2.0
// The definition of preprocessing, written for reading.
#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "preprocess/run/compiled_graph.h"
#include "preprocess/run/preprocessor.h"

namespace recmill::preprocess {
namespace {

/// Calls take turns.
class PlainPreprocessor final : public Preprocessor {
 public:
  explicit PlainPreprocessor(CompiledGraph graph) : graph_(std::move(graph)) {
    dictionaries_.resize(graph_.dictionaries.size());
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
    const std::lock_guard lock(mutex_);
    counts_sightings_ = false;
  }
  DictionaryVersions versions() const override {
    const std::lock_guard lock(mutex_);
    DictionaryVersions versions;
    for (const auto& d : dictionaries_) versions.push_back(std::ssize(d.ids));
    for (const int d : graph_.counting) versions.push_back(std::ssize(dictionaries_[d].sightings));
    return versions;
  }
  void read_dictionary(int list, int64_t first, std::span<uint64_t> ids) const override {
    const std::lock_guard lock(mutex_);
    const int counting = list - static_cast<int>(dictionaries_.size());
    const auto& all =
        counting < 0 ? dictionaries_[list].ids : dictionaries_[graph_.counting[counting]].sightings;
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = all[first + i];
  }
  Status restore_dictionary(int dictionary, std::span<const uint64_t> ids) override {
    const std::lock_guard lock(mutex_);
    const int counting = dictionary - static_cast<int>(dictionaries_.size());
    if (counting >= 0) {
      dictionaries_[graph_.counting[counting]].sightings.assign(ids.begin(), ids.end());
      return {};
    }
    dictionaries_[dictionary] = {};
    for (const uint64_t id : ids) {
      dictionaries_[dictionary].ids.push_back(id);
      dictionaries_[dictionary].rows.emplace(id, dictionaries_[dictionary].ids.size());
    }
    return {};
  }
  std::vector<FeatureCounts> counts() const override {
    const std::lock_guard lock(mutex_);
    std::vector<FeatureCounts> counts;
    for (const int feature : graph_.feature_of_output) counts.push_back(counts_[feature]);
    return counts;
  }
  std::vector<FlattenedCounts> flattened() const override {
    const std::lock_guard lock(mutex_);
    return flattened_;
  }

 private:
  struct PlainDictionary {
    std::map<uint64_t, uint64_t> rows;
    std::vector<uint64_t> ids;
    std::vector<uint64_t> sightings;  // of ids that had no row yet, one each
  };

  Status run(const ColumnBatch& batch, const DictionaryVersions* as_of, DenseBatch& dense,
             SparseBatch& sparse) {
    const std::lock_guard lock(mutex_);
    make_dense(batch, dense, as_of == nullptr);
    // bags[feature][sample]: before the dictionary, then rows
    std::vector<std::vector<Bag>> bags(graph_.features.size());
    std::vector<Status> refused(graph_.features.size());
    for (size_t f = 0; f < graph_.features.size(); ++f) {
      for (int64_t s = 0; s < batch.samples; ++s) {
        bags[f].push_back(make_bag(batch, static_cast<int>(f), s, refused[f]));
      }
    }
    for (size_t d = 0; d < dictionaries_.size(); ++d) {
      for (int64_t s = 0; s < batch.samples; ++s) {
        for (const int f : graph_.features_of_dictionary[d]) {
          const int64_t* version = as_of == nullptr ? nullptr : &(*as_of)[d];
          categorify(static_cast<int>(d), version, f, batch.first + s, bags[f][s], refused[f]);
        }
      }
    }
    for (const Status& status : refused) RECMILL_RETURN_IF_ERROR(status);
    for (size_t f = 0; f < graph_.features.size(); ++f)
      if (graph_.features[f].chain.normalized)
        for (Bag& bag : bags[f]) normalize_weights(bag.weights);
    sparse.first = batch.first;
    sparse.samples = batch.samples;
    sparse.features.assign(graph_.feature_of_output.size(), {});
    for (size_t output = 0; output < sparse.features.size(); ++output) {
      const int f = graph_.feature_of_output[output];
      sparse.features[output] = join(bags[f], graph_.features[f].chain.weighted);
      if (graph_.output_of_feature[f] == static_cast<int>(output)) {
        counts_[f].lookups += static_cast<int64_t>(sparse.features[output].rows.size());
      }
    }
    return {};
  }

  void make_dense(const ColumnBatch& batch, DenseBatch& dense, bool counts) {
    dense.first = batch.first;
    dense.samples = batch.samples;
    dense.columns = static_cast<int64_t>(graph_.dense.size());
    dense.values.resize(static_cast<size_t>(dense.samples * dense.columns));
    dense.labels = batch.labels;
    dense.sample_weights = batch.sample_weights;
    dense.groups = batch.groups;
    for (int64_t s = 0; s < dense.samples; ++s) {
      for (int64_t c = 0; c < dense.columns; ++c) {
        float value = batch.dense[graph_.dense[c].chain.column_index][s];
        int number = graph_.dense_ops_before[c];
        for (const auto* op : graph_.dense[c].dense) {
          if (counts) count_flattened(*op, {&value, 1}, flattened_[number]);
          ++number;
          value = op->plain(value);
        }
        dense.values[s * dense.columns + c] = value;
      }
    }
  }

  static bool is_missing(const CompiledChain& chain, const ColumnBatch& batch, int64_t sample) {
    if (chain.chain.source == Source::dense)
      return std::isnan(batch.dense[chain.chain.column_index][sample]);
    const auto& offsets = batch.ids[chain.chain.column_index].offsets;
    return offsets[sample] == offsets[sample + 1];
  }

  /// The ids of one sample after all ops but categorify.
  Bag make_bag(const ColumnBatch& batch, int feature, int64_t sample, Status& refused) {
    const CompiledChain& chain = graph_.features[feature];
    const Bag bag = plain_bag(chain, batch, sample);
    counts_[feature].missing += is_missing(chain, batch, sample) ? 1 : 0;
    Bag kept;
    for (size_t i = 0; i < bag.ids.size(); ++i) {
      IdCounts counts;
      uint64_t id = bag.ids[i];
      for (const auto* op : chain.ids) {
        id = op->plain(id, counts);
        if (id == kNoRow) break;
      }
      note(feature, counts, batch.first + sample, bag.ids[i], refused);
      if (id == kNoRow) continue;
      kept.ids.push_back(id);
      kept.weights.push_back(bag.weights[i]);
    }
    return kept;
  }

  void note(int feature, const IdCounts& counts, int64_t sample, uint64_t id, Status& refused) {
    counts_[feature].ids.add(counts);
    if (counts.refused > 0 && refused.ok()) refused = refused_id(graph_, feature, sample, id);
  }

  bool is_full(int d) const {
    return static_cast<int64_t>(dictionaries_[d].ids.size()) == graph_.dictionaries[d].rows - 1;
  }

  /// Whether this is the min_count-th sighting of an id without a row, or a later one; notes it
  /// while sightings count.
  bool is_due(int d, uint64_t id) {
    auto& sightings = dictionaries_[d].sightings;
    const int64_t min_count = graph_.dictionaries[d].min_count;
    if (min_count == 1) return true;
    const int64_t before = std::ranges::count(sightings, id);
    if (!counts_sightings_) return before == min_count;
    if (before + 1 < min_count || (before + 1 == min_count && is_full(d))) sightings.push_back(id);
    return before + 1 >= min_count;
  }

  void categorify(int d, const int64_t* version, int feature, int64_t sample, Bag& bag,
                  Status& refused) {
    PlainDictionary& dictionary = dictionaries_[d];
    Bag kept;
    for (size_t i = 0; i < bag.ids.size(); ++i) {
      IdCounts counts;
      uint64_t row = kNoRow;
      const auto found = dictionary.rows.find(bag.ids[i]);
      if (version != nullptr) {
        const bool seen =
            found != dictionary.rows.end() && found->second <= static_cast<uint64_t>(*version);
        row = seen ? found->second : graph_.dictionaries[d].drops_unseen() ? kNoRow : 0;
        counts.unseen += seen ? 0 : 1;
      } else if (found != dictionary.rows.end()) {
        row = found->second;
      } else if (!is_due(d, bag.ids[i])) {
        row = 0;
      } else if (!is_full(d)) {
        dictionary.ids.push_back(bag.ids[i]);
        row = dictionary.ids.size();
        dictionary.rows.emplace(bag.ids[i], row);
      } else if (graph_.when_full[d] == Dictionary::WhenFull::clamp) {
        row = 0;
        ++counts.clamped;
      } else {
        ++(graph_.when_full[d] == Dictionary::WhenFull::drop ? counts.dropped : counts.refused);
      }
      note(feature, counts, sample, bag.ids[i], refused);
      if (row == kNoRow) continue;
      kept.ids.push_back(row);
      kept.weights.push_back(bag.weights[i]);
    }
    bag = std::move(kept);
  }

  static SparseFeature join(const std::vector<Bag>& bags, bool weighted) {
    SparseFeature feature;
    feature.offsets.push_back(0);
    feature.one_each = true;
    for (const auto& bag : bags) {
      for (size_t i = 0; i < bag.ids.size(); ++i) {
        feature.rows.push_back(static_cast<int64_t>(bag.ids[i]));
        if (weighted) feature.weights.push_back(bag.weights[i]);
      }
      feature.offsets.push_back(static_cast<int64_t>(feature.rows.size()));
      feature.one_each = feature.one_each && bag.ids.size() == 1;
    }
    return feature;
  }

  CompiledGraph graph_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<PlainDictionary> dictionaries_;
  std::vector<FeatureCounts> counts_;       // [features with ids of their own]
  std::vector<FlattenedCounts> flattened_;  // [ops of dense columns]
  bool counts_sightings_ = true;
};

}  // namespace

Result<std::unique_ptr<Preprocessor>> make_plain_preprocessor(const FeatureGraph& graph,
                                                              const ModelSpec& model) {
  RECMILL_ASSIGN_OR_RETURN(auto compiled, compile(graph, model));
  return std::unique_ptr<Preprocessor>(new PlainPreprocessor(std::move(compiled)));
}

}  // namespace recmill::preprocess
