// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/files.h"
#include "base/status.h"

namespace recmill::checkpoint {

/// A folder of exported files that is there under its name when it is whole: written beside, and
/// renamed by publish(). Destroyed before, it leaves nothing.
class ExportFolder {
 public:
  /// `path` may end in '/'. What is there under this name, and beside it of an export that was
  /// killed, is replaced; it must be a folder whose names are all `of_an_export`, so that nothing
  /// else is ever deleted: a bad request names what is there besides.
  static Result<std::unique_ptr<ExportFolder>> create(
      Files& files, const std::string& path,
      const std::function<bool(const std::string& name)>& of_an_export);
  ~ExportFolder();
  ExportFolder(const ExportFolder&) = delete;
  ExportFolder& operator=(const ExportFolder&) = delete;

  /// The folder to write into.
  const std::string& path() const { return beside_; }
  Status publish();

 private:
  ExportFolder(Files& files, const std::string& path);

  Files& files_;
  const std::string path_;
  const std::string beside_;
  bool made_ = false;  // what is at beside_ is ours
};

}  // namespace recmill::checkpoint
