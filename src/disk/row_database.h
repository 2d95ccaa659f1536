// SPDX-License-Identifier: Apache-2.0
// The seam to a database of keys and values on a disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace recmill::disk {

/// What a database has apart from each other: rows, what images of them keep, and a few notes.
enum class Space { rows, kept, notes };

/// A value that is put, or a key that is removed. The value is the caller's while it is written.
struct Change {
  Space space = Space::rows;
  std::string key;
  std::string_view value = {};
  bool removes = false;
};

/// Any thread may read while one writes. Keys are ordered by their bytes. Errors name the path.
class RowDatabase {
 public:
  virtual ~RowDatabase() = default;

  /// Calls found(i, value) for each of the keys that has one, in any order, on this thread.
  virtual Status get(Space space, std::span<const std::string> keys,
                     const std::function<void(size_t, std::string_view)>& found) = 0;
  /// Keys in [first, end) with their values, ascending, `most` of them at most.
  virtual Result<std::vector<std::pair<std::string, std::string>>> scan(Space space,
                                                                        const std::string& first,
                                                                        const std::string& end,
                                                                        int64_t most) = 0;
  /// All of it or nothing, also when the process is killed. `syncs`: with all that was written
  /// before it is on the disk when this returns, also when the machine loses power.
  virtual Status write(std::span<const Change> changes, bool syncs) = 0;
  /// Nothing is in it.
  virtual Status clear() = 0;
};

/// Opens databases, each in a folder of its own, which is made where there is none.
class RowDatabases {
 public:
  virtual ~RowDatabases() = default;
  /// `memory`: bytes for what is cached, and for what is written and not on the disk yet. `keeps`:
  /// the database outlives its being open.
  virtual Result<std::unique_ptr<RowDatabase>> open(const std::string& path, int64_t memory,
                                                    bool keeps) = 0;
};

}  // namespace recmill::disk
