// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"

namespace recmill {

/// Folders that were made for what may not come to be. When it goes, those that it made and that
/// hold nothing go too.
class MadeFolders {
 public:
  /// Makes `folder` and those above it where they are not there; their names survive a loss of
  /// power. An empty `folder` is the current one.
  static Result<MadeFolders> make(Files& files, const std::string& folder);
  /// Makes the folder of a file.
  static Result<MadeFolders> make_for(Files& files, const std::string& path);
  ~MadeFolders();
  MadeFolders(MadeFolders&&) = default;

 private:
  explicit MadeFolders(Files& files) : files_(files) {}
  Status make(const std::string& folder);

  Files& files_;
  std::vector<std::string> made_;  // outermost first; empty in what was moved from
};

}  // namespace recmill
