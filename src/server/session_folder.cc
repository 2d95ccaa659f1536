// SPDX-License-Identifier: Apache-2.0
#include "server/session_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace recmill::server {
namespace {

constexpr const char* kPrefix = "recmill-launch-";

// Of processes that were killed. What cannot be removed is another user's.
void remove_left(Files& files, const std::string& parent) {
  const auto names = files.list(parent);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (!name.starts_with(kPrefix)) continue;
    const std::string path = parent + "/" + name;
    const auto lock = files.create_unless_open(path + "/lock");
    if (lock.ok() && *lock != nullptr) (void)files.remove(path).ok();
  }
}

}  // namespace

Result<SessionFolder> SessionFolder::make(Files& files) {
  std::error_code error;
  const std::string parent = std::filesystem::temp_directory_path(error).string();
  if (error) return Status::Failed("TMPDIR: " + error.message());
  remove_left(files, parent);
  while (true) {
    std::string path = parent + "/" + kPrefix + "XXXXXX";
    if (mkdtemp(path.data()) == nullptr)
      return Status::Failed(path + ": cannot create: " + std::strerror(errno));
    auto lock = files.create_unless_open(path + "/lock");
    // Another one may have taken it for left before it was locked.
    if (!files.exists(path) || (lock.ok() && *lock == nullptr)) continue;
    RECMILL_RETURN_IF_ERROR(lock.status());
    return SessionFolder(files, path, *std::move(lock));
  }
}

SessionFolder::~SessionFolder() {
  if (lock_ != nullptr) (void)files_.remove(path_).ok();
}

}  // namespace recmill::server
