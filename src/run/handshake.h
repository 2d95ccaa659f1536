// SPDX-License-Identifier: Apache-2.0
// Before anything starts, ranks make sure that they are about to do the same.
#pragma once

#include <string>

#include "base/files.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "run/job_setting.h"
#include "run/resolved_run.h"

namespace recmill::train {

/// Compares identity, files and columns of the data with those of rank 0. Collective. A difference
/// is a bad request, on every rank, that names each rank which differs, and the first line in which
/// it does, of both.
Status shake_hands(const ResolvedRun& run, const JobIdentity& identity, Communicator& communicator,
                   Files& files);

/// Whether every rank has rank 0's `text`. `what`: as messages call it. Collective; fails as above.
Status same_everywhere(const std::string& what, const std::string& text,
                       Communicator& communicator);

}  // namespace recmill::train
