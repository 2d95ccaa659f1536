// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "reader/data_options.h"

namespace recmill::reader {

/// Paths of a subset, in reading order: each entry of data.train or data.eval relative to
/// data.path, patterns sorted. With a row split both subsets are the files of data.train; `all` is
/// train, then those of eval that are not in it. Names the key and a folder, a missing file or a
/// pattern without a match.
Result<std::vector<std::string>> data_files(const DataOptions& options, Subset subset,
                                            Files& files);

/// What the lists of files say and a user may not mean, a line each, the key first: a file that is
/// named twice, one of both lists, a list that is not read. Of lists without an error.
std::vector<std::string> doubts_about_files(const DataOptions& options, Files& files);

}  // namespace recmill::reader
