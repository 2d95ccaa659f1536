// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/files.h"
#include "base/status.h"
#include "run/folder/progress.h"
#include "run/resolved_run.h"

namespace recmill::train {

struct WrittenHotFolder {
  bool reused = false;  // it was there, of the same origin
  int64_t cold_inputs = 0, hot_inputs = 0, hot_rows = 0, cutoff = 0;
};

/// Puts the training inputs of a run apart (FAE, section III-B): decides the hot set from all of
/// them, or takes that of hotset.plan, and writes the folder of hot_folder.h, whole or not at all.
/// One that is there is kept where it has the same origin; another's is replaced with `overwrite`
/// alone. No hot input is a failure that names the column which keeps most of them cold. `free`:
/// hot_problem().
Result<WrittenHotFolder> write_hot_folder(const ResolvedRun& run, const std::string& path,
                                          bool overwrite, int64_t free, Files& files,
                                          Progress::Style style);

}  // namespace recmill::train
