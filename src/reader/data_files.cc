// SPDX-License-Identifier: Apache-2.0
#include "reader/data_files.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/paths.h"

namespace recmill::reader {

std::string data_folder(const DataOptions& options) {
  return (std::filesystem::path(options.base) / options.path).string();
}

Result<std::vector<std::string>> find_files(const std::vector<std::string>& entries,
                                            const std::string& folder, Files& files) {
  std::vector<std::string> paths;
  for (const std::string& entry : entries) {
    const std::string path = (std::filesystem::path(folder) / entry).string();
    std::vector<std::string> found{path};
    if (!files.exists(path)) {
      if (path.find("**") != std::string::npos) {
        return Status::BadRequest(whole_path(path) +
                                  ": a * stays within one folder, ** means no more");
      }
      RECMILL_ASSIGN_OR_RETURN(found, glob(path));
    }
    for (const std::string& file : found) {
      if (files.is_folder(file)) {
        return Status::BadRequest(whole_path(file) +
                                  ": is a folder, not a file (give files or a pattern)");
      }
      paths.push_back(file);
    }
  }
  return paths;
}

Result<DataOptions> data_of_rows(const DataOptions& options,
                                 const std::vector<std::string>& entries, Files& files) {
  if (options.format == DataFormat::synthetic) {
    return Status::BadRequest(
        "the rows of data.format = \"synthetic\" are made as they are read, they are in no file");
  }
  DataOptions data = options;
  RECMILL_ASSIGN_OR_RETURN(data.eval, find_files(entries, "", files));
  data.base = data.path = "";
  data.train = data.eval;
  data.split = {};
  data.rows = 0;
  return data;
}

Result<std::vector<std::string>> data_files(const DataOptions& options, Subset subset,
                                            Files& files) {
  const bool split_rows = options.split.by != SplitKind::file;
  const bool eval_list = subset == Subset::eval && !split_rows;
  const auto& entries = eval_list ? options.eval : options.train;
  if (entries.empty() && !(subset == Subset::all && !options.eval.empty())) {
    return Status::BadRequest(std::string(eval_list ? "data.eval" : "data.train") +
                              ": names no files");
  }
  auto paths = find_files(entries, data_folder(options), files);
  if (!paths.ok()) return paths.status().at(eval_list ? "data.eval" : "data.train");
  if (subset == Subset::all) {
    const auto eval = find_files(options.eval, data_folder(options), files);
    if (!eval.ok()) return eval.status().at("data.eval");
    for (const auto& path : *eval) {
      if (std::find(paths->begin(), paths->end(), path) == paths->end()) paths->push_back(path);
    }
  }
  return paths;
}

std::vector<std::string> doubts_about_files(const DataOptions& options, Files& files) {
  std::vector<std::string> doubts;
  if (options.format == DataFormat::synthetic) return doubts;
  const auto train = find_files(options.train, data_folder(options), files);
  const auto eval = find_files(options.eval, data_folder(options), files);
  if (!train.ok() || !eval.ok()) return doubts;
  std::set<std::string> trained, evaluated;
  for (const std::string& file : *train) {
    if (trained.insert(whole_path(file)).second) continue;
    doubts.push_back("data.train: " + file + " is named twice: its rows are trained on twice");
  }
  if (options.split.by != SplitKind::file) {
    if (!eval->empty()) {
      doubts.push_back("data.eval: is not read, as data.split.by takes rows of data.train instead");
    }
    return doubts;
  }
  for (const std::string& file : *eval) {
    if (!evaluated.insert(whole_path(file)).second) {
      doubts.push_back("data.eval: " + file + " is named twice: its rows count twice");
    } else if (trained.contains(whole_path(file))) {
      doubts.push_back("data.eval: " + file +
                       " is a file of data.train too: its rows are no longer held out");
    }
  }
  return doubts;
}

}  // namespace recmill::reader
