// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "remote/row_client.h"
#include "table/embedding_table.h"

namespace recmill::remote::testing {

/// Of a run of some writers that begins anew, with the seed and the specs of tables.
inline RowClientOptions options_of(const std::vector<table::EmbeddingTable>& tables, int writers,
                                   int servers) {
  RowClientOptions options;
  options.greeting.run = "run";
  options.greeting.ranks = writers;
  options.greeting.servers = servers;
  options.greeting.seed = tables.front().seed();
  for (const auto& table : tables) options.greeting.tables.push_back(table.spec());
  return options;
}

}  // namespace recmill::remote::testing
