// SPDX-License-Identifier: Apache-2.0
// What is known about planted data: the marks that a model can be held against (planted.json,
// docs/formats/planted.md).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json/json_fwd.h"
#include "base/status.h"
#include "reader/synthetic/planted_model.h"

namespace recmill::reader {

struct PlantedFigures {
  int64_t seed = 0;
  int64_t rows = 0;       // training
  int64_t eval_rows = 0;  // held out, of which the figures are
  double click_rate = 0;
  double best_auc = 0;       // of the true probabilities
  double best_log_loss = 0;  // of the true probabilities
  double dense_auc = 0;      // of the dense terms of the true logit alone
  double linear_auc = 0;     // of the true logit without its crosses
  int64_t dense_columns = 0;
  std::vector<std::string> id_columns;
  std::vector<int64_t> cardinalities;             // [id columns]
  std::vector<int64_t> learnable_ids;             // [id columns], ids with an effect
  std::vector<std::vector<std::string>> crosses;  // pairs of id columns
  bool operator==(const PlantedFigures&) const = default;
};

/// Area under the ROC curve of scores against labels. A parameter, because metrics are above
/// readers.
using AucFunction =
    std::function<double(std::span<const double> scores, std::span<const float> labels)>;

/// Measured on all held-out rows; AUCs need some of both classes. Holds 28 bytes a held-out row.
PlantedFigures planted_figures(const PlantedModel& model, const AucFunction& auc);

Json to_json(const PlantedFigures& figures);
/// Errors name the file and the key.
Result<PlantedFigures> read_planted_figures(Files& files, const std::string& path);

}  // namespace recmill::reader
