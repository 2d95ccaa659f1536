// SPDX-License-Identifier: Apache-2.0
// How ranks bring rows and gradients to each other.
#pragma once

#include "schema/copy_reduce.h"

namespace recmill::store {

struct ShardedOptions {
  /// Each distinct row is fetched once a rank and batch, and one sum of its gradients sent back;
  /// else once for each lookup. Of rows with copies always sums are sent.
  bool dedup_fetch = true;
  CopyReduce reduce = CopyReduce::automatic;
  /// One round of messages fetches the rows of all tables; else one a table.
  bool one_call = true;
  /// Rows that this rank holds are read while others are on their way; else once they are here.
  bool overlap = true;
  /// Ranks of one host read each other's rows where they are (HostRows), but for those whose
  /// columns are split, and messages of gradients too (RowExchange); else these travel as between
  /// hosts.
  bool share_rows = true;
  /// What a batch of hot inputs looks up (StepPlan::all_hot) has a copy on every rank: nobody asks
  /// for rows then.
  bool hot_rows_everywhere = false;
};

}  // namespace recmill::store
