// SPDX-License-Identifier: Apache-2.0
#include "run/no_better_than_guessing.h"

#include <fmt/format.h>

#include <span>
#include <vector>

namespace recmill::train {
namespace {

using metrics::Metrics;

constexpr int64_t kFewIterations = 300;
constexpr double kRise = 1.02;      // of the log loss, from the older samples to the newer
constexpr double kFarBetter = 0.1;  // of AUC or normalised entropy, on training rows

Metrics measure_part(const metrics::WindowContents& window, size_t begin, size_t end) {
  const auto part = [&]<typename T>(const std::vector<T>& values) {
    return values.empty() ? std::span<const T>() : std::span(values).subspan(begin, end - begin);
  };
  return metrics::measure({part(window.logits), part(window.labels), part(window.weights), {}});
}

// Labels between 0 and 1 may define the first alone.
std::string figures(const Metrics& metrics) {
  std::string text;
  if (metrics.normalized_entropy)
    text = fmt::format("normalised entropy {:.4g}", *metrics.normalized_entropy);
  if (metrics.auc) text += fmt::format("{}AUC {:.4g}", text.empty() ? "" : ", ", *metrics.auc);
  return text;
}

bool is_far_better(const Metrics& trained, const Metrics& evaluated) {
  const auto gains = [](const std::optional<double>& more, const std::optional<double>& less) {
    return more && less && *more - *less > kFarBetter;
  };
  return gains(trained.auc, evaluated.auc) ||
         gains(evaluated.normalized_entropy, trained.normalized_entropy);
}

std::vector<std::string> reasons(const Metrics& evaluated, const RunOptions& options,
                                 int64_t iterations, const metrics::WindowContents& window) {
  const size_t samples = window.logits.size();
  const Metrics older = measure_part(window, 0, samples / 2);
  const Metrics newer = measure_part(window, samples / 2, samples);
  const std::string rates =
      fmt::format("optimizer.learning_rate ({:g}) and embedding.optimizer.learning_rate ({:g})",
                  options.optimizer.learning_rate, options.embedding.optimizer.learning_rate);
  std::vector<std::string> found;
  if (iterations < kFewIterations)
    found.push_back(
        fmt::format("few steps ({}): lower train.batch_size ({}) or raise train.epochs ({})",
                    iterations, options.train.batch_size, options.train.epochs));
  if (older.log_loss && newer.log_loss && *newer.log_loss > kRise * *older.log_loss)
    found.push_back(fmt::format("the training loss rose from {:.4g} to {:.4g}: lower {}",
                                *older.log_loss, *newer.log_loss, rates));
  else if (newer.normalized_entropy.value_or(0) > 1)
    found.push_back(fmt::format("training rows are predicted no better ({}): change {}",
                                figures(newer), rates));
  if (newer.normalized_entropy.value_or(0) <= 1 && is_far_better(newer, evaluated))
    found.push_back(fmt::format(
        "training rows are predicted far better ({}): a column that tells their label and not that "
        "of others (a leak), or evaluation rows of another kind{}",
        figures(newer), options.train.epochs > 1 ? ", or too many train.epochs" : ""));
  if (found.empty())
    found.push_back("the columns tell little of the label, or evaluation rows are of another kind");
  return found;
}

}  // namespace

std::string no_better_than_guessing(const Metrics& evaluated, const RunOptions& options,
                                    int64_t iterations, const metrics::WindowContents& window) {
  if (!evaluated.click_rate)
    return "no evaluated row has a weight: nothing says how good the model is";
  if (!evaluated.auc && !evaluated.normalized_entropy)
    return fmt::format(
        "the {} evaluated rows are of one class (click rate {:g}): AUC and normalised entropy are "
        "not defined, and nothing says whether the model is better than guessing",
        evaluated.samples, *evaluated.click_rate);
  if (evaluated.normalized_entropy.value_or(0) <= 1 && evaluated.auc.value_or(1) > 0.5) return "";
  std::string likely;
  for (const std::string& reason : reasons(evaluated, options, iterations, window))
    likely += (likely.empty() ? "" : "; ") + reason;
  return fmt::format(
      "the model is no better than guessing: {} (always predicting the click rate, {:.4g}, has 1 "
      "and 0.5); likely: {}",
      figures(evaluated), *evaluated.click_rate, likely);
}

}  // namespace recmill::train
