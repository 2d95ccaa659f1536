// SPDX-License-Identifier: Apache-2.0
#include "kernels/tune/tuning.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/json/json.h"
#include "base/json/json_keys.h"

namespace recmill::kernels::tune {
namespace {

/// A sample's cost beside its lookups, in lookups: offsets, the output row.
constexpr double kSampleInLookups = 2.0;

ChosenSchedule chosen_of(const ClassTimes& times, size_t winner) {
  const CandidateTime& candidate = times.candidates[winner];
  const double work = times.lookups + kSampleInLookups * times.samples;
  const double time = candidate.among_all > 0.0 ? candidate.among_all : candidate.nanoseconds;
  const double per_lookup = work > 0.0 ? time / work : 0.0;
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
    if (time.among_all > 0.0) json["among_all"] = time.among_all;
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
    if (json.is_object() && json.contains("among_all")) read("among_all", time.among_all);
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
  if (json.is_object() && json.contains("blocks")) read("blocks", times.value.blocks);
  read("fused_nanoseconds", times.fused_nanoseconds);
  read("shared_nanoseconds", times.shared_nanoseconds);
  read("refined_nanoseconds", times.refined_nanoseconds);
  read("beside_nanoseconds", times.beside_nanoseconds);
  if (json.is_object() && json.contains("spilled_bytes"))
    read("spilled_bytes", times.spilled_bytes);
  RECMILL_RETURN_IF_ERROR(read.status);
  RECMILL_ASSIGN_OR_RETURN(const auto classes, items(json, "classes"));
  for (const Json& item : classes) {
    RECMILL_ASSIGN_OR_RETURN(auto made, class_times_from_json(item));
    times.classes.push_back(std::move(made));
  }
  return times;
}

/// The candidate that has the schedule and may win; candidates.size(): there is none.
size_t place_of(const FamilyTimes& times, const ClassTimes& of, const Schedule& schedule) {
  const auto found = std::ranges::find_if(of.candidates, [&](const CandidateTime& candidate) {
    return candidate.schedule == schedule && may_win(candidate, times.deterministic);
  });
  return found - of.candidates.begin();
}

/// Of a batch on one thread, by the local stage.
double sum_of_times(const FamilyTimes& times, const ValueTimes& at,
                    std::span<const size_t> chosen) {
  double sum = 0.0;
  for (size_t c = 0; c < chosen.size(); ++c)
    sum += at.classes[c].candidates[chosen[c]].nanoseconds *
           static_cast<double>(times.classes[c].features.size());
  return sum;
}

/// Each schedule that some class has, once, in the order of classes.
std::vector<Schedule> schedules_at(const ValueTimes& at) {
  std::set<std::string> names;
  std::vector<Schedule> all;
  for (const ClassTimes& of : at.classes) {
    for (const CandidateTime& candidate : of.candidates) {
      if (names.insert(candidate.schedule.name()).second) all.push_back(candidate.schedule);
    }
  }
  return all;
}

}  // namespace

bool may_win(const CandidateTime& candidate, bool deterministic) {
  return candidate.refused.empty() && !(deterministic && candidate.order == Order::reorders);
}

std::vector<size_t> shared(const FamilyTimes& times, size_t value) {
  const ValueTimes& at = times.values[value];
  const auto standard =
      std::ranges::find_if(times.values, [](const ValueTimes& of) { return of.value.defaults; });
  // Of a class; candidates.size(): it has neither.
  const auto place_or_default = [&](size_t c, const Schedule& schedule) {
    const size_t place = place_of(times, at.classes[c], schedule);
    if (place < at.classes[c].candidates.size() || standard == times.values.end()) return place;
    const auto& defaults = standard->classes[c].candidates;
    return defaults.empty() ? place : place_of(times, at.classes[c], defaults.front().schedule);
  };
  std::vector<size_t> best;
  for (const Schedule& schedule : schedules_at(at)) {
    std::vector<size_t> places;
    for (size_t c = 0; c < at.classes.size(); ++c) {
      const size_t place = place_or_default(c, schedule);
      if (place == at.classes[c].candidates.size()) break;
      places.push_back(place);
    }
    if (places.size() < at.classes.size()) continue;
    if (best.empty() || sum_of_times(times, at, places) < sum_of_times(times, at, best))
      best = std::move(places);
  }
  return best;
}

Result<std::vector<size_t>> winners(const FamilyTimes& times, size_t value) {
  std::vector<size_t> found;
  const auto& classes = times.values[value].classes;
  for (size_t c = 0; c < classes.size(); ++c) {
    const auto& candidates = classes[c].candidates;
    size_t best = candidates.size();
    for (size_t k = 0; k < candidates.size(); ++k) {
      if (!may_win(candidates[k], times.deterministic)) continue;
      if (best == candidates.size() || candidates[k].nanoseconds < candidates[best].nanoseconds)
        best = k;
    }
    if (best == candidates.size())
      return Status::Failed(times.family + ": no right schedule for feature " +
                            std::to_string(times.classes[c].features.front()) + " among " +
                            std::to_string(candidates.size()) +
                            (candidates.empty() ? "" : "; " + candidates.front().refused));
    found.push_back(best);
  }
  return found;
}

Result<std::vector<size_t>> refined(const FamilyTimes& times, size_t value) {
  RECMILL_ASSIGN_OR_RETURN(auto found, winners(times, value));
  for (size_t c = 0; c < found.size(); ++c) {
    const auto& candidates = times.values[value].classes[c].candidates;
    double least = 0.0;
    for (size_t k = 0; k < candidates.size(); ++k) {
      const double time = candidates[k].among_all * candidates[k].nanoseconds;
      if (time <= 0.0 || !may_win(candidates[k], times.deterministic) ||
          (least > 0.0 && time >= least))
        continue;
      least = time;
      found[c] = k;
    }
  }
  return found;
}

Result<double> price_of_order(const FamilyTimes& times, size_t value) {
  const auto sum_of_winners = [&](bool deterministic) -> Result<double> {
    const FamilyTimes any{times.family, times.classes, {times.values[value]}, deterministic};
    RECMILL_ASSIGN_OR_RETURN(const auto found, winners(any, 0));
    return sum_of_times(any, any.values[0], found);
  };
  RECMILL_ASSIGN_OR_RETURN(const double kept, sum_of_winners(true));
  RECMILL_ASSIGN_OR_RETURN(const double free, sum_of_winners(false));
  return free > 0.0 ? kept / free : 1.0;
}

namespace {

/// Fused with the winners or the shared schedule; 0: it was not.
double fused_of(const ValueTimes& at) {
  if (at.fused_nanoseconds <= 0.0 || at.shared_nanoseconds <= 0.0)
    return std::max(at.fused_nanoseconds, at.shared_nanoseconds);
  return std::min(at.fused_nanoseconds, at.shared_nanoseconds);
}

/// The value to be chosen. Null: none was fused.
const ValueTimes* best_of(const FamilyTimes& times) {
  const ValueTimes* best = nullptr;
  for (const ValueTimes& at : times.values) {
    if (fused_of(at) <= 0.0 || is_left_out(times, at)) continue;
    if (best == nullptr || fused_of(at) < fused_of(*best)) best = &at;
  }
  if (best == nullptr || best->beside_nanoseconds <= 0.0) return best;
  double least = best->beside_nanoseconds;
  if (best->refined_nanoseconds > 0.0) least = std::min(least, best->refined_nanoseconds);
  for (const ValueTimes& at : times.values) {
    if (at.value.defaults && !is_left_out(times, at) && at.beside_nanoseconds > 0.0 &&
        at.beside_nanoseconds < least)
      return &at;
  }
  return best;
}

}  // namespace

bool is_left_out(const FamilyTimes& times, const ValueTimes& at) {
  return at.spilled_bytes > 0 && std::ranges::any_of(times.values, [](const ValueTimes& other) {
           return other.spilled_bytes <= 0 && fused_of(other) > 0.0;
         });
}

Result<Choice> choose(const FamilyTimes& times) {
  const ValueTimes* const best = best_of(times);
  if (best == nullptr) return Status::Failed(times.family + ": nothing was measured to the end");
  const size_t value = best - times.values.data();
  std::vector<size_t> chosen;
  if (best->refined_nanoseconds > 0.0 && best->refined_nanoseconds < best->beside_nanoseconds) {
    RECMILL_ASSIGN_OR_RETURN(chosen, refined(times, value));
  } else if (fused_of(*best) == best->fused_nanoseconds) {
    RECMILL_ASSIGN_OR_RETURN(chosen, winners(times, value));
  } else {
    chosen = shared(times, value);
    if (chosen.empty()) return Status::Failed(times.family + ": no schedule is right for all");
  }
  Choice choice{best->value, {}, sum_of_times(times, *best, chosen)};
  for (size_t c = 0; c < chosen.size(); ++c)
    choice.schedules.push_back(chosen_of(best->classes[c], chosen[c]));
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
              {"shared_nanoseconds", at.shared_nanoseconds},
              {"refined_nanoseconds", at.refined_nanoseconds},
              {"beside_nanoseconds", at.beside_nanoseconds},
              {"classes", Json::array()}};
    if (at.value.blocks > 0) item["blocks"] = at.value.blocks;
    if (at.spilled_bytes > 0) item["spilled_bytes"] = at.spilled_bytes;
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
