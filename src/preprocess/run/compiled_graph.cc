// SPDX-License-Identifier: Apache-2.0
#include "preprocess/run/compiled_graph.h"

#include "base/json/json.h"
#include "preprocess/ops/registry.h"
#include "preprocess/run/preprocessor.h"

namespace recmill::preprocess {
namespace {

Status add_op(const OpSpec& spec, const std::vector<DictionarySpec>& dictionaries,
              CompiledChain& chain) {
  if (chain.dictionary >= 0) return Status::Failed("an op follows 'categorify'");
  if (spec.op == "categorify") {
    // They may drop ids, which a dictionary must not see.
    if (!chain.ids.empty()) return Status::Failed("'categorify' follows an op on ids");
    const std::string name = spec.parameters->value("dictionary", "");
    for (size_t i = 0; i < dictionaries.size(); ++i) {
      if (dictionaries[i].name == name) chain.dictionary = static_cast<int>(i);
    }
    return chain.dictionary >= 0 ? Status()
                                 : Status::Failed("there is no dictionary '" + name + "'");
  }
  RECMILL_ASSIGN_OR_RETURN(auto op, make_op(spec));
  const Op::Kind kind = op->kind();
  const bool on_dense = chain.chain.source == Source::dense && chain.bucket == nullptr;
  const bool in_order = on_dense
                            ? kind == Op::Kind::dense || kind == Op::Kind::bucket
                            : kind == Op::Kind::id || (kind == Op::Kind::bag && chain.ids.empty() &&
                                                       chain.chain.source == Source::ids);
  if (!in_order) return Status::Failed("op '" + spec.op + "' cannot be there");
  if (kind == Op::Kind::dense) chain.dense.push_back(static_cast<const DenseOp*>(op.get()));
  if (kind == Op::Kind::bucket) chain.bucket = static_cast<const BucketOp*>(op.get());
  if (kind == Op::Kind::bag) chain.bags.push_back(static_cast<const BagOp*>(op.get()));
  if (kind == Op::Kind::id) chain.ids.push_back(static_cast<const IdOp*>(op.get()));
  chain.ops.push_back(std::move(op));
  return {};
}

Result<CompiledChain> compile_chain(const Chain& chain,
                                    const std::vector<DictionarySpec>& dictionaries) {
  CompiledChain compiled;
  compiled.chain = chain;
  for (const auto& spec : chain.ops) {
    const Status status = add_op(spec, dictionaries, compiled);
    if (!status.ok()) return status.at("chain '" + chain.output + "'");
  }
  for (size_t i = 0; i < compiled.short_lengths.size(); ++i) {
    compiled.short_lengths[i] = compiled.full_length(static_cast<int64_t>(i));
  }
  for (const auto* op : compiled.bags) {
    compiled.keeps_single = compiled.keeps_single && op->keeps_single();
  }
  return compiled;
}

/// Which chain makes each of the model's features.
Status match_features(const FeatureGraph& graph, const ModelSpec& model, CompiledGraph& compiled) {
  for (size_t i = 0; i < model.features.size(); ++i) {
    const FeatureSpec& feature = model.features[i];
    if (feature.same_ids_as >= 0) {
      RECMILL_CHECK(static_cast<size_t>(feature.same_ids_as) < i, feature.name);
      compiled.feature_of_output.push_back(compiled.feature_of_output[feature.same_ids_as]);
      continue;
    }
    const size_t next = compiled.output_of_feature.size();
    if (next >= graph.features.size() || graph.features[next].output != feature.name) {
      return Status::Failed("the graph has no chain for feature '" + feature.name + "'");
    }
    compiled.feature_of_output.push_back(static_cast<int>(next));
    compiled.output_of_feature.push_back(static_cast<int>(i));
    compiled.rows.push_back(model.tables[feature.table].rows);
  }
  return compiled.output_of_feature.size() == graph.features.size()
             ? Status()
             : Status::Failed("the model has fewer features than the graph");
}

}  // namespace

int64_t CompiledChain::full_length(int64_t before) const {
  for (const auto* op : bags) before = op->length(before);
  return before;
}

std::vector<std::string> dictionary_lists(const FeatureGraph& graph) {
  std::vector<std::string> names;
  for (const DictionarySpec& dictionary : graph.dictionaries)
    names.push_back("dictionary/" + dictionary.name);
  for (const DictionarySpec& dictionary : graph.dictionaries)
    if (dictionary.min_count > 1) names.push_back("sightings/" + dictionary.name);
  return names;
}

void normalize_weights(std::span<float> weights) {
  double sum = 0.0;
  for (const float weight : weights) sum += weight;
  for (float& weight : weights)
    weight = sum == 0.0 ? 0.0f : static_cast<float>(static_cast<double>(weight) / sum);
}

Result<CompiledGraph> compile(const FeatureGraph& graph, const ModelSpec& model) {
  CompiledGraph compiled;
  compiled.dictionaries = graph.dictionaries;
  compiled.features_of_dictionary.resize(graph.dictionaries.size());
  for (const auto& dictionary : graph.dictionaries) {
    const std::string& name = dictionary.when_full;
    if (name != "error" && name != "clamp" && name != "drop") {
      return Status::Failed("dictionary '" + dictionary.name + "': when_full '" + name + "'");
    }
    compiled.when_full.push_back(name == "error"   ? Dictionary::WhenFull::error
                                 : name == "clamp" ? Dictionary::WhenFull::clamp
                                                   : Dictionary::WhenFull::drop);
    if (dictionary.min_count < 1)
      return Status::Failed("dictionary '" + dictionary.name + "': min_count must be at least 1");
    if (dictionary.min_count > 1)
      compiled.counting.push_back(static_cast<int>(compiled.when_full.size()) - 1);
  }
  for (const auto& chain : graph.dense) {
    RECMILL_ASSIGN_OR_RETURN(auto made, compile_chain(chain, {}));
    if (made.bucket != nullptr || chain.source != Source::dense) {
      return Status::Failed("chain '" + chain.output + "' does not end in dense values");
    }
    compiled.dense_ops_before.push_back(compiled.dense_ops);
    compiled.dense_ops += static_cast<int>(made.dense.size());
    compiled.dense.push_back(std::move(made));
  }
  for (const auto& chain : graph.features) {
    RECMILL_ASSIGN_OR_RETURN(auto made, compile_chain(chain, graph.dictionaries));
    if (chain.source == Source::dense && made.bucket == nullptr) {
      return Status::Failed("chain '" + chain.output + "' does not end in rows");
    }
    if (made.dictionary >= 0) {
      compiled.features_of_dictionary[made.dictionary].push_back(
          static_cast<int>(compiled.features.size()));
    }
    compiled.features.push_back(std::move(made));
  }
  RECMILL_RETURN_IF_ERROR(match_features(graph, model, compiled));
  return compiled;
}

Bag plain_bag(const CompiledChain& chain, const ColumnBatch& batch, int64_t sample) {
  if (chain.chain.source == Source::dense) {
    float value = batch.dense[chain.chain.column_index][sample];
    for (const auto* op : chain.dense) value = op->plain(value);
    return {{chain.bucket->plain(value)}, {1.0f}};
  }
  const IdColumn& column = batch.ids[chain.chain.column_index];
  Bag bag;
  for (int64_t i = column.offsets[sample]; i < column.offsets[sample + 1]; ++i) {
    bag.ids.push_back(column.ids[i]);
    bag.weights.push_back(column.weights.empty() ? 1.0f : column.weights[i]);
  }
  for (const auto* op : chain.bags) bag = op->plain(bag);
  return bag;
}

Status refused_id(const CompiledGraph& graph, int feature, int64_t sample, uint64_t id) {
  const CompiledChain& chain = graph.features[feature];
  const std::string where = "column '" + chain.chain.column + "', sample " +
                            std::to_string(sample) + ": id " +
                            std::to_string(static_cast<int64_t>(id));
  if (chain.dictionary >= 0) {
    const DictionarySpec& dictionary = graph.dictionaries[chain.dictionary];
    return Status::Failed(where + " is new, and the dictionary of table '" + dictionary.name +
                          "' is full: rows = " + std::to_string(dictionary.rows));
  }
  return Status::Failed(where + " is outside the table of feature '" + chain.chain.output +
                        "': rows = " + std::to_string(graph.rows[feature]));
}

}  // namespace recmill::preprocess
