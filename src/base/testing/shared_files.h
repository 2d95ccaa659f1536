// SPDX-License-Identifier: Apache-2.0
// A file system for one thread, used by several; a test sees every change before it is made, and
// how much was read.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"

namespace recmill {

class SharedFiles final : public Files {
 public:
  /// `before(path)` is called ahead of every change of a file or name, by the thread that makes it;
  /// it may wait, and an error takes the place of the change.
  SharedFiles(Files& files, std::function<Status(const std::string& path)> before)
      : files_(files), before_(std::move(before)) {}

  /// Bytes of files that were read so far.
  int64_t bytes_read() {
    std::lock_guard lock(mutex_);
    return bytes_read_;
  }

  Result<std::unique_ptr<ReadableFile>> open(const std::string& path) override {
    std::lock_guard lock(mutex_);
    RECMILL_ASSIGN_OR_RETURN(auto file, files_.open(path));
    return std::unique_ptr<ReadableFile>(new Reading(*this, std::move(file)));
  }
  Result<std::unique_ptr<WritableFile>> create(const std::string& path) override {
    return writing(path, [&] { return files_.create(path); });
  }
  Result<std::unique_ptr<WritableFile>> open_append(const std::string& path) override {
    return writing(path, [&] { return files_.open_append(path); });
  }
  Status rename(const std::string& from, const std::string& to) override {
    return change(to, [&] { return files_.rename(from, to); });
  }
  Status remove(const std::string& path) override {
    return change(path, [&] { return files_.remove(path); });
  }
  Status make_folder(const std::string& path) override {
    return change(path, [&] { return files_.make_folder(path); });
  }
  Status sync_folder(const std::string& path) override {
    return change(path, [&] { return files_.sync_folder(path); });
  }
  Result<std::vector<std::string>> list(const std::string& folder) override {
    std::lock_guard lock(mutex_);
    return files_.list(folder);
  }
  bool exists(const std::string& path) override {
    std::lock_guard lock(mutex_);
    return files_.exists(path);
  }
  bool is_folder(const std::string& path) override {
    std::lock_guard lock(mutex_);
    return files_.is_folder(path);
  }
  Result<ChangeTimes> changed_at(const std::string& path) override {
    std::lock_guard lock(mutex_);
    return files_.changed_at(path);
  }

 private:
  class Reading final : public ReadableFile {
   public:
    Reading(SharedFiles& files, std::unique_ptr<ReadableFile> file)
        : files_(files), file_(std::move(file)) {}
    Result<size_t> read(uint64_t offset, std::span<std::byte> buffer) const override {
      std::lock_guard lock(files_.mutex_);
      auto size = file_->read(offset, buffer);
      if (size.ok()) files_.bytes_read_ += static_cast<int64_t>(*size);
      return size;
    }
    uint64_t size() const override {
      std::lock_guard lock(files_.mutex_);
      return file_->size();
    }

   private:
    SharedFiles& files_;
    const std::unique_ptr<ReadableFile> file_;
  };

  class Writing final : public WritableFile {
   public:
    Writing(SharedFiles& files, std::string path, std::unique_ptr<WritableFile> file)
        : files_(files), path_(std::move(path)), file_(std::move(file)) {}
    Status append(std::span<const std::byte> bytes) override {
      return files_.change(path_, [&] { return file_->append(bytes); });
    }
    Status sync() override {
      return files_.change(path_, [&] { return file_->sync(); });
    }
    Status close() override {
      return files_.change(path_, [&] { return file_->close(); });
    }

   private:
    SharedFiles& files_;
    const std::string path_;
    const std::unique_ptr<WritableFile> file_;
  };

  template <typename Operation>
  Status change(const std::string& path, const Operation& operation) {
    RECMILL_RETURN_IF_ERROR(before_(path));
    std::lock_guard lock(mutex_);
    return operation();
  }
  template <typename Open>
  Result<std::unique_ptr<WritableFile>> writing(const std::string& path, const Open& open) {
    RECMILL_RETURN_IF_ERROR(before_(path));
    std::lock_guard lock(mutex_);
    RECMILL_ASSIGN_OR_RETURN(auto file, open());
    return std::unique_ptr<WritableFile>(new Writing(*this, path, std::move(file)));
  }

  Files& files_;
  const std::function<Status(const std::string& path)> before_;
  std::mutex mutex_;
  int64_t bytes_read_ = 0;  // guarded by mutex_
};

}  // namespace recmill
