// SPDX-License-Identifier: Apache-2.0
#include "kernels/tune/tuning.h"

#include <algorithm>

#include "base/json_keys.h"

namespace recmill::kernels::tune {
namespace {

/// A sample's cost beside its lookups, in lookups: offsets, the output row.
constexpr double kSampleInLookups = 2.0;

ChosenSchedule chosen_of(const ClassTimes& times, size_t winner) {
  const CandidateTime& candidate = times.candidates[winner];
  const double work = times.lookups + kSampleInLookups * times.samples;
  const double per_lookup = work > 0.0 ? candidate.nanoseconds / work : 0.0;
  return {candidate.schedule, per_lookup, kSampleInLookups * per_lookup};
}

Json shape_to_json(const FeatureShape& shape) {
  return {{"rows", shape.rows},
          {"dim", shape.dim},
          {"precision", name_of(shape.precision)},
          {"pooling", name_of(shape.pooling)},
          {"weighted", shape.weighted},
          {"mean", shape.bags.mean},
          {"deviation", shape.bags.deviation},
          {"empty_share", shape.bags.empty_share},
          {"longest", shape.bags.longest}};
}

template <typename Enum>
Status enum_from(const std::string& name, const char* key, Enum& value) {
  for (const auto& [candidate, text] : EnumNames<Enum>::names) {
    if (text != name) continue;
    value = candidate;
    return {};
  }
  return Status::Failed(std::string("tuning times: ") + key + " '" + name + "' is unknown");
}

Result<FeatureClass> class_from_json(const Json& json) {
  FeatureClass made;
  std::string precision, pooling;
  KeyReader read{json, "tuning times", "classes[].", {}};
  read("rows", made.shape.rows);
  read("dim", made.shape.dim);
  read("precision", precision);
  read("pooling", pooling);
  read("weighted", made.shape.weighted);
  read("mean", made.shape.bags.mean);
  read("deviation", made.shape.bags.deviation);
  read("empty_share", made.shape.bags.empty_share);
  read("longest", made.shape.bags.longest);
  read("features", made.features);
  read("kind", made.kind);
  RECMILL_RETURN_IF_ERROR(read.status);
  RECMILL_RETURN_IF_ERROR(enum_from(precision, "precision", made.shape.precision));
  RECMILL_RETURN_IF_ERROR(enum_from(pooling, "pooling", made.shape.pooling));
  return made;
}

Json candidate_to_json(const CandidateTime& time) {
  Json json{{"schedule", time.schedule.name()}};
  if (time.order == Order::reorders) json["reorders"] = true;
  if (time.refused.empty()) {
    json["nanoseconds"] = time.nanoseconds;
    json["spread"] = time.spread;
  } else {
    json["refused"] = time.refused;
  }
  return json;
}

Result<CandidateTime> candidate_from_json(const Json& json) {
  CandidateTime time;
  std::string schedule;
  KeyReader read{json, "tuning times", "candidates[].", {}};
  read("schedule", schedule);
  if (json.is_object() && json.contains("reorders")) {
    bool reorders = false;
    read("reorders", reorders);
    if (reorders) time.order = Order::reorders;
  }
  if (json.is_object() && json.contains("refused")) {
    read("refused", time.refused);
  } else {
    read("nanoseconds", time.nanoseconds);
    read("spread", time.spread);
  }
  RECMILL_RETURN_IF_ERROR(read.status);
  RECMILL_ASSIGN_OR_RETURN(time.schedule, parse_schedule(schedule));
  return time;
}

/// The items of the array `key`; none where it is no array, with an error.
Result<std::vector<Json>> items(const Json& json, const char* key) {
  if (!json.is_object() || !json.contains(key) || !json[key].is_array())
    return Status::Failed(std::string("tuning times: no list ") + key);
  return std::vector<Json>(json[key].begin(), json[key].end());
}

Result<ClassTimes> class_times_from_json(const Json& json) {
  ClassTimes times;
  KeyReader read{json, "tuning times", "values[].classes[].", {}};
  read("lookups", times.lookups);
  read("samples", times.samples);
  read("bytes", times.bytes);
  RECMILL_RETURN_IF_ERROR(read.status);
  RECMILL_ASSIGN_OR_RETURN(const auto candidates, items(json, "candidates"));
  for (const Json& item : candidates) {
    RECMILL_ASSIGN_OR_RETURN(auto candidate, candidate_from_json(item));
    times.candidates.push_back(std::move(candidate));
  }
  return times;
}

Result<ValueTimes> value_from_json(const Json& json) {
  ValueTimes times;
  KeyReader read{json, "tuning times", "values[].", {}};
  read("tile", times.value.tile);
  read("l2_bytes", times.value.l2_bytes);
  read("defaults", times.value.defaults);
  read("fused_nanoseconds", times.fused_nanoseconds);
  RECMILL_RETURN_IF_ERROR(read.status);
  RECMILL_ASSIGN_OR_RETURN(const auto classes, items(json, "classes"));
  for (const Json& item : classes) {
    RECMILL_ASSIGN_OR_RETURN(auto made, class_times_from_json(item));
    times.classes.push_back(std::move(made));
  }
  return times;
}

}  // namespace

Result<std::vector<size_t>> winners(const FamilyTimes& times, size_t value) {
  std::vector<size_t> found;
  const auto& classes = times.values[value].classes;
  for (size_t c = 0; c < classes.size(); ++c) {
    const auto& candidates = classes[c].candidates;
    size_t best = candidates.size();
    for (size_t k = 0; k < candidates.size(); ++k) {
      if (!candidates[k].refused.empty()) continue;
      if (times.deterministic && candidates[k].order == Order::reorders) continue;
      if (best == candidates.size() || candidates[k].nanoseconds < candidates[best].nanoseconds)
        best = k;
    }
    if (best == candidates.size())
      return Status::Failed(times.family + ": no right schedule for feature " +
                            std::to_string(times.classes[c].features.front()));
    found.push_back(best);
  }
  return found;
}

Result<double> price_of_order(const FamilyTimes& times, size_t value) {
  const auto sum_of_winners = [&](bool deterministic) -> Result<double> {
    const FamilyTimes any{times.family, times.classes, {times.values[value]}, deterministic};
    RECMILL_ASSIGN_OR_RETURN(const auto found, winners(any, 0));
    double sum = 0.0;
    for (size_t c = 0; c < found.size(); ++c)
      sum += any.values[0].classes[c].candidates[found[c]].nanoseconds *
             static_cast<double>(times.classes[c].features.size());
    return sum;
  };
  RECMILL_ASSIGN_OR_RETURN(const double kept, sum_of_winners(true));
  RECMILL_ASSIGN_OR_RETURN(const double free, sum_of_winners(false));
  return free > 0.0 ? kept / free : 1.0;
}

Result<Choice> choose(const FamilyTimes& times) {
  size_t best = times.values.size();
  for (size_t v = 0; v < times.values.size(); ++v) {
    const double fused = times.values[v].fused_nanoseconds;
    if (fused > 0.0 &&
        (best == times.values.size() || fused < times.values[best].fused_nanoseconds))
      best = v;
  }
  if (best == times.values.size())
    return Status::Failed(times.family + ": nothing was measured to the end");
  RECMILL_ASSIGN_OR_RETURN(const auto chosen, winners(times, best));
  const ValueTimes& at = times.values[best];
  Choice choice{at.value, {}, 0.0};
  for (size_t c = 0; c < chosen.size(); ++c) {
    choice.schedules.push_back(chosen_of(at.classes[c], chosen[c]));
    choice.predicted_nanoseconds += at.classes[c].candidates[chosen[c]].nanoseconds *
                                    static_cast<double>(times.classes[c].features.size());
  }
  return choice;
}

Json to_json(const FamilyTimes& times) {
  Json json{{"family", times.family},
            {"deterministic", times.deterministic},
            {"classes", Json::array()},
            {"values", Json::array()}};
  for (const FeatureClass& of : times.classes) {
    Json item = shape_to_json(of.shape);
    item["features"] = of.features;
    item["kind"] = of.kind;
    json["classes"].push_back(std::move(item));
  }
  for (const ValueTimes& at : times.values) {
    Json item{{"tile", at.value.tile},
              {"l2_bytes", at.value.l2_bytes},
              {"defaults", at.value.defaults},
              {"fused_nanoseconds", at.fused_nanoseconds},
              {"classes", Json::array()}};
    for (const ClassTimes& of : at.classes) {
      Json inner{{"lookups", of.lookups},
                 {"samples", of.samples},
                 {"bytes", of.bytes},
                 {"candidates", Json::array()}};
      for (const CandidateTime& time : of.candidates)
        inner["candidates"].push_back(candidate_to_json(time));
      item["classes"].push_back(std::move(inner));
    }
    json["values"].push_back(std::move(item));
  }
  return json;
}

Result<FamilyTimes> family_times_from_json(const Json& json) {
  FamilyTimes times;
  KeyReader read{json, "tuning times", "", {}};
  read("family", times.family);
  read("deterministic", times.deterministic);
  RECMILL_RETURN_IF_ERROR(read.status);
  RECMILL_ASSIGN_OR_RETURN(const auto classes, items(json, "classes"));
  for (const Json& item : classes) {
    RECMILL_ASSIGN_OR_RETURN(auto made, class_from_json(item));
    if (made.features.empty()) return Status::Failed("tuning times: a class without a feature");
    times.classes.push_back(std::move(made));
  }
  RECMILL_ASSIGN_OR_RETURN(const auto values, items(json, "values"));
  for (const Json& item : values) {
    RECMILL_ASSIGN_OR_RETURN(auto made, value_from_json(item));
    if (made.classes.size() != times.classes.size())
      return Status::Failed("tuning times: a value does not have all classes");
    times.values.push_back(std::move(made));
  }
  return times;
}

}  // namespace recmill::kernels::tune
