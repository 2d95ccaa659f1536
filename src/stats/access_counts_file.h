// SPDX-License-Identifier: Apache-2.0
// Access counts as a file: docs/formats/access_counts.md.
#pragma once

#include <string>

#include "base/files.h"
#include "base/status.h"
#include "device/thread_pool.h"
#include "schema/access_counts.h"

namespace recmill::stats {

/// Replaces `path` when the whole file is on the disk. Equal counts are equal bytes.
Status write_counts(const AccessCounts& counts, const std::string& path, Files& files,
                    ThreadPool& pool);

/// Takes the memory of the value and of the file. Errors name the file: a damaged part, another
/// version; a bad request: counts of another model than `model` (empty: of whichever).
Result<AccessCounts> read_counts(const std::string& path, const std::string& model, Files& files,
                                 ThreadPool& pool);

}  // namespace recmill::stats
