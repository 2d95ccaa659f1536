// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/status.h"
#include "placement/problem.h"

namespace recmill::placement {

/// Bytes of all devices together.
double memory_of_devices(const Problem& problem);

/// Of memory_budgets(): what a device may take more than its part where no copies are wanted, so
/// that partitions, which are no fractions, can be placed.
constexpr double kBalanceSlack = 0.01;

/// Bytes that rows and their copies may take of each device [devices]: a part of (1 + extra) copies
/// of all rows in proportion to its memory, and never more than that. Fails where one copy of every
/// row does not fit on all devices together, naming by how much and the largest table.
Result<std::vector<double>> memory_budgets(const Problem& problem, double extra);

}  // namespace recmill::placement
