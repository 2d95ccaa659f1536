// SPDX-License-Identifier: Apache-2.0
// A file system in memory that fails, fills up or loses power where a test tells it to.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"

namespace recmill {

/// Keeps beside what is there what is on the disk: content as of the last sync() of a file, names
/// as of the last sync_folder() of a folder. For one thread.
class FaultyFiles final : public Files {
 public:
  /// What the disk keeps of changes that were not synced when power is lost.
  enum class Unsynced {
    lost,        // nothing
    names_kept,  // names are there, contents are not: what some file systems do
  };

  FaultyFiles();

  /// The n-th changing operation from now on (create, append, sync, close, rename, remove,
  /// make_folder, sync_folder) and all after it fail; an append writes half of its bytes first.
  void fail_from(int64_t n) { operations_left_ = n; }
  /// Appends beyond so many bytes from now on fail, after they have filled the rest.
  void limit_bytes(int64_t bytes) { bytes_left_ = bytes; }
  /// No more failures.
  void heal() {
    operations_left_ = std::numeric_limits<int64_t>::max();
    bytes_left_ = std::numeric_limits<int64_t>::max();
  }
  /// Power is lost and comes back.
  void lose_power(Unsynced unsynced);
  /// Changing operations so far.
  int64_t operations() const { return operations_; }

  /// The content of a file, to be damaged by the test.
  std::string& content(const std::string& path);

  Result<std::unique_ptr<ReadableFile>> open(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> create(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> open_append(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Status make_folder(const std::string& path) override;
  Status sync_folder(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& folder) override;
  bool exists(const std::string& path) override { return find(path) != nullptr; }
  bool is_folder(const std::string& path) override;
  Result<ChangeTimes> changed_at(const std::string& path) override;

 private:
  struct Node {
    bool folder = false;
    std::string content, synced_content;
    std::map<std::string, std::shared_ptr<Node>> names, synced_names;
  };
  class Reading;
  class Writing;

  std::shared_ptr<Node> find(const std::string& path) const;
  /// The folder of `path` and the last name in it; null if the folder is not there.
  std::pair<std::shared_ptr<Node>, std::string> place(const std::string& path) const;
  Result<std::unique_ptr<WritableFile>> open_for_writing(const std::string& path, bool truncate);
  Status operation(const std::string& path);  // fails when it is time
  static void recover(Node& node, Unsynced unsynced);

  std::shared_ptr<Node> root_;
  int64_t operations_ = 0;
  int64_t operations_left_ = std::numeric_limits<int64_t>::max();
  int64_t bytes_left_ = std::numeric_limits<int64_t>::max();
};

}  // namespace recmill
