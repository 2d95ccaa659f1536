// SPDX-License-Identifier: Apache-2.0
// Feature statistics as JSON: what is taken is written as it was read.
#include "base/json/json.h"
#include "base/json/json_lines.h"
#include "base/testing/faulty_files.h"
#include "base/testing/fuzz.h"
#include "schema/feature_stats.h"

namespace recmill {

std::vector<std::string> fuzz::seeds() {
  FeatureStats stats;
  stats.samples = 3;
  stats.dense = {{"I1", 1, -2, 2.5, 0.25, 0.5, {{0, 0, 1, 0}, {1, 1.25, 1, 0.5}}}};
  stats.ids.resize(1);
  stats.ids[0].name = "C1";
  stats.ids[0].lengths = {1, 2};
  stats.ids[0].frequent = {{~uint64_t{0}, 2, 1.5}};
  return {to_json(stats).dump(), to_json(FeatureStats()).dump()};
}

void fuzz::feed(const std::string& bytes) {
  FaultyFiles files;
  RECMILL_CHECK(write_atomically(files, "stats.json", bytes).ok());
  const auto json = read_json(files, "stats.json");
  if (!json.ok()) return;
  const auto stats = feature_stats_from_json(*json);
  if (stats.ok()) RECMILL_CHECK(*feature_stats_from_json(to_json(*stats)) == *stats);
}

}  // namespace recmill
