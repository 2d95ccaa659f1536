// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hotset/hot_curve.h"

namespace recmill::cli {

struct HotsetPage {
  std::string name;
  int64_t inputs = 0, lookups = 0;
  hotset::HotFigures chosen;
  std::vector<std::pair<int64_t, hotset::HotFigures>> curve;  // by cutoff, ascending
};

/// What each cutoff makes hot (FAE, figure 6).
std::string hotset_page(const HotsetPage& of);

}  // namespace recmill::cli
