// SPDX-License-Identifier: Apache-2.0
// The folder of a run's checkpoints: which is the newest, which is the best, and which may go.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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

/// The step that is marked as the best, which may be gone; none is.
Result<std::optional<int64_t>> best_step(Files& files, const std::string& folder);
/// After a crash the mark is the old one or the new one.
Status mark_best(Files& files, const std::string& folder, int64_t step);
Status unmark_best(Files& files, const std::string& folder);

/// Which checkpoint of a run is wanted.
enum class Which { best_or_newest, best, newest };

struct Chosen {
  std::unique_ptr<Reader> reader;
  std::string which;                 // "best" or "newest"; empty: neither was asked for
  std::vector<std::string> damaged;  // as in Newest
};

/// The one that is wanted: the best where one is marked and else the newest, or one of them alone.
/// A bad request where it is not there, whole.
Result<Chosen> open_wanted(Files& files, const std::string& folder, Which which);

/// Steps of the checkpoints that are there by name, whole or not, ascending.
Result<std::vector<int64_t>> list_steps(Files& files, const std::string& folder);

/// Deletes what writers left that did not finish; none may be at work.
Status remove_leftovers(Files& files, const std::string& folder);

/// Deletes all but the newest `keep` >= 1 whole checkpoints and the one that is marked as the best,
/// and leftovers of writers (none may be at work). Those that are damaged count for nothing, and go
/// when they are older than the newest whole one; that one is never touched.
Status keep_last(Files& files, const std::string& folder, int64_t keep);

}  // namespace recmill::checkpoint
