// SPDX-License-Identifier: Apache-2.0
// write_metric_cases: one line of JSON for each seeded case of metrics, with what is measured of
// it, for bench/rivals/scikit_metrics.py.
#include <cstdio>

#include "base/json/json.h"
#include "step/metrics/testing/metric_cases.h"

int main() {
  using namespace recmill;
  using namespace recmill::train::metrics;
  for (uint64_t number = 0; number < kMetricCases; ++number) {
    const MetricCase drawn = metric_case(number);
    const Metrics measured = measure(drawn.view());
    Json line{{"logits", drawn.logits}, {"labels", drawn.labels}};
    std::vector<double> weights(drawn.weights.begin(), drawn.weights.end());  // exact as text
    line["weights"] = weights.empty() ? Json() : Json(weights);
    line["auc"] = measured.auc ? Json(*measured.auc) : Json();
    line["log_loss"] = measured.log_loss ? Json(*measured.log_loss) : Json();
    std::puts(line.dump().c_str());
  }
}
