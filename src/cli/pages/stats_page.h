// SPDX-License-Identifier: Apache-2.0
// `recmill stats --html`: what the columns of a data set are like.
#pragma once

#include <functional>
#include <string>

#include "schema/feature_stats.h"

namespace recmill::cli {

/// How ids of a column are written: in hexadecimal digits, or as a decimal number where they are
/// below 2^53 (others are hashes of text).
using IsHex = std::function<bool(const std::string& column)>;

/// One page: a table of all columns, and of the first 200 a picture each of how its values spread
/// and what the label is where it has them. A function of its arguments.
std::string stats_page(const std::string& name, const FeatureStats& stats,
                       const IsHex& is_hex = nullptr);

}  // namespace recmill::cli
