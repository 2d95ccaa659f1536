// SPDX-License-Identifier: Apache-2.0
// `recmill stats --html`: what the columns of a data set are like.
#pragma once

#include <string>

#include "schema/feature_stats.h"

namespace recmill::cli {

/// One page: a table of all columns, and of the first 200 a picture each of how its values spread
/// and what the label is where it has them. A function of its arguments.
std::string stats_page(const std::string& name, const FeatureStats& stats);

}  // namespace recmill::cli
