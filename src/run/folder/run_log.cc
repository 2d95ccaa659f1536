// SPDX-License-Identifier: Apache-2.0
#include "run/folder/run_log.h"

#include <fmt/format.h>

#include <functional>

#include "base/json/json.h"

namespace recmill::train {
namespace {

constexpr std::string_view kTraining = "train";

// A checkpoint is between the training line of its iteration and the evaluation after it.
bool stands_before(std::string_view kind, int64_t at, int64_t iteration) {
  return at < iteration || (at == iteration && kind == kTraining);
}

bool stands_before(const Json& line, int64_t iteration) {
  if (!line.is_object() || !line.contains("iteration") || !line.contains("kind")) return false;
  if (!line["iteration"].is_number_integer() || !line["kind"].is_string()) return false;
  return stands_before(line["kind"].get<std::string>(), line["iteration"].get<int64_t>(),
                       iteration);
}

/// Rewrites a file of JSON lines with those that `keeps` says it of.
Status keep_lines(Files& files, const std::string& path,
                  const std::function<bool(const Json&)>& keeps) {
  if (!files.exists(path)) return {};
  RECMILL_ASSIGN_OR_RETURN(const std::string text, read_text(files, path));
  std::string kept;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    const std::string line = text.substr(begin, end + 1 - begin);
    const Json values = Json::parse(line, nullptr, false);
    if (keeps(values)) kept += line;
  }
  return kept == text ? Status() : write_atomically(files, path, kept);
}

// Returns the seconds of training that the last line kept tells of.
Result<double> drop_lines_after(Files& files, const std::string& path, int64_t iteration) {
  double seconds = 0.0;
  RECMILL_RETURN_IF_ERROR(keep_lines(files, path, [&](const Json& values) {
    if (!stands_before(values, iteration)) return false;
    if (values.contains("seconds") && values["seconds"].is_number())
      seconds = values["seconds"].get<double>();
    return true;
  }));
  return seconds;
}

Status drop_events_after(Files& files, const std::string& folder, int64_t iteration) {
  return keep_events(files, folder, [&](std::string_view tag, int64_t step) {
    return stands_before(tag.substr(0, tag.find('/')), step, iteration);
  });
}

}  // namespace

std::string brief(const metrics::Metrics& metrics) {
  std::string text = "log loss " + (metrics.log_loss ? fmt::format("{:.5f}", *metrics.log_loss)
                                                     : "of samples without weight");
  if (metrics.auc) text += fmt::format(", AUC {:.5f}", *metrics.auc);
  return text;
}

Json to_json(const metrics::Metrics& metrics) {
  Json json;
  if (metrics.log_loss) json["log_loss"] = *metrics.log_loss;
  if (metrics.auc) json["auc"] = *metrics.auc;
  if (metrics.gauc) {
    json["gauc"] = *metrics.gauc;
    json["gauc_groups"] = metrics.gauc_groups;
  }
  if (metrics.normalized_entropy) json["normalized_entropy"] = *metrics.normalized_entropy;
  if (metrics.calibration) json["calibration"] = *metrics.calibration;
  if (metrics.accuracy) json["accuracy"] = *metrics.accuracy;
  if (metrics.click_rate) json["click_rate"] = *metrics.click_rate;
  json["scored"] = metrics.samples;
  return json;
}

Result<RunLog> RunLog::open(Files& files, const RunFolder& folder, Progress::Style style,
                            int64_t total, int64_t iteration) {
  RECMILL_ASSIGN_OR_RETURN(const double seconds,
                           drop_lines_after(files, folder.metrics(), iteration));
  RECMILL_RETURN_IF_ERROR(drop_events_after(files, folder.events(), iteration));
  RECMILL_ASSIGN_OR_RETURN(auto lines, JsonLines::append_to(files, folder.metrics()));
  RECMILL_ASSIGN_OR_RETURN(auto events, EventFile::create_in(files, folder.events()));
  return RunLog(std::move(lines), std::move(events),
                std::make_unique<Progress>(style, "training", "samples", total), seconds);
}

Status RunLog::write(const std::string& kind, int64_t iteration, const Json& values) {
  Json line;
  line["kind"] = kind;
  line["iteration"] = iteration;
  for (const auto& [name, value] : values.items()) {
    line[name] = value;
    if (value.is_number()) {
      RECMILL_RETURN_IF_ERROR(events_.scalar(kind + "/" + name, iteration, value.get<double>()));
    }
  }
  return lines_.write(line);
}

Status RunLog::training(const TrainingFigures& figures, const metrics::Metrics& window) {
  Json values = to_json(window);
  values["samples"] = figures.samples;
  values["seconds"] = earlier_seconds_ + figures.seconds;
  values["samples_per_second"] = figures.samples_per_second;
  values["learning_rate_scale"] = figures.learning_rate_scale;
  if (figures.kind) values["batch"] = *figures.kind == hotset::BatchKind::hot ? "hot" : "cold";
  if (figures.far) {
    values["far_lookups"] = figures.far->lookups;
    values["far_rows"] = figures.far->rows;
  }
  return write(std::string(kTraining), figures.iteration, values);
}

Status RunLog::evaluation(int64_t iteration, const metrics::Metrics& held_out) {
  progress_->say(fmt::format("iteration {}: evaluation: {}", iteration, brief(held_out)));
  return write("eval", iteration, to_json(held_out));
}

Status RunLog::placement(int64_t iteration, const Json& figures) {
  return write("placement", iteration, figures);
}

Status RunLog::open_schedules(Files& files, const std::string& path,
                              const std::optional<ScheduleProgress>& progress) {
  RECMILL_RETURN_IF_ERROR(keep_lines(
      files, path, [&](const Json& line) { return progress && is_before(line, *progress); }));
  RECMILL_ASSIGN_OR_RETURN(schedules_, JsonLines::append_to(files, path));
  return {};
}

Status RunLog::schedule(const FinishedSchedule& schedule) {
  RECMILL_CHECK(schedules_.has_value());
  const std::string loss = schedule.loss ? fmt::format(": loss {:.5f}", *schedule.loss) : "";
  progress_->say(fmt::format("iteration {}: schedule {}, {:g} %, of {} cold and {} hot batches{}{}",
                             schedule.iteration, schedule.schedule, schedule.rate, schedule.cold,
                             schedule.hot, loss,
                             schedule.next_rate == schedule.rate
                                 ? ""
                                 : fmt::format("; the next has {:g} %", schedule.next_rate)));
  return schedules_->write(to_json(schedule));
}

Status RunLog::close() {
  if (schedules_) RECMILL_RETURN_IF_ERROR(schedules_->close());
  RECMILL_RETURN_IF_ERROR(lines_.close());
  return events_.close();
}

}  // namespace recmill::train
