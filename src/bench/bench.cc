// SPDX-License-Identifier: Apache-2.0
#include "bench/bench.h"

#include <algorithm>
#include <cstdio>

#include "base/json/json.h"
#include "bench/machine.h"

namespace recmill::bench {

bool BenchOptions::wants(const std::string& name) const {
  return cases.empty() || std::find(cases.begin(), cases.end(), name) != cases.end();
}

Json to_json(const BenchLine& line, const BenchOptions& options) {
  const auto or_null = [](double value) { return value == 0.0 ? Json() : Json(value); };
  Json json;
  json["bench"] = line.bench;
  json["case"] = line.name;
  json["metric"] = line.metric;
  json["value"] = line.value;
  json["unit"] = line.unit;
  json["rival"] = line.rival.empty() ? Json() : Json(line.rival);
  json["ratio"] = or_null(line.ratio.ratio);
  json["spread"] = or_null(line.ratio.spread);
  json["limit"] = or_null(line.limit);
  json["of_limit"] = or_null(line.of_limit);
  json["machine"] = machine_name();
  json["commit"] = options.commit;
  if (!line.device.empty()) json["device"] = line.device;
  if (line.core_to_core_ns > 0.0) json["core_to_core_ns"] = line.core_to_core_ns;
  if (line.foreign_load >= AlternationOptions{}.quiet_load)
    json["foreign_load"] = line.foreign_load;
  return json;
}

}  // namespace recmill::bench
