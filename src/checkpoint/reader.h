// SPDX-License-Identifier: Apache-2.0
// Reads checkpoints (docs/formats/checkpoint.md): by name and range of rows, whatever wrote them.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json/json_fwd.h"
#include "base/status.h"
#include "checkpoint/format.h"

namespace recmill::checkpoint {

/// For one thread. Errors name the file, and for damage the entry and its rows.
class Reader {
 public:
  /// `path` is the checkpoint's own folder. Reads the manifest and checks the sizes of the parts.
  static Result<std::unique_ptr<Reader>> open(Files& files, const std::string& path);

  const std::string& path() const { return path_; }
  int64_t step() const { return manifest_.step; }
  const Json& properties() const { return *manifest_.properties; }
  const std::vector<Entry>& entries() const { return manifest_.entries; }  // sorted by name
  /// Null if it is not there.
  const Entry* find(const std::string& name) const;
  /// The entry of this name, type and shape; an error says what is there instead.
  Result<const Entry*> expect(const EntrySpec& spec) const;

  /// Reads rows [first, first + count) into `out`, count * row_bytes() bytes. The blocks that it
  /// needs are checked; the last few are kept, so reading on in order reads each of them once.
  Status read(const Entry& entry, int64_t first, int64_t count, std::span<std::byte> out) {
    return read(entry, first, count, entry.spec.all_columns(), out);
  }
  /// The same for some columns of the rows: blocks of other columns are not read.
  Status read(const Entry& entry, int64_t first, int64_t count, ColumnRange columns,
              std::span<std::byte> out);
  /// A whole entry as values of T, of the entry's element size.
  template <typename T>
  Result<std::vector<T>> read_all(const Entry& entry) {
    RECMILL_CHECK(sizeof(T) == static_cast<size_t>(size_of(entry.spec.type)), entry.spec.name);
    std::vector<T> values(entry.spec.rows() * entry.spec.row_elements());
    RECMILL_RETURN_IF_ERROR(
        read(entry, 0, entry.spec.rows(), std::as_writable_bytes(std::span(values))));
    return values;
  }

  /// Reads everything: every checksum is right and every element is there once.
  Status verify();

 private:
  /// A block as it was read, checked.
  struct Loaded {
    const Block* block = nullptr;
    std::vector<int64_t> row_numbers;  // of a listed block
    std::vector<std::byte> bytes;
    const std::byte* rows = nullptr;  // into bytes
  };
  Reader(std::string path, Manifest manifest)
      : path_(std::move(path)), manifest_(std::move(manifest)) {}
  Result<const Loaded*> load(const Entry& entry, const Block& block);
  Status check_once(const Entry& entry);

  const std::string path_;
  const Manifest manifest_;
  std::vector<std::unique_ptr<ReadableFile>> parts_;
  std::list<Loaded> loaded_;  // most recently used first
};

}  // namespace recmill::checkpoint
