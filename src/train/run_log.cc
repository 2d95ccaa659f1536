// SPDX-License-Identifier: Apache-2.0
#include "train/run_log.h"

#include <fmt/format.h>

namespace recmill::train {
namespace {

// A checkpoint stands between the training line of its iteration and the evaluation after it.
bool stands_before(const Json& line, int64_t iteration) {
  if (!line.is_object() || !line.contains("iteration") || !line.contains("kind")) return false;
  const Json& at = line["iteration"];
  if (!at.is_number_integer()) return false;
  return at.get<int64_t>() < iteration || (at == iteration && line["kind"] == "train");
}

Status drop_lines_after(Files& files, const std::string& path, int64_t iteration) {
  if (!files.exists(path)) return {};
  RECMILL_ASSIGN_OR_RETURN(const std::string text, read_text(files, path));
  std::string kept;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    const std::string line = text.substr(begin, end + 1 - begin);
    if (stands_before(Json::parse(line, nullptr, false), iteration)) kept += line;
  }
  return kept == text ? Status() : write_atomically(files, path, kept);
}

}  // namespace

std::string brief(const metrics::Metrics& metrics) {
  std::string text = fmt::format("log loss {:.5f}", metrics.log_loss);
  if (metrics.auc) text += fmt::format(", AUC {:.5f}", *metrics.auc);
  return text;
}

Json to_json(const metrics::Metrics& metrics) {
  Json json;
  json["log_loss"] = metrics.log_loss;
  if (metrics.auc) json["auc"] = *metrics.auc;
  if (metrics.gauc) {
    json["gauc"] = *metrics.gauc;
    json["gauc_groups"] = metrics.gauc_groups;
  }
  if (metrics.normalized_entropy) json["normalized_entropy"] = *metrics.normalized_entropy;
  if (metrics.calibration) json["calibration"] = *metrics.calibration;
  json["accuracy"] = metrics.accuracy;
  json["click_rate"] = metrics.click_rate;
  json["scored"] = metrics.samples;
  return json;
}

Result<RunLog> RunLog::open(Files& files, const RunFolder& folder, Progress::Style style,
                            int64_t total, int64_t iteration) {
  RECMILL_RETURN_IF_ERROR(drop_lines_after(files, folder.metrics(), iteration));
  RECMILL_ASSIGN_OR_RETURN(auto lines, JsonLines::append_to(files, folder.metrics()));
  RECMILL_ASSIGN_OR_RETURN(auto events, EventFile::create_in(files, folder.events()));
  return RunLog(std::move(lines), std::move(events),
                std::make_unique<Progress>(style, "training", "samples", total));
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

Status RunLog::training(int64_t iteration, int64_t samples, double samples_per_second,
                        double learning_rate_scale, const metrics::Metrics& window) {
  Json values = to_json(window);
  values["samples"] = samples;
  values["samples_per_second"] = samples_per_second;
  values["learning_rate_scale"] = learning_rate_scale;
  return write("train", iteration, values);
}

Status RunLog::evaluation(int64_t iteration, const metrics::Metrics& held_out) {
  progress_->say(fmt::format("iteration {}: evaluation: {}", iteration, brief(held_out)));
  return write("eval", iteration, to_json(held_out));
}

Status RunLog::close() {
  RECMILL_RETURN_IF_ERROR(lines_.close());
  return events_.close();
}

}  // namespace recmill::train
