// SPDX-License-Identifier: Apache-2.0
// Rows from where one placement plan has them to where another one does.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "device/thread_pool.h"
#include "store/sharded/host_rows.h"
#include "table/embedding_table.h"

namespace recmill::store {

/// Between ranks, over all of them: rows, or pieces of their columns, and their bytes on the wire.
struct MigratedRows {
  int64_t rows = 0, bytes = 0;
};

/// What a rank holds by a plan: its shares [tables], and where it shares rows, or null.
struct HeldRows {
  std::vector<table::EmbeddingTable>& tables;
  HostRows* host = nullptr;
};

/// Collective. Brings weights and state of all rows from `from` [tables], this rank's shares by the
/// plan that was, to `to`, those by the plan to come, which have no room yet. Shares are whole, by
/// columns, or by maps. Each rank takes a row from where it fetched it: most it has. Some megabytes
/// of rows travel at a time, and of each table the old share is freed, unless `keeps` is set, when
/// the new one is full: a rank needs room for its rows, the new share of one table (or those of all
/// that are smaller than a huge page), and what travels.
Result<MigratedRows> move_rows(HeldRows from, bool keeps, HeldRows to, Communicator& communicator,
                               ThreadPool& pool);

}  // namespace recmill::store
