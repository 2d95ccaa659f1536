// SPDX-License-Identifier: Apache-2.0
#include "step/data/schedule_keeper.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "base/json/json.h"
#include "base/json/json_keys.h"

namespace recmill::train {
namespace {

Result<hotset::Percent> percent_of(const Json& property, const char* key) {
  const std::string text = std::string("property schedule/") + key;
  if (!property.contains(key) || !property[key].is_number())
    return Status::Failed(text + " is no number");
  const auto percent = hotset::Percent::of(property[key].get<double>());
  if (!percent) return Status::Failed(text + " is no percentage");
  return *percent;
}

}  // namespace

Json to_json(const ScheduleProgress& progress) {
  const hotset::ScheduleState& state = progress.state;
  Json json{{"number", state.schedule},       {"done", state.done.value()},
            {"rate", state.rate.value()},     {"decreases", state.decreases},
            {"judged", state.judged},         {"begun_cold", progress.begun.cold},
            {"begun_hot", progress.begun.hot}};
  if (state.last_loss) json["last_loss"] = *state.last_loss;
  return json;
}

Result<ScheduleProgress> schedule_progress_from(const Json& property) {
  if (!property.is_object()) return Status::Failed("property schedule is no object");
  ScheduleProgress progress;
  hotset::ScheduleState& state = progress.state;
  RECMILL_RETURN_IF_ERROR(read_count(property, "number", state.schedule));
  RECMILL_RETURN_IF_ERROR(read_count(property, "decreases", state.decreases));
  RECMILL_RETURN_IF_ERROR(read_count(property, "begun_cold", progress.begun.cold));
  RECMILL_RETURN_IF_ERROR(read_count(property, "begun_hot", progress.begun.hot));
  RECMILL_ASSIGN_OR_RETURN(state.done, percent_of(property, "done"));
  RECMILL_ASSIGN_OR_RETURN(state.rate, percent_of(property, "rate"));
  if (!property.contains("judged") || !property["judged"].is_boolean())
    return Status::Failed("property schedule/judged is neither true nor false");
  state.judged = property["judged"].get<bool>();
  if (!property.contains("last_loss")) return progress;
  if (!property["last_loss"].is_number())
    return Status::Failed("property schedule/last_loss is no number");
  state.last_loss = property["last_loss"].get<double>();
  return progress;
}

Json to_json(const FinishedSchedule& of) {
  Json json{{"schedule", of.schedule}, {"epoch", of.epoch}, {"iteration", of.iteration},
            {"rate", of.rate},         {"cold", of.cold},   {"hot", of.hot}};
  if (of.loss) json["loss"] = *of.loss;
  json["next_rate"] = of.next_rate;
  return json;
}

bool is_before(const Json& line, const ScheduleProgress& progress) {
  if (!line.is_object() || !line.contains("schedule") || !line["schedule"].is_number_integer())
    return false;
  const auto schedule = line["schedule"].get<int64_t>();
  const hotset::ScheduleState& state = progress.state;
  return schedule < state.schedule || (schedule == state.schedule && state.judged);
}

FinishedSchedule ScheduleKeeper::finished(const RankBatch& batch, double rate) const {
  FinishedSchedule of;
  of.schedule = follower_.state().schedule;
  of.epoch = epoch_;
  of.iteration = batch.after.iteration;
  of.rate = rate;
  of.next_rate = follower_.state().rate.value();
  of.cold = follower_.trained().cold - follower_.begun().cold;
  of.hot = follower_.trained().hot - follower_.begun().hot;
  return of;
}

std::optional<FinishedSchedule> ScheduleKeeper::trained(const RankBatch& batch) {
  RECMILL_CHECK(batch.kind.has_value());
  follower_.trained(*batch.kind);
  epoch_ = batch.before.epoch;
  if (adapts_ || !follower_.is_over()) return std::nullopt;
  follower_.finish();
  return finished(batch, follower_.state().rate.value());
}

Result<std::optional<FinishedSchedule>> ScheduleKeeper::scored(
    const RankBatch& batch, const metrics::ScoredSamples& samples) {
  judging_.add(samples);
  if (!batch.last_of_pass) return std::optional<FinishedSchedule>();
  const std::optional<double> loss = judging_.metrics().log_loss;
  judging_.clear();
  const int64_t schedule = follower_.state().schedule;
  if (!loss || !std::isfinite(*loss))
    return Status::Failed(fmt::format(
        "hotset.rate: the evaluation after schedule {} has no loss that is a number, and the rate "
        "follows it; fix the rate, or lower the learning rate",
        schedule));
  const double rate = follower_.state().rate.value();
  follower_.judge(*loss);
  losses_->put(follower_.state());
  FinishedSchedule of = finished(batch, rate);
  of.loss = loss;
  return std::optional(of);
}

}  // namespace recmill::train
