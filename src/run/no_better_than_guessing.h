// SPDX-License-Identifier: Apache-2.0
// What is said of a model that evaluation finds to be no better than guessing.
#pragma once

#include <cstdint>
#include <string>

#include "run/options/run_options.h"
#include "step/metrics/metrics.h"
#include "step/metrics/sample_window.h"

namespace recmill::train {

/// One line where always predicting the click rate does as well on the evaluated rows (normalised
/// entropy above 1), where clicks are ranked no better than by chance (AUC of at most 0.5), or
/// where rows of one class say neither; with what is likely to be the reason, by the options, the
/// iterations trained and the window of training samples, each scored before its update. Else
/// empty.
std::string no_better_than_guessing(const metrics::Metrics& evaluated, const RunOptions& options,
                                    int64_t iterations, const metrics::WindowContents& window);

}  // namespace recmill::train
