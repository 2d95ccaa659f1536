// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"

namespace recmill {

/// Files in memory, which travel as bytes. For one thread; a file that was opened stays as it was.
class MemoryFiles final : public Files {
 public:
  /// All files, one behind another; folders are not among them. Of each the lengths of its path and
  /// of its content, 8 bytes each, little-endian, and then both.
  std::vector<std::byte> pack() const;
  /// The files that pack() has given.
  static Result<std::unique_ptr<MemoryFiles>> unpack(std::span<const std::byte> bytes);

  Result<std::unique_ptr<ReadableFile>> open(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> create(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> open_append(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Status make_folder(const std::string& path) override;
  Status sync_folder(const std::string&) override { return {}; }
  Result<std::vector<std::string>> list(const std::string& folder) override;
  bool exists(const std::string& path) override;
  bool is_folder(const std::string& path) override;
  Result<ChangeTimes> changed_at(const std::string& path) override;

 private:
  using Content = std::shared_ptr<std::vector<std::byte>>;
  class Reading;
  class Writing;

  std::map<std::string, Content> files_;
  std::set<std::string> folders_;
};

}  // namespace recmill
