// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "device/thread_pool.h"
#include "reader/lines/row_index.h"

namespace recmill::reader {

/// find_time_boundary() over the time column of text files. `rules` keep all rows but bad ones and
/// have a time column.
Result<int64_t> find_text_boundary(Files& files, const std::string& cache,
                                   const std::vector<std::string>& paths, const FileRules& rules,
                                   double eval_fraction, ThreadPool& pool);

}  // namespace recmill::reader
