// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "run/resolved_run.h"
#include "table/home/recorded_home.h"
#include "table/row_block.h"

namespace recmill::train {

/// How a start of a run found the home of its rows.
struct HomeStart {
  std::string run = {};   // as the home knows it
  bool is_apart = false;  // each rank has a home of its own, whose images are those of its rows
  std::shared_ptr<table::RecordedHome> home = {};  // null: rows end with the ranks
  // Where it has rows of an earlier start, to go on from; else none:
  std::vector<std::byte> record = {};              // pack_state()
  std::shared_ptr<table::RowSnapshot> image = {};  // which it keeps while this lives
};

/// What rank 0 says to all. Collective.
Result<std::string> text_of_rank_0(const std::string& own, Communicator& communicator);

/// Whether all ranks are well; else why not, on each of them. Collective.
Status all_well(const Status& own, Communicator& communicator);

/// What a home shall know the run as that does not go on with an earlier one: another name each
/// time.
std::string new_home_run(const ResolvedRun& run);

}  // namespace recmill::train
