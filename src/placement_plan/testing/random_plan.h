// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "placement_plan/placement_plan.h"
#include "schema/table_spec.h"

namespace recmill::testing {

/// A plan that check_plan() accepts, a function of its arguments: tables at one device, in a few
/// runs, in many of a row each, with no listed rows, with some or with all; rows with one copy, a
/// few, or one everywhere; columns where a table has enough of them. From three devices on, one of
/// them holds nothing.
PlacementPlan random_plan(std::span<const TableSpec> tables, int devices, uint64_t seed);

}  // namespace recmill::testing
