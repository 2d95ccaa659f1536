// SPDX-License-Identifier: Apache-2.0
// What the cache folder keeps of work over files of the data: row indexes, boundaries of splits.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "base/files.h"
#include "base/status.h"

namespace recmill::reader {

/// A file of the cache folder, made from some source files under a rule. Ranks of a process open
/// the same data at the same time: while one holds an entry the others wait for it, and find what
/// the first one kept.
class CacheEntry {
 public:
  /// `rule` is text that differs wherever the content would. The entry's name is a hash of absolute
  /// paths and rule, with `suffix`; `files` outlives it.
  static Result<CacheEntry> open(Files& files, const std::string& cache,
                                 std::span<const std::string> sources, const std::string& rule,
                                 const std::string& suffix);

  /// Absolute path, size and times of change of each source, and the rule: content that holds its
  /// key is known to be of this entry.
  const std::string& key() const { return key_; }

  /// The content, where it was written after the sources last changed. Times of change go in steps
  /// of some milliseconds: what was written within the same step may have been made from text that
  /// was replaced since by text of the same size, and is not to be trusted.
  std::optional<std::string> find() const;

  /// Writes the content atomically. A cache is only an acceleration: where it cannot be written,
  /// and no other process has, a warning says that there is no `what`; and where find() will not
  /// trust it, for a source lies in the future, another says so, once a process.
  void keep(const std::string& content, const std::string& what) const;

 private:
  CacheEntry(Files& files, std::string folder, std::string place, std::string key, int64_t changed,
             std::string latest_source);

  Files* files_;
  std::string folder_, place_, key_;
  int64_t changed_;            // latest time of change of the sources, nanoseconds since 1970
  std::string latest_source_;  // the one that changed then
  std::unique_lock<std::mutex> lock_;
};

}  // namespace recmill::reader
