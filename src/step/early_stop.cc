// SPDX-License-Identifier: Apache-2.0
#include "step/early_stop.h"

namespace recmill::train {

std::optional<double> value_of(const metrics::Metrics& metrics, StopMetric metric) {
  switch (metric) {
    case StopMetric::log_loss:
      return metrics.log_loss;
    case StopMetric::auc:
      return metrics.auc;
    case StopMetric::gauc:
      return metrics.gauc;
    case StopMetric::normalized_entropy:
      return metrics.normalized_entropy;
    case StopMetric::accuracy:
      return metrics.accuracy;
  }
  return std::nullopt;
}

double gain(StopMetric metric, double value, double than) {
  const bool falls = metric == StopMetric::log_loss || metric == StopMetric::normalized_entropy;
  return falls ? than - value : value - than;
}

bool take_if_better(StopMetric metric, std::optional<double> value, int64_t iteration,
                    std::optional<BestEvaluation>& best) {
  if (!value || (best && !(gain(metric, *value, best->value) > 0))) return false;
  best = {*value, iteration};
  return true;
}

bool EarlyStop::after(const EarlyStopOptions& options, int64_t iteration,
                      std::optional<double> value) {
  if (options.patience == 0 || iteration <= counted) return stopped(options);
  counted = iteration;
  if (value && (!best || gain(options.metric, *value, *best) > options.minimum_gain)) {
    best = value;
    without_gain = 0;
    return false;
  }
  ++without_gain;
  return stopped(options);
}

}  // namespace recmill::train
