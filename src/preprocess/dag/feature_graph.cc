// SPDX-License-Identifier: Apache-2.0
#include "preprocess/dag/feature_graph.h"

#include "base/json/json.h"

namespace recmill::preprocess {
namespace {

constexpr int64_t kVersion = 1;

Json chains_to_json(const std::vector<Chain>& chains) {
  Json list = Json::array();
  for (const auto& chain : chains) {
    Json ops = Json::array();
    for (const auto& op : chain.ops) ops.push_back({{"op", op.op}, {"parameters", *op.parameters}});
    list.push_back({{"output", chain.output},
                    {"source", chain.source == Source::dense ? "dense" : "ids"},
                    {"column", chain.column},
                    {"column_index", chain.column_index},
                    {"weighted", chain.weighted},
                    {"ops", std::move(ops)}});
    if (chain.normalized) list.back()["normalized"] = true;
  }
  return list;
}

/// Reads one field; an error names the key.
template <typename T>
Status get(const Json& object, const char* key, T& value) {
  if (!object.is_object() || !object.contains(key)) {
    return Status::Failed(std::string("key '") + key + "' is missing");
  }
  const Json& field = object[key];
  bool fits = false;
  if constexpr (std::is_same_v<T, bool>) {
    fits = field.is_boolean();
  } else if constexpr (std::is_same_v<T, std::string>) {
    fits = field.is_string();
  } else if constexpr (std::is_integral_v<T>) {
    fits = field.is_number_integer();
  } else {
    fits = true;
  }
  if (!fits) return Status::Failed(std::string("key '") + key + "' has the wrong type");
  value = field.get<T>();
  return {};
}

/// The same of a key that may be missing.
template <typename T>
Status get_optional(const Json& object, const char* key, T& value) {
  return object.is_object() && object.contains(key) ? get(object, key, value) : Status();
}

Status get_list(const Json& object, const char* key, Json& list) {
  RECMILL_RETURN_IF_ERROR(get(object, key, list));
  return list.is_array() ? Status() : Status::Failed(std::string("key '") + key + "' is no list");
}

Result<Chain> chain_from_json(const Json& json) {
  Chain chain;
  std::string source;
  Json ops;
  RECMILL_RETURN_IF_ERROR(get(json, "output", chain.output));
  RECMILL_RETURN_IF_ERROR(get(json, "source", source));
  RECMILL_RETURN_IF_ERROR(get(json, "column", chain.column));
  RECMILL_RETURN_IF_ERROR(get(json, "column_index", chain.column_index));
  RECMILL_RETURN_IF_ERROR(get(json, "weighted", chain.weighted));
  RECMILL_RETURN_IF_ERROR(get_optional(json, "normalized", chain.normalized));
  RECMILL_RETURN_IF_ERROR(get_list(json, "ops", ops));
  if (source != "dense" && source != "ids") return Status::Failed("source '" + source + "'");
  chain.source = source == "dense" ? Source::dense : Source::ids;
  for (const Json& op : ops) {
    OpSpec spec;
    RECMILL_RETURN_IF_ERROR(get(op, "op", spec.op));
    RECMILL_RETURN_IF_ERROR(get(op, "parameters", *spec.parameters));
    chain.ops.push_back(std::move(spec));
  }
  return chain;
}

Status chains_from_json(const Json& json, const char* key, std::vector<Chain>& chains) {
  Json list;
  RECMILL_RETURN_IF_ERROR(get_list(json, key, list));
  for (size_t i = 0; i < list.size(); ++i) {
    auto chain = chain_from_json(list[i]);
    if (!chain.ok()) return chain.status().at(std::string(key) + "[" + std::to_string(i) + "]");
    chains.push_back(*std::move(chain));
  }
  return {};
}

Result<FeatureGraph> read_graph(const Json& json) {
  FeatureGraph graph;
  int64_t version = 0;
  Json dictionaries;
  RECMILL_RETURN_IF_ERROR(get(json, "version", version));
  if (version != kVersion) return Status::Failed("version " + std::to_string(version));
  RECMILL_RETURN_IF_ERROR(chains_from_json(json, "dense", graph.dense));
  RECMILL_RETURN_IF_ERROR(chains_from_json(json, "features", graph.features));
  RECMILL_RETURN_IF_ERROR(get_list(json, "dictionaries", dictionaries));
  for (const Json& entry : dictionaries) {
    DictionarySpec dictionary;
    RECMILL_RETURN_IF_ERROR(get(entry, "name", dictionary.name));
    RECMILL_RETURN_IF_ERROR(get(entry, "rows", dictionary.rows));
    RECMILL_RETURN_IF_ERROR(get(entry, "when_full", dictionary.when_full));
    RECMILL_RETURN_IF_ERROR(get_optional(entry, "min_count", dictionary.min_count));
    RECMILL_RETURN_IF_ERROR(get_optional(entry, "unseen", dictionary.unseen));
    graph.dictionaries.push_back(std::move(dictionary));
  }
  return graph;
}

}  // namespace

Json to_json(const FeatureGraph& graph) {
  Json dictionaries = Json::array();
  for (const auto& entry : graph.dictionaries) {
    dictionaries.push_back(
        {{"name", entry.name}, {"rows", entry.rows}, {"when_full", entry.when_full}});
    if (entry.min_count != 1) dictionaries.back()["min_count"] = entry.min_count;
    if (entry.unseen != "row") dictionaries.back()["unseen"] = entry.unseen;
  }
  return {{"version", kVersion},
          {"dense", chains_to_json(graph.dense)},
          {"features", chains_to_json(graph.features)},
          {"dictionaries", std::move(dictionaries)}};
}

Result<FeatureGraph> feature_graph_from_json(const Json& json) {
  auto graph = read_graph(json);
  return graph.ok() ? graph : graph.status().at("feature graph");
}

}  // namespace recmill::preprocess
