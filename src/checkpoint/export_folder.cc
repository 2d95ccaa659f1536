// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/export_folder.h"

namespace recmill::checkpoint {
namespace {

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

}  // namespace

ExportFolder::ExportFolder(Files& files, const std::string& path)
    : files_(files), path_(without_slashes(path)), beside_(path_ + ".tmp") {}

Result<std::unique_ptr<ExportFolder>> ExportFolder::create(
    Files& files, const std::string& path,
    const std::function<bool(const std::string& name)>& of_an_export) {
  std::unique_ptr<ExportFolder> folder(new ExportFolder(files, path));
  if (files.exists(folder->path_)) {
    if (!files.is_folder(folder->path_)) return Status::BadRequest(path + ": is no folder");
    RECMILL_ASSIGN_OR_RETURN(const auto names, files.list(folder->path_));
    for (const std::string& name : names) {
      if (!of_an_export(name)) {
        return Status::BadRequest(path + ": holds '" + name + "', which no export wrote; name a " +
                                  "folder of its own");
      }
    }
  }
  if (files.exists(folder->beside_)) RECMILL_RETURN_IF_ERROR(files.remove(folder->beside_));
  RECMILL_RETURN_IF_ERROR(files.make_folder(folder->beside_));
  return folder;
}

ExportFolder::~ExportFolder() {
  if (!published_ && files_.exists(beside_)) (void)files_.remove(beside_).ok();
}

Status ExportFolder::publish() {
  if (files_.exists(path_)) RECMILL_RETURN_IF_ERROR(files_.remove(path_));
  RECMILL_RETURN_IF_ERROR(files_.rename(beside_, path_));
  published_ = true;
  return {};
}

}  // namespace recmill::checkpoint
