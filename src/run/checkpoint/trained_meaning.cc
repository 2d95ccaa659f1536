// SPDX-License-Identifier: Apache-2.0
#include "run/checkpoint/trained_meaning.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/json/json.h"

namespace recmill::train {
namespace {

using preprocess::Chain;
using preprocess::FeatureGraph;

Status differs(const std::string& key, const Json& now, const std::string& whose,
               const std::string& path, const Json& then) {
  return Status::BadRequest(fmt::format("{}: is {}{}, and {} was written with {}", key, now.dump(),
                                        whose, path, then.is_null() ? "none" : then.dump()));
}

/// Ids of one family of formats are read by the same keys; those of another are not compared.
std::string_view family_of(DataFormat format) {
  if (format == DataFormat::criteo_tsv || format == DataFormat::csv) return "text";
  for (const DataFormat one :
       {DataFormat::parquet, DataFormat::arrow_ipc, DataFormat::orc, DataFormat::json_lines})
    if (format == one) return "columnar";
  return name_of(format);
}

/// The same set of cells is the same list.
Json missing_cells(const ColumnSpec& spec) {
  return std::set<std::string>(spec.missing.begin(), spec.missing.end());
}

Json id_reading(const ColumnSpec& spec, bool text) {
  Json column;
  column["id_text"] = name_of(spec.id_text);
  if (text) {
    column["list_separator"] = spec.list_separator;
    column["weight_separator"] = spec.weight_separator;
  }
  column["missing"] = missing_cells(spec);
  if (spec.part != TimePart::none) column["part"] = name_of(spec.part);
  return column;
}

/// How the cells of the run's columns are read, by column.
Json columns_of(const ResolvedRun& run) {
  const DataOptions& data = run.options.data;
  const std::string_view family = family_of(data.format);
  Json columns = Json::object();
  if (family != "text" && family != "columnar") return columns;
  std::map<std::string, const ColumnSpec*> specs;  // none: the file itself says all
  for (const ColumnSpec& spec : data.columns) specs.emplace(spec.name, &spec);
  ColumnSpec criteo;
  criteo.id_text = IdText::hex;
  const bool all_criteo = data.format == DataFormat::criteo_tsv;
  const auto spec_of = [&](const std::string& name) {
    return all_criteo ? &criteo : specs.contains(name) ? specs.at(name) : nullptr;
  };
  for (const std::string& name : run.schema.dense) {
    const ColumnSpec* const spec = spec_of(name);
    if (spec == nullptr) continue;
    columns[name]["missing"] = missing_cells(*spec);
    if (spec->part != TimePart::none) columns[name]["part"] = name_of(spec->part);
  }
  for (const std::string& name : run.schema.ids)
    if (const auto* spec = spec_of(name)) columns[name] = id_reading(*spec, family == "text");
  return columns;
}

Json features_of(const ResolvedRun& run) {
  Json features = Json::object();
  for (const FeatureSpec& feature : run.spec.features) {
    if (feature.same_ids_as >= 0) continue;  // the model's own
    const Chain& chain = run.graph.features[features.size()];
    features[feature.name] = {{"table", run.spec.tables[feature.table].name},
                              {"pooling", chain.normalized ? std::string_view("weighted_mean")
                                                           : name_of(feature.pooling)}};
  }
  return features;
}

Json tables_of(const ResolvedRun& run) {
  Json tables = Json::object();
  for (const TableSpec& table : run.spec.tables)
    tables[table.name] = {{"dim", table.dim}, {"precision", name_of(table.precision)}};
  return tables;
}

/// Options that change what layers compute.
Json model_options(const model::ModelOptions& options) {
  using model::ModelKind;
  Json model;
  model["kind"] = name_of(options.kind);
  const std::pair<const char*, const std::vector<int64_t>*> lists[] = {
      {"bottom", &options.bottom},
      {"top", &options.top},
      {"deep", &options.deep},
      {"over", &options.over},
      {"attention", &options.attention}};
  for (const auto& [key, sizes] : lists)
    if (!sizes->empty()) model[key] = *sizes;
  const bool is_deep_fm = options.kind == ModelKind::deep_fm;
  if (options.kind == ModelKind::tbsm) model["sequence_length"] = options.sequence_length;
  if (is_deep_fm || options.kind == ModelKind::wide_and_deep)
    model["deep_input"] = name_of(options.deep_input);
  if (is_deep_fm) {
    model["first_order"] = name_of(options.first_order);
    model["batch_norm"] = options.batch_norm;
  }
  return model;
}

int place_of(const auto& named, const std::string& name) {
  const auto found = std::ranges::find(named, name, [](const auto& of) { return of.name; });
  return found == named.end() ? -1 : static_cast<int>(found - named.begin());
}

/// Where the configuration says `key` of a feature: in its own entry, or for all of them.
std::string feature_key(const RunOptions& options, const std::string& feature,
                        const std::string& key) {
  const int place = place_of(options.features, feature);
  if (place < 0) return key == "table" || key == "column" ? "features" : "embedding." + key;
  const preprocess::FeatureOptions& own = options.features[place];
  const bool by_default =
      (key == "pooling" && !own.pooling) || (key == "max_length" && !own.max_length) ||
      (key == "missing" && !own.missing) || (key == "missing_id" && !own.missing_id);
  return by_default ? "embedding." + key : fmt::format("features[{}].{}", place, key);
}

std::string table_key(const RunOptions& options, const std::string& table, const std::string& key) {
  const int place = place_of(options.tables, table);
  if (place < 0) return "embedding." + key;
  const preprocess::TableOptions& own = options.tables[place];
  const bool by_default = (key == "rows" && !own.rows) || (key == "mapping" && !own.mapping) ||
                          (key == "out_of_range" && !own.out_of_range) ||
                          (key == "dim" && !own.dim) || (key == "precision" && !own.precision) ||
                          (key == "min_count" && !own.min_count);
  return by_default ? "embedding." + key : fmt::format("tables[{}].{}", place, key);
}

/// Where the configuration says what is at `place` of meaning_of().
std::string meaning_key(const ResolvedRun& run, const std::vector<std::string>& place) {
  if (place[0] == "features") return feature_key(run.options, place[1], place[2]);
  if (place[0] == "tables") return table_key(run.options, place[1], place[2]);
  if (place[0] != "columns") {
    std::string key;
    for (const std::string& part : place) key += (key.empty() ? "" : ".") + part;
    return key;
  }
  const int column = place_of(run.options.data.columns, place[1]);
  return column < 0 ? "data.format" : fmt::format("data.columns[{}].{}", column, place[2]);
}

std::string whose(const std::vector<std::string>& place) {
  if (place[0] == "features") return " (feature '" + place[1] + "')";
  if (place[0] == "tables") return " (table '" + place[1] + "')";
  return place[0] == "columns" ? " (column '" + place[1] + "')" : "";
}

/// Calls see(place, now, then) for each value of `now`, with null where `then` lacks it, until one
/// fails.
using SeeValue =
    std::function<Status(const std::vector<std::string>& place, const Json& now, const Json& then)>;
Status each_value(const Json& now, const Json& then, std::vector<std::string>& place,
                  const SeeValue& see) {
  if (!now.is_object()) return see(place, now, then);
  for (const auto& [key, value] : now.items()) {
    place.push_back(key);
    const bool there = then.is_object() && then.contains(key);
    RECMILL_RETURN_IF_ERROR(each_value(value, there ? then[key] : Json(), place, see));
    place.pop_back();
  }
  return {};
}

Status each_comparable(const ResolvedRun& run, const Json& then, const SeeValue& see) {
  Json now = meaning_of(run);
  const bool other_family =
      then.is_object() && then.contains("read_as") && then["read_as"] != now["read_as"];
  if (other_family) now.erase("columns");
  now.erase("read_as");
  std::vector<std::string> place;
  return each_value(now, then, place, see);
}

/// What a chain does, by the keys of a feature.
Json facts_of(const Chain& chain, const FeatureGraph& graph) {
  Json facts;
  facts["column"] = chain.column;
  facts["weighted"] = chain.weighted;
  facts["max_length"] = 0;
  facts["missing"] = "empty";
  for (const preprocess::OpSpec& op : chain.ops) {
    if (op.op == "first_x") facts["max_length"] = op.parameters->value("x", Json());
    if (op.op == "fill_missing_id") {
      facts["missing"] = "value";
      facts["missing_id"] = op.parameters->value("id", Json());
    }
    if (op.op == "fill_null") facts["fill_value"] = op.parameters->value("value", Json());
    if (op.op == "bucketize") facts["borders"] = op.parameters->value("borders", Json());
    const bool maps = op.op == "sigrid_hash" || op.op == "direct" || op.op == "modulo";
    if (maps) facts["mapping"] = op.op == "sigrid_hash" ? "hash" : op.op;
    if (op.op == "categorify") {
      facts["mapping"] = "dictionary";
      const int place =
          place_of(graph.dictionaries, op.parameters->value("dictionary", std::string()));
      if (place < 0) continue;
      facts["rows"] = graph.dictionaries[place].rows;
      facts["out_of_range"] = graph.dictionaries[place].when_full;
      facts["min_count"] = graph.dictionaries[place].min_count;
    }
    for (const char* parameter : {"rows", "out_of_range", "salt"})
      if (maps && op.parameters->contains(parameter))
        facts[parameter] = (*op.parameters)[parameter];
  }
  return facts;
}

std::string fact_key(const ResolvedRun& run, size_t feature, const std::string& fact) {
  const FeatureSpec* spec = nullptr;
  size_t chain = 0;
  for (const FeatureSpec& one : run.spec.features)
    if (one.same_ids_as < 0 && chain++ == feature) spec = &one;
  if (spec == nullptr) return "features";
  if (fact == "fill_value") return "preprocess.fill_value";
  if (fact == "salt") return feature_key(run.options, spec->name, "table");
  if (fact == "mapping" || fact == "rows" || fact == "out_of_range" || fact == "min_count")
    return table_key(run.options, run.spec.tables[spec->table].name, fact);
  return feature_key(run.options, spec->name, fact);
}

Json names_of(const std::vector<preprocess::OpSpec>& ops) {
  Json names = Json::array();
  for (const preprocess::OpSpec& op : ops) names.push_back(op.op);
  return names;
}

Status compare_dense(const Chain& now, const Chain& then, const std::string& path) {
  const std::string of = " (column '" + now.column + "')";
  const Json ops = names_of(now.ops), ops_then = names_of(then.ops);
  if (ops != ops_then) return differs("preprocess.dense", ops, of, path, ops_then);
  for (size_t i = 0; i < now.ops.size(); ++i) {
    for (const auto& [parameter, value] : now.ops[i].parameters->items()) {
      const Json before = then.ops[i].parameters->value(parameter, Json());
      if (value == before) continue;
      const std::string key = parameter == "value"  ? "fill_value"
                              : parameter == "low"  ? "clamp_low"
                              : parameter == "high" ? "clamp_high"
                                                    : "dense";
      return differs("preprocess." + key, value, of, path, before);
    }
  }
  return {};
}

}  // namespace

Json meaning_of(const ResolvedRun& run) {
  Json meaning;
  meaning["read_as"] = family_of(run.options.data.format);
  meaning["columns"] = columns_of(run);
  meaning["features"] = features_of(run);
  meaning["tables"] = tables_of(run);
  meaning["model"] = model_options(run.options.model);
  meaning["train"] = {{"negative_keep", run.options.train.negative_keep}};
  if (run.options.data.format == DataFormat::behavior_log)
    meaning["data"]["behavior_log"]["sequence_length"] =
        run.options.data.behavior_log.sequence_length;
  return meaning;
}

Status compare_meaning(const ResolvedRun& run, const Json& then, const std::string& path) {
  return each_comparable(
      run, then,
      [&](const std::vector<std::string>& place, const Json& now, const Json& before) -> Status {
        if (before.is_null() || now == before) return {};
        return differs(meaning_key(run, place), now, whose(place), path, before);
      });
}

bool tells_all(const ResolvedRun& run, const Json& then) {
  return each_comparable(run, then,
                         [](const std::vector<std::string>&, const Json&, const Json& before) {
                           return before.is_null() ? Status::Failed("") : Status();
                         })
      .ok();
}

Status compare_graph(const ResolvedRun& run, const Json& json, const std::string& path) {
  const FeatureGraph& now = run.graph;
  const auto another = Status::BadRequest(
      path + ": was written by a run with another graph than this configuration's");
  auto then = preprocess::feature_graph_from_json(json);
  if (!then.ok()) return another;
  if (then->dictionaries.size() == now.dictionaries.size())  // what evaluation does is free
    for (size_t d = 0; d < now.dictionaries.size(); ++d)
      then->dictionaries[d].unseen = now.dictionaries[d].unseen;
  if (*then == now) return {};
  if (then->dense.size() != now.dense.size()) return another;
  for (size_t i = 0; i < now.dense.size(); ++i)
    RECMILL_RETURN_IF_ERROR(compare_dense(now.dense[i], then->dense[i], path));
  const auto outputs = [](const FeatureGraph& graph) {
    Json names = Json::array();
    for (const Chain& chain : graph.features) names.push_back(chain.output);
    return names;
  };
  if (outputs(now) != outputs(*then))
    return differs("features", outputs(now), "", path, outputs(*then));
  for (size_t i = 0; i < now.features.size(); ++i) {
    const Json facts = facts_of(now.features[i], now), before = facts_of(then->features[i], *then);
    for (const auto& [fact, value] : facts.items()) {
      if (before.contains(fact) && before[fact] == value) continue;
      return differs(fact_key(run, i, fact), value, " (feature '" + now.features[i].output + "')",
                     path, before.value(fact, Json()));
    }
  }
  return another;
}

}  // namespace recmill::train
