// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "reader/data_options.h"

namespace recmill::reader {

/// Paths of a subset, in reading order: each entry of data.train or data.eval relative to
/// data_folder(), patterns sorted. With a row split both subsets are the files of data.train; `all`
/// is train, then those of eval that are not in it. Names the key and a folder, a missing file or a
/// pattern without a match.
Result<std::vector<std::string>> data_files(const DataOptions& options, Subset subset,
                                            Files& files);

/// The folder that data.train and data.eval are relative to; empty: the current folder.
std::string data_folder(const DataOptions& options);

/// The files that entries name, in reading order: each relative to `folder`, patterns sorted. Names
/// a folder, a missing file or a pattern without a match, with its whole path.
Result<std::vector<std::string>> find_files(const std::vector<std::string>& entries,
                                            const std::string& folder, Files& files);

/// The data set whose rows, of either subset, are all rows of `entries`, which are relative to
/// the current folder: whatever split and limit `options` have.
Result<DataOptions> data_of_rows(const DataOptions& options,
                                 const std::vector<std::string>& entries, Files& files);

/// What the lists of files say and a user may not mean, a line each, the key first: a file that is
/// named twice, one of both lists, a list that is not read. Of lists without an error.
std::vector<std::string> doubts_about_files(const DataOptions& options, Files& files);

}  // namespace recmill::reader
