// SPDX-License-Identifier: Apache-2.0
#include "reader/synthetic/planted_figures.h"

#include <algorithm>
#include <cmath>

#include "base/json/json.h"
#include "base/json/json_keys.h"
#include "base/json/json_lines.h"

namespace recmill::reader {
namespace {

constexpr int64_t format_version = 1;

/// The only list of the fields in JSON.
template <typename Visitor, typename Figures>
void visit(Visitor&& v, Figures& f) {
  v("seed", f.seed);
  v("rows", f.rows);
  v("eval_rows", f.eval_rows);
  v("click_rate", f.click_rate);
  v("best_auc", f.best_auc);
  v("best_log_loss", f.best_log_loss);
  v("dense_auc", f.dense_auc);
  v("linear_auc", f.linear_auc);
  v("dense_columns", f.dense_columns);
  v("id_columns", f.id_columns);
  v("cardinalities", f.cardinalities);
  v("learnable_ids", f.learnable_ids);
  v("crosses", f.crosses);
}

}  // namespace

PlantedFigures planted_figures(const PlantedModel& model, const AucFunction& auc) {
  const SyntheticOptions& options = model.options();
  PlantedFigures figures;
  figures.seed = options.seed;
  figures.rows = options.rows;
  figures.eval_rows = options.eval_rows;
  figures.dense_columns = static_cast<int64_t>(options.dense.size());
  for (size_t c = 0; c < options.ids.size(); ++c) {
    figures.id_columns.push_back(options.ids[c].name);
    figures.cardinalities.push_back(options.ids[c].cardinality);
    figures.learnable_ids.push_back(model.learnable_ids(c));
  }
  for (const auto& [a, b] : model.crossed_columns()) {
    figures.crosses.push_back({options.ids[a].name, options.ids[b].name});
  }
  std::vector<double> best, dense, linear;
  std::vector<float> labels;
  SyntheticRows rows;
  double log_loss = 0, clicks = 0;
  constexpr int64_t block = 4096;
  for (int64_t at = 0; at < options.eval_rows; at += block) {
    model.generate(options.rows + at, std::min(block, options.eval_rows - at), rows);
    for (int64_t i = 0; i < rows.count; ++i) {
      const LogitParts& part = rows.logits[i];
      best.push_back(part.dense + part.ids + part.crosses);
      dense.push_back(part.dense);
      linear.push_back(part.dense + part.ids);
      labels.push_back(rows.labels[i]);
      const double p = rows.probabilities[i];
      log_loss -= rows.labels[i] > 0 ? std::log(p) : std::log1p(-p);
      clicks += rows.labels[i];
    }
  }
  if (options.eval_rows == 0) return figures;
  figures.click_rate = clicks / static_cast<double>(options.eval_rows);
  figures.best_log_loss = log_loss / static_cast<double>(options.eval_rows);
  figures.best_auc = auc(best, labels);
  figures.dense_auc = auc(dense, labels);
  figures.linear_auc = auc(linear, labels);
  return figures;
}

Json to_json(const PlantedFigures& figures) {
  Json json;
  json["version"] = format_version;
  visit([&](const char* key, const auto& value) { json[key] = value; }, figures);
  return json;
}

Result<PlantedFigures> read_planted_figures(Files& files, const std::string& path) {
  RECMILL_ASSIGN_OR_RETURN(const Json json, read_json(files, path));
  PlantedFigures figures;
  KeyReader keys{json, path, {}, {}};
  keys.version(format_version);
  visit(keys, figures);
  if (!keys.status.ok()) return keys.status;
  return figures;
}

}  // namespace recmill::reader
