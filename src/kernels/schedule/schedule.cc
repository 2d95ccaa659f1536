// SPDX-License-Identifier: Apache-2.0
#include "kernels/schedule/schedule.h"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace recmill::kernels {

std::string Schedule::name() const {
  std::string text = of;
  for (const auto& [parameter, value] : parameters)
    text += " " + parameter + "=" + std::to_string(value);
  return text;
}

Result<Schedule> parse_schedule(const std::string& text) {
  const auto bad = [&] { return Status::BadRequest("not a schedule: '" + text + "'"); };
  std::istringstream words(text);
  Schedule schedule;
  if (!(words >> schedule.of) || schedule.of.find('=') != std::string::npos) return bad();
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) return bad();
    ParameterValue parameter{word.substr(0, equals)};
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data() + equals + 1, end, parameter.value);
    if (error != std::errc{} || stop != end) return bad();
    schedule.parameters.push_back(std::move(parameter));
  }
  if (schedule.name() != text) return bad();
  return schedule;
}

std::vector<Schedule> candidates(const TemplateSpec& spec, const FeatureShape& shape,
                                 const DeviceSpec& device) {
  std::vector<Schedule> found;
  std::vector<size_t> at(spec.tunables.size(), 0);
  std::vector<int64_t> values(spec.tunables.size());
  while (true) {
    Schedule schedule{spec.name, {}};
    for (size_t p = 0; p < at.size(); ++p) {
      values[p] = spec.tunables[p].values[at[p]];
      schedule.parameters.push_back({spec.tunables[p].name, values[p]});
    }
    if (spec.valid(shape, values, device)) found.push_back(std::move(schedule));
    size_t p = at.size();
    while (p > 0 && ++at[p - 1] == spec.tunables[p - 1].values.size()) at[--p] = 0;
    if (p == 0) return found;
  }
}

Result<std::vector<int64_t>> values_of(const Schedule& schedule, const TemplateSpec& spec) {
  const auto bad = [&](const std::string& why) {
    return Status::BadRequest("schedule '" + schedule.name() + "': " + why);
  };
  if (schedule.of != spec.name) return bad("its template is not '" + spec.name + "'");
  if (schedule.parameters.size() != spec.tunables.size())
    return bad("template '" + spec.name + "' has " + std::to_string(spec.tunables.size()) +
               " parameters");
  std::vector<int64_t> values;
  for (size_t p = 0; p < spec.tunables.size(); ++p) {
    const auto& [name, value] = schedule.parameters[p];
    const Tunable& tunable = spec.tunables[p];
    if (name != tunable.name) return bad("its parameter '" + name + "' must be " + tunable.name);
    if (std::find(tunable.values.begin(), tunable.values.end(), value) == tunable.values.end())
      return bad(name + " cannot be " + std::to_string(value));
    values.push_back(value);
  }
  return values;
}

}  // namespace recmill::kernels
