// SPDX-License-Identifier: Apache-2.0
#include "reader/data_files.h"

#include <algorithm>
#include <filesystem>

namespace recmill::reader {
namespace {

Result<std::vector<std::string>> expand(const std::vector<std::string>& entries,
                                        const std::string& folder, Files& files) {
  std::vector<std::string> paths;
  for (const std::string& entry : entries) {
    const std::string path = (std::filesystem::path(folder) / entry).string();
    std::vector<std::string> found{path};
    if (!files.exists(path)) {
      RECMILL_ASSIGN_OR_RETURN(found, glob(path));
    }
    for (const std::string& file : found) {
      if (files.is_folder(file)) {
        return Status::BadRequest(file + ": is a folder, not a file (give files or a pattern)");
      }
      paths.push_back(file);
    }
  }
  return paths;
}

}  // namespace

Result<std::vector<std::string>> data_files(const DataOptions& options, Subset subset,
                                            Files& files) {
  const bool split_rows = options.split.by != SplitKind::file;
  const bool eval_list = subset == Subset::eval && !split_rows;
  const auto& entries = eval_list ? options.eval : options.train;
  if (entries.empty() && !(subset == Subset::all && !options.eval.empty())) {
    return Status::BadRequest(eval_list ? "data.eval names no files" : "data.train names no files");
  }
  RECMILL_ASSIGN_OR_RETURN(auto paths, expand(entries, options.path, files));
  if (subset == Subset::all) {
    RECMILL_ASSIGN_OR_RETURN(const auto eval, expand(options.eval, options.path, files));
    for (const auto& path : eval) {
      if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
    }
  }
  return paths;
}

}  // namespace recmill::reader
