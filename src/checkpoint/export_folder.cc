// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/export_folder.h"

#include <string_view>

namespace recmill::checkpoint {
namespace {

constexpr std::string_view kBeside = ".tmp";

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

/// Refuses a folder to be replaced that is not all of an export's, whole or cut short.
Status check_is_export(Files& files, const std::string& path,
                       const std::function<bool(const std::string& name)>& of_an_export) {
  if (!files.exists(path)) return {};
  if (!files.is_folder(path)) return Status::BadRequest(path + ": is not a folder");
  RECMILL_ASSIGN_OR_RETURN(const auto names, files.list(path));
  for (const std::string& name : names) {
    if (of_an_export(name.ends_with(kBeside) ? name.substr(0, name.size() - kBeside.size()) : name))
      continue;
    return Status::BadRequest(path + ": holds '" + name + "', which no export wrote; name a " +
                              "folder of its own");
  }
  return {};
}

}  // namespace

ExportFolder::ExportFolder(Files& files, const std::string& path)
    : files_(files), path_(without_slashes(path)), beside_(path_ + std::string(kBeside)) {}

Result<std::unique_ptr<ExportFolder>> ExportFolder::create(
    Files& files, const std::string& path,
    const std::function<bool(const std::string& name)>& of_an_export) {
  std::unique_ptr<ExportFolder> folder(new ExportFolder(files, path));
  RECMILL_RETURN_IF_ERROR(check_is_export(files, folder->path_, of_an_export));
  RECMILL_RETURN_IF_ERROR(check_is_export(files, folder->beside_, of_an_export));
  if (files.exists(folder->beside_)) RECMILL_RETURN_IF_ERROR(files.remove(folder->beside_));
  folder->made_ = true;
  RECMILL_RETURN_IF_ERROR(files.make_folder(folder->beside_));
  return folder;
}

ExportFolder::~ExportFolder() {
  if (made_ && files_.exists(beside_)) (void)files_.remove(beside_).ok();
}

Status ExportFolder::publish() {
  if (files_.exists(path_)) RECMILL_RETURN_IF_ERROR(files_.remove(path_));
  RECMILL_RETURN_IF_ERROR(files_.rename(beside_, path_));
  made_ = false;
  return {};
}

}  // namespace recmill::checkpoint
