// SPDX-License-Identifier: Apache-2.0
// The one seam to the file system. Everything that writes goes through it, so that tests can make a
// disk full or a machine die at any byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace recmill {

/// An open file for reading at any offset. Safe to use from several threads.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  /// Reads up to buffer.size() bytes at `offset`; fewer only at the end of the file. Returns the
  /// count.
  virtual Result<size_t> read(uint64_t offset, std::span<std::byte> buffer) const = 0;
  virtual uint64_t size() const = 0;  // bytes when it was opened
};

/// A file being written from its start. Nothing is promised to be on disk before sync().
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual Status append(std::span<const std::byte> bytes) = 0;
  virtual Status sync() = 0;   // data is on the disk
  virtual Status close() = 0;  // must be called; the destructor closes without reporting
};

/// Nanoseconds since 1970. Programs that copy a file may set the first, nobody sets the second.
struct ChangeTimes {
  int64_t content = 0;  // of its last change, as it is told
  int64_t entry = 0;    // of the last change of anything: content, name, times, rights
};

/// A file system. Errors name the path and the reason. Paths are as the user wrote them.
class Files {  // More than eight functions: one for each call that tests make fail.
 public:
  virtual ~Files() = default;
  virtual Result<std::unique_ptr<ReadableFile>> open(const std::string& path) = 0;
  virtual Result<std::unique_ptr<WritableFile>> create(const std::string& path) = 0;  // truncates
  /// The same, or null, and nothing is changed, where a file that this call returned for `path`, to
  /// whatever process of the machine, is still there and open. Where the disk knows no locks, or
  /// has one user, the others are not seen.
  virtual Result<std::unique_ptr<WritableFile>> create_unless_open(const std::string& path) {
    return create(path);
  }
  virtual Result<std::unique_ptr<WritableFile>> open_append(const std::string& path) = 0;
  virtual Status rename(const std::string& from, const std::string& to) = 0;  // replaces `to`
  virtual Status remove(const std::string& path) = 0;       // a file, or a folder with its content
  virtual void remove_if_empty(const std::string& folder);  // else it stays
  virtual Status make_folder(const std::string& path) = 0;  // with parents; it may exist
  virtual Status sync_folder(const std::string& path) = 0;  // names in it are on the disk
  virtual Result<std::vector<std::string>> list(const std::string& folder) = 0;  // names, sorted
  virtual bool exists(const std::string& path) = 0;
  virtual bool is_folder(const std::string& path) = 0;
  virtual Result<ChangeTimes> changed_at(const std::string& path) = 0;
};

/// The machine's own file system.
Files& posix_files();

/// Whole-file conveniences over any Files.
Result<std::string> read_text(Files& files, const std::string& path);

/// Writes beside `path`, syncs, renames: after a crash `path` is the old content or the new one.
Status write_atomically(Files& files, const std::string& path, std::span<const std::byte> bytes);
Status write_atomically(Files& files, const std::string& path, const std::string& text);

/// A file that is there under `path` when it is whole, and not at all before: written beside, and
/// renamed by close(). Destroyed without close(), or after a failure, it leaves nothing. Of several
/// for one path at a time each is written apart, and the last one closed is there in the end. What
/// a killed process leaves beside, the next one for its path writes over.
class AtomicFile final : public WritableFile {
 public:
  static Result<std::unique_ptr<AtomicFile>> create(Files& files, const std::string& path);
  ~AtomicFile() override;
  Status append(std::span<const std::byte> bytes) override { return file_->append(bytes); }
  Status sync() override { return file_->sync(); }
  Status close() override;

 private:
  AtomicFile(Files& files, std::string path) : files_(files), path_(std::move(path)) {}
  Files& files_;
  const std::string path_;
  std::string beside_;                  // PATH.tmp, or PATH.1.tmp ... while others write there
  std::unique_ptr<WritableFile> file_;  // null: closed
};

/// Files that match `pattern` ('*', '?', '[...]' in any path component), sorted; an exact path
/// matches itself. No match is an error that names the pattern.
Result<std::vector<std::string>> glob(const std::string& pattern);

}  // namespace recmill
