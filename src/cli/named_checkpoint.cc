// SPDX-License-Identifier: Apache-2.0
#include "cli/named_checkpoint.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/paths.h"

namespace recmill::cli {

Result<checkpoint::Chosen> choose_checkpoint(const std::string& path, checkpoint::Which which) {
  Files& files = posix_files();
  if (!files.is_folder(path)) return Status::BadRequest(whole_path(path) + ": is not a folder");
  if (files.exists(path + "/" + checkpoint::kManifestName)) {
    RECMILL_ASSIGN_OR_RETURN(auto reader, checkpoint::Reader::open(files, path));
    return checkpoint::Chosen{std::move(reader), "", {}};
  }
  const std::string of_run = path + "/checkpoints";
  const std::string folder = files.is_folder(of_run) ? of_run : path;
  RECMILL_ASSIGN_OR_RETURN(auto chosen, checkpoint::open_wanted(files, folder, which));
  for (const std::string& damaged : chosen.damaged) log_warning(damaged);
  return chosen;
}

Result<std::unique_ptr<checkpoint::Reader>> open_named_checkpoint(const std::string& path) {
  RECMILL_ASSIGN_OR_RETURN(auto chosen, choose_checkpoint(path, checkpoint::Which::newest));
  return std::move(chosen.reader);
}

std::string crc_text(uint32_t crc) {
  return fmt::format("{:08x}", crc);
}

}  // namespace recmill::cli
