// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/files.h"
#include "base/status.h"

namespace recmill::server {

/// A fresh folder among the machine's temporary ones, for what a launcher of MPI keeps while its
/// job runs. Goes away with its content when the object does, or, where the process was killed,
/// when the next one is made on this host. A lock in it says that its process lives.
class SessionFolder {
 public:
  static Result<SessionFolder> make(Files& files);
  ~SessionFolder();
  SessionFolder(SessionFolder&&) = default;

  const std::string& path() const { return path_; }

 private:
  SessionFolder(Files& files, std::string path, std::unique_ptr<WritableFile> lock)
      : files_(files), path_(std::move(path)), lock_(std::move(lock)) {}

  Files& files_;
  std::string path_;
  std::unique_ptr<WritableFile> lock_;  // null: moved from
};

}  // namespace recmill::server
