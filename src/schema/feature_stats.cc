// SPDX-License-Identifier: Apache-2.0
#include "schema/feature_stats.h"

#include "base/json/json.h"
#include "base/json/json_keys.h"

namespace recmill {

// Found by the templates of JSON and of json_keys.h; lists of four and of three numbers.
static void to_json(Json& json, const ValueBucket& bucket) {
  json = {bucket.from, bucket.to, bucket.cells, bucket.labels};
}
static void to_json(Json& json, const FrequentId& id) {
  json = {id.id, id.lookups, id.labels};
}
static bool read_value(const Json& json, ValueBucket& bucket) {
  return json.is_array() && json.size() == 4 && read_value(json[0], bucket.from) &&
         read_value(json[1], bucket.to) && read_value(json[2], bucket.cells) &&
         read_value(json[3], bucket.labels);
}
static bool read_value(const Json& json, FrequentId& id) {
  if (!json.is_array() || json.size() != 3 || !json[0].is_number_unsigned()) return false;
  id.id = json[0].get<uint64_t>();
  return read_value(json[1], id.lookups) && read_value(json[2], id.labels);
}

namespace {

constexpr int64_t format_version = 2;
constexpr char kSource[] = "feature stats";  // begins each error

// The only lists of the fields in JSON.
template <typename Visitor, typename Stats>
void visit_dense(Visitor&& v, Stats& s) {
  v("name", s.name);
  v("missing", s.missing);
  v("minimum", s.minimum);
  v("maximum", s.maximum);
  v("mean", s.mean);
  v("missing_labels", s.missing_labels);
  v("buckets", s.buckets);
}
template <typename Visitor, typename Stats>
void visit_ids(Visitor&& v, Stats& s) {
  v("name", s.name);
  v("missing", s.missing);
  v("missing_labels", s.missing_labels);
  v("lookups", s.lookups);
  v("longest", s.longest);
  v("lengths", s.lengths);
  v("exact", s.exact);
  v("cardinality", s.cardinality);
  v("undercount", s.undercount);
  v("top_1_percent", s.top_1_percent);
  v("top_10_percent", s.top_10_percent);
  v("zipf", s.zipf);
  v("frequent", s.frequent);
  v("table_rows", s.table_rows);
  v("expected_collisions", s.expected_collisions);
  v("observed_collisions", s.observed_collisions);
}

template <typename Column, typename Visit>
Status read_columns(const Json& json, const char* key, std::vector<Column>& columns,
                    const Visit& visit) {
  if (!json.contains(key) || !json[key].is_array()) {
    return Status::Failed(std::string(kSource) + ": no list " + key);
  }
  for (size_t i = 0; i < json[key].size(); ++i) {
    KeyReader reader{json[key][i], kSource, std::string(key) + "[" + std::to_string(i) + "].", {}};
    visit(reader, columns.emplace_back());
    RECMILL_RETURN_IF_ERROR(reader.status);
  }
  return {};
}

}  // namespace

Json to_json(const FeatureStats& stats) {
  Json json;
  json["version"] = format_version;
  json["samples"] = stats.samples;
  json["label_mean"] = stats.label_mean;
  json["dense"] = Json::array();
  json["ids"] = Json::array();
  for (const DenseColumnStats& column : stats.dense) {
    Json& object = json["dense"].emplace_back();
    visit_dense([&](const char* key, const auto& value) { object[key] = value; }, column);
  }
  for (const IdColumnStats& column : stats.ids) {
    Json& object = json["ids"].emplace_back();
    visit_ids([&](const char* key, const auto& value) { object[key] = value; }, column);
  }
  return json;
}

Result<FeatureStats> feature_stats_from_json(const Json& json) {
  FeatureStats stats;
  KeyReader reader{json, kSource, "", {}};
  reader.version(format_version);
  reader("samples", stats.samples);
  reader("label_mean", stats.label_mean);
  RECMILL_RETURN_IF_ERROR(reader.status);
  RECMILL_RETURN_IF_ERROR(
      read_columns(json, "dense", stats.dense, [](auto& v, auto& s) { visit_dense(v, s); }));
  RECMILL_RETURN_IF_ERROR(
      read_columns(json, "ids", stats.ids, [](auto& v, auto& s) { visit_ids(v, s); }));
  return stats;
}

}  // namespace recmill
