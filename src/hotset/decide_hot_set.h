// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.h"
#include "hotset/hot_problem.h"
#include "hotset_plan/hot_set.h"
#include "stats/access_counter.h"

namespace recmill::hotset {

/// Which rows are hot (FAE, section III-A): those of the tables that are always hot, and of the
/// others those with as many lookups as the cutoff says, which follows from the threshold or is the
/// least whose rows fit; or the hottest that fit, ties by (table, row). A row that was never looked
/// up is not. Pure: equal counts give equal sets. A bad request names hotset.bytes or
/// hotset.threshold, with what is asked for and what there is.
Result<HotSet> decide_hot_set(const HotProblem& problem, const stats::AccessCounter& counts);

}  // namespace recmill::hotset
