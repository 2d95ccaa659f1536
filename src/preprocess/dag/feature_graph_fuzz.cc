// SPDX-License-Identifier: Apache-2.0
// A feature graph as JSON: what is taken is written as it was read.
#include "base/json/json.h"
#include "base/testing/fuzz.h"
#include "preprocess/dag/feature_graph.h"

namespace recmill {

std::vector<std::string> fuzz::seeds() {
  preprocess::FeatureGraph graph;
  graph.dense = {{"I1", preprocess::Source::dense, "I1", 0, {{"log", {}}}, false}};
  graph.features = {
      {"C1",
       preprocess::Source::ids,
       "C1",
       0,
       {{"sigrid_hash", Json{{"rows", 10}}}, {"categorify", Json{{"dictionary", "C1"}}}},
       true}};
  graph.dictionaries = {{"C1", 100, "clamp"}};
  return {to_json(graph).dump(), to_json(preprocess::FeatureGraph()).dump()};
}

void fuzz::feed(const std::string& bytes) {
  const Json json = Json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return;
  const auto graph = preprocess::feature_graph_from_json(json);
  if (graph.ok()) RECMILL_CHECK(*preprocess::feature_graph_from_json(to_json(*graph)) == *graph);
}

}  // namespace recmill
