// SPDX-License-Identifier: Apache-2.0
#include "cli/named_checkpoint.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/paths.h"
#include "checkpoint/folder.h"

namespace recmill::cli {

Result<std::unique_ptr<checkpoint::Reader>> open_named_checkpoint(const std::string& path) {
  Files& files = posix_files();
  if (!files.is_folder(path)) return Status::BadRequest(whole_path(path) + ": is no folder");
  if (files.exists(path + "/" + checkpoint::kManifestName)) {
    return checkpoint::Reader::open(files, path);
  }
  const std::string of_run = path + "/checkpoints";
  const std::string folder = files.is_folder(of_run) ? of_run : path;
  RECMILL_ASSIGN_OR_RETURN(auto newest, checkpoint::open_newest(files, folder));
  for (const std::string& damaged : newest.damaged) log_warning(damaged);
  if (newest.reader == nullptr)
    return Status::BadRequest(whole_path(folder) + ": holds no whole checkpoint");
  return std::move(newest.reader);
}

std::string crc_text(uint32_t crc) {
  return fmt::format("{:08x}", crc);
}

}  // namespace recmill::cli
