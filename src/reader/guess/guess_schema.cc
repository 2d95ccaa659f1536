// SPDX-License-Identifier: Apache-2.0
#include "reader/guess/guess_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "reader/guess/file_kind.h"
#include "reader/guess/guess_text.h"
#ifdef RECMILL_WITH_ARROW
#include "reader/guess/guess_columnar.h"
#endif

namespace recmill::reader {
namespace {

/// Files of a data set, as [data] names them and as they are opened.
struct DataSet {
  std::string folder;              // data.path
  std::vector<std::string> train;  // data.train
  std::vector<std::string> paths;
};

bool has_wildcard(const std::string& name) {
  return name.find_first_of("*?[") != std::string::npos;
}

std::string joined(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / name).string();
}

/// From the first point on.
std::string ending_of(const std::string& name) {
  const size_t dot = name.find('.');
  return dot == std::string::npos ? "" : name.substr(dot);
}

/// A pattern for all of `names`, where they have one ending and it is that of no other file of the
/// folder; else the names themselves.
std::vector<std::string> pattern_for(const std::string& folder,
                                     const std::vector<std::string>& names) {
  if (names.size() < 2) return names;
  const std::string pattern = "*" + ending_of(names[0]);
  const auto found = glob(joined(folder, pattern));
  std::vector<std::string> paths;
  for (const std::string& name : names) paths.push_back(joined(folder, name));
  if (!has_wildcard(folder) && found.ok() && *found == paths) return {pattern};
  return names;
}

Result<DataSet> files_of_folder(Files& files, const std::string& path) {
  RECMILL_ASSIGN_OR_RETURN(const auto names, files.list(path));
  DataSet set;
  set.folder = path;
  std::vector<std::string> kept, folders;
  for (const std::string& name : names) {
    if (name.starts_with('.') || name.starts_with('_')) continue;
    if (files.is_folder(joined(path, name))) {
      folders.push_back(name);
      continue;
    }
    kept.push_back(name);
    set.paths.push_back(joined(path, name));
  }
  for (const std::string& inner : folders) {
    RECMILL_ASSIGN_OR_RETURN(const auto within, files.list(joined(path, inner)));
    const bool same = std::ranges::any_of(within, [&](const std::string& name) {
      return kept.empty() || ending_of(name) == ending_of(kept[0]);
    });
    if (same)
      return Status::BadRequest(
          fmt::format("{}: has files in '{}' too: name all that are to be read by patterns, as "
                      "'{}'",
                      path, inner, joined(path, "*/*" + ending_of(within[0]))));
  }
  if (kept.empty()) return Status::BadRequest(path + ": the folder has no files");
  set.train = pattern_for(path, kept);
  return set;
}

Result<DataSet> data_set_at(Files& files, const std::string& path) {
  if (files.is_folder(path)) return files_of_folder(files, path);
  DataSet set;
  if (files.exists(path)) {
    set.paths = {path};
  } else {
    RECMILL_ASSIGN_OR_RETURN(set.paths, glob(path));
    std::erase_if(set.paths, [&](const std::string& found) { return files.is_folder(found); });
    if (set.paths.empty()) return Status::BadRequest(path + ": matches folders alone");
  }
  std::filesystem::path folder = path;
  do folder = folder.parent_path();
  while (has_wildcard(folder.string()));
  set.folder = folder.string();
  std::string rest = path.substr(set.folder.size());
  rest.erase(0, std::min(rest.find_first_not_of('/'), rest.size()));
  set.train = {rest};
  return set;
}

Result<DataFormat> kind_of(Files& files, const std::string& path) {
  RECMILL_ASSIGN_OR_RETURN(const auto file, files.open(path));
  std::string head(kKindBytes, '\0');
  RECMILL_ASSIGN_OR_RETURN(const size_t size,
                           file->read(0, std::as_writable_bytes(std::span<char>(head))));
  return columnar_kind(std::string_view(head).substr(0, size));
}

Result<Sample> sample_of(Files& files, const DataSet& set) {
  RECMILL_ASSIGN_OR_RETURN(const DataFormat first, kind_of(files, set.paths[0]));
  for (const std::string& path : set.paths) {
    RECMILL_ASSIGN_OR_RETURN(const DataFormat kind, kind_of(files, path));
    if (kind == first) continue;
    return Status::BadRequest(path + ": is of another format than " + set.paths[0] +
                              "; name the files that are one data set by a pattern");
  }
#ifdef RECMILL_WITH_ARROW
  if (first != DataFormat::csv) return sample_columnar(files, first, set.paths);
#endif
  return sample_text(files, set.paths);
}

}  // namespace

Result<SchemaGuess> guess_schema(Files& files, const std::string& path, const std::string& label) {
  RECMILL_ASSIGN_OR_RETURN(const DataSet set, data_set_at(files, path));
  RECMILL_ASSIGN_OR_RETURN(const Sample sample, sample_of(files, set));
  RECMILL_ASSIGN_OR_RETURN(SchemaGuess guess, decide(sample, label));
  guess.options.path = set.folder;
  guess.options.train = set.train;
  RECMILL_ASSIGN_OR_RETURN(guess.toml, toml_of(guess));
  return guess;
}

}  // namespace recmill::reader
