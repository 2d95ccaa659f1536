// SPDX-License-Identifier: Apache-2.0
// The folder of a run's checkpoints: which is the newest, and which may go.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "checkpoint/reader.h"

namespace recmill::checkpoint {

struct Newest {
  std::unique_ptr<Reader> reader;    // null: there is no whole checkpoint
  std::vector<std::string> damaged;  // why newer ones were passed over, one line each
};

/// The whole checkpoint with the highest step. A folder that is not there holds none.
Result<Newest> open_newest(Files& files, const std::string& folder);

/// Steps of the checkpoints that are there by name, whole or not, ascending.
Result<std::vector<int64_t>> list_steps(Files& files, const std::string& folder);

/// Deletes what writers left that did not finish; none may be at work.
Status remove_leftovers(Files& files, const std::string& folder);

/// Deletes all but the newest `keep` >= 1 whole checkpoints, and leftovers of writers (none may be
/// at work). Those that are damaged count for nothing, and go when they are older than the newest
/// whole one; that one is never touched.
Status keep_last(Files& files, const std::string& folder, int64_t keep);

}  // namespace recmill::checkpoint
