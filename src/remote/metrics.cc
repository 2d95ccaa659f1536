// SPDX-License-Identifier: Apache-2.0
#include "remote/metrics.h"

#include "base/json/json.h"

namespace recmill::remote {
namespace {

struct Metric {
  const char* key;  // of the status
  const char* name;
  const char* type;
  const char* help;
};

constexpr Metric kMetrics[] = {
    {"touched_rows", "recmill_touched_rows", "gauge", "rows that training has changed"},
    {"bytes", "recmill_row_bytes", "gauge", "bytes of these rows with their index"},
    {"memory", "recmill_memory_bytes", "gauge", "bytes that rows and images may take"},
    {"image_bytes", "recmill_image_bytes", "gauge", "bytes of rows that images keep"},
    {"connections", "recmill_connections", "gauge", "connections that have greeted"},
    {"waiting", "recmill_waiting_fetches", "gauge", "fetches that wait for their fence"},
    {"term", "recmill_term", "gauge", "how often the run has been started"},
    {"recorded", "recmill_recorded_step", "gauge", "step of the last commit, or -1"},
    {"fetches", "recmill_fetches_total", "counter", "fetches"},
    {"fetched_rows", "recmill_fetched_rows_total", "counter", "rows of fetches"},
    {"puts", "recmill_puts_total", "counter", "puts that were carried out"},
    {"put_rows", "recmill_put_rows_total", "counter", "rows of these puts"},
    {"refused", "recmill_refused_messages_total", "counter", "messages that were refused"}};

}  // namespace

std::string metrics_text(const std::string& status) {
  const Json json = Json::parse(status);
  std::string text;
  const auto head = [&](const char* name, const char* type, const char* help) {
    text += std::string("# HELP ") + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
  };
  for (const Metric& metric : kMetrics) {
    if (!json.contains(metric.key)) continue;  // of a run, and there is none
    head(metric.name, metric.type, metric.help);
    text += std::string(metric.name) + " " + json[metric.key].dump() + "\n";
  }
  if (!json.contains("marks")) return text;
  head("recmill_mark", "gauge", "the last step that a rank has put");
  for (size_t rank = 0; rank < json["marks"].size(); ++rank)
    text +=
        "recmill_mark{rank=\"" + std::to_string(rank) + "\"} " + json["marks"][rank].dump() + "\n";
  return text;
}

}  // namespace recmill::remote
