// SPDX-License-Identifier: Apache-2.0
#include "run/lookahead/row_home.h"

#include <utility>

#include "run/lookahead/disk_start.h"
#include "run/lookahead/remote_start.h"
#include "run/lookahead/run_cache.h"
#include "store/cached/ranks/home_ranks.h"
#include "store/tables/table_rows.h"
#include "table/home/embedded_home.h"

namespace recmill::train {

Result<store::CacheHomeRows> make_row_home(const ResolvedRun& run, Communicator& communicator,
                                           ThreadPool& pool, Files& files, HomeStart& start) {
  if (has_servers(run)) return start_at_servers(run, communicator, files, start);
  if (has_rows_elsewhere(run)) return start_on_disk(run, communicator, start);
  const store::HomeRanks homes(run.spec, communicator.ranks());
  RECMILL_ASSIGN_OR_RETURN(
      auto tables, store::create_tables(run.spec, static_cast<uint64_t>(run.options.train.seed),
                                        homes.shares(communicator.rank()), pool));
  return store::CacheHomeRows(table::make_embedded_home(std::move(tables), pool));
}

}  // namespace recmill::train
