// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <glob.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/files.h"
#include "base/paths.h"

namespace recmill {
namespace {

Status errno_status(const std::string& path, const char* what) {
  const int why = errno;
  return Status::Failed(whole_path(path) + ": " + what + ": " + std::strerror(why));
}

class PosixReadableFile final : public ReadableFile {
 public:
  PosixReadableFile(int fd, uint64_t size, std::string path)
      : fd_(fd), size_(size), path_(std::move(path)) {}
  ~PosixReadableFile() override { ::close(fd_); }

  Result<size_t> read(uint64_t offset, std::span<std::byte> buffer) const override {
    size_t done = 0;
    while (done < buffer.size()) {
      const ssize_t n = ::pread(fd_, buffer.data() + done, buffer.size() - done,
                                static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno_status(path_, "cannot read");
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }
  uint64_t size() const override { return size_; }

 private:
  const int fd_;
  const uint64_t size_;
  const std::string path_;
};

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~PosixWritableFile() override {
    if (fd_ >= 0) ::close(fd_);
  }

  Status append(std::span<const std::byte> bytes) override {
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = ::write(fd_, bytes.data() + done, bytes.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno_status(path_, "cannot write");
      done += static_cast<size_t>(n);
    }
    return {};
  }
  Status sync() override {
    return ::fsync(fd_) == 0 ? Status() : errno_status(path_, "cannot sync");
  }
  Status close() override {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd) == 0 ? Status() : errno_status(path_, "cannot close");
  }

 private:
  int fd_;
  const std::string path_;
};

class PosixFiles final : public Files {
 public:
  Result<std::unique_ptr<ReadableFile>> open(const std::string& path) override {
    // A pipe without a writer would not be opened otherwise.
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return errno_status(path, "cannot open");
    struct stat info {};
    if (::fstat(fd, &info) != 0) {
      ::close(fd);
      return errno_status(path, "cannot stat");
    }
    if (!S_ISREG(info.st_mode)) {
      ::close(fd);
      return Status::Failed(whole_path(path) + (S_ISDIR(info.st_mode)
                                                    ? ": is a folder, not a file"
                                                    : ": is a pipe or device, not a file"));
    }
    return std::unique_ptr<ReadableFile>(
        new PosixReadableFile(fd, static_cast<uint64_t>(info.st_size), path));
  }
  Result<std::unique_ptr<WritableFile>> create(const std::string& path) override {
    return open_for_writing(path, O_TRUNC);
  }
  Result<std::unique_ptr<WritableFile>> create_unless_open(const std::string& path) override {
    while (true) {
      const int fd = open_descriptor(path, 0);
      if (fd < 0) return errno_status(path, "cannot create");
      auto file = std::make_unique<PosixWritableFile>(fd, path);
      if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return std::unique_ptr<WritableFile>();
      // Whoever had the lock before may have renamed or removed the file since it was opened.
      struct stat opened {
      }, there{};
      if (::fstat(fd, &opened) != 0) return errno_status(path, "cannot stat");
      if (::stat(path.c_str(), &there) != 0 || opened.st_ino != there.st_ino) continue;
      if (::ftruncate(fd, 0) != 0) return errno_status(path, "cannot truncate");
      return std::unique_ptr<WritableFile>(std::move(file));
    }
  }
  Result<std::unique_ptr<WritableFile>> open_append(const std::string& path) override {
    return open_for_writing(path, O_APPEND);
  }
  Status rename(const std::string& from, const std::string& to) override {
    return ::rename(from.c_str(), to.c_str()) == 0 ? Status()
                                                   : errno_status(to, "cannot rename to");
  }
  Status remove(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    return error ? Status::Failed(whole_path(path) + ": cannot remove: " + error.message())
                 : Status();
  }
  Status make_folder(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    return error ? Status::Failed(whole_path(path) + ": cannot make folder: " + error.message())
                 : Status();
  }
  Status sync_folder(const std::string& path) override {
    const int fd = ::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno_status(path, "cannot open folder");
    const int result = ::fsync(fd);
    ::close(fd);
    return result == 0 ? Status() : errno_status(path, "cannot sync folder");
  }
  Result<std::vector<std::string>> list(const std::string& folder) override {
    std::error_code error;
    std::vector<std::string> names;
    for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
         it.increment(error)) {
      names.push_back(it->path().filename().string());
    }
    if (error) return Status::Failed(whole_path(folder) + ": cannot list: " + error.message());
    std::sort(names.begin(), names.end());
    return names;
  }
  void remove_if_empty(const std::string& folder) override { (void)!::rmdir(folder.c_str()); }
  bool exists(const std::string& path) override { return ::access(path.c_str(), F_OK) == 0; }
  bool is_folder(const std::string& path) override {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  }
  Result<ChangeTimes> changed_at(const std::string& path) override {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return errno_status(path, "cannot stat");
    const auto nanoseconds = [](const timespec& time) {
      return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
    };
    return ChangeTimes{nanoseconds(info.st_mtim), nanoseconds(info.st_ctim)};
  }

 private:
  static int open_descriptor(const std::string& path, int mode) {
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | mode, 0644);
  }
  static Result<std::unique_ptr<WritableFile>> open_for_writing(const std::string& path, int mode) {
    const int fd = open_descriptor(path, mode);
    if (fd < 0) return errno_status(path, "cannot create");
    return std::unique_ptr<WritableFile>(new PosixWritableFile(fd, path));
  }
};

}  // namespace

void Files::remove_if_empty(const std::string& folder) {
  const auto left = is_folder(folder) ? list(folder) : Status::Failed("");
  if (left.ok() && left->empty()) (void)remove(folder).ok();
}

Files& posix_files() {
  static PosixFiles files;
  return files;
}

Result<std::string> read_text(Files& files, const std::string& path) {
  RECMILL_ASSIGN_OR_RETURN(auto file, files.open(path));
  std::string text(file->size(), '\0');
  RECMILL_ASSIGN_OR_RETURN(const size_t size,
                           file->read(0, std::as_writable_bytes(std::span(text))));
  text.resize(size);
  return text;
}

Result<std::unique_ptr<AtomicFile>> AtomicFile::create(Files& files, const std::string& path) {
  std::unique_ptr<AtomicFile> file(new AtomicFile(files, path));
  for (int others = 0; file->file_ == nullptr; ++others) {
    file->beside_ = path + (others == 0 ? "" : "." + std::to_string(others)) + ".tmp";
    RECMILL_ASSIGN_OR_RETURN(file->file_, files.create_unless_open(file->beside_));
  }
  return file;
}

// A file is renamed or removed while it is open: closed, it may be another's.
AtomicFile::~AtomicFile() {
  if (file_ != nullptr && files_.exists(beside_)) (void)files_.remove(beside_).ok();
}

Status AtomicFile::close() {
  RECMILL_RETURN_IF_ERROR(file_->sync());
  RECMILL_RETURN_IF_ERROR(files_.rename(beside_, path_));
  const std::unique_ptr<WritableFile> file = std::move(file_);
  RECMILL_RETURN_IF_ERROR(file->close());
  return files_.sync_folder(std::filesystem::path(path_).parent_path().string());
}

Status write_atomically(Files& files, const std::string& path, std::span<const std::byte> bytes) {
  RECMILL_ASSIGN_OR_RETURN(auto file, AtomicFile::create(files, path));
  RECMILL_RETURN_IF_ERROR(file->append(bytes));
  return file->close();
}

Status write_atomically(Files& files, const std::string& path, const std::string& text) {
  return write_atomically(files, path, std::as_bytes(std::span(text)));
}

Result<std::vector<std::string>> glob(const std::string& pattern) {
  glob_t matches{};
  const int outcome = ::glob(pattern.c_str(), GLOB_TILDE, nullptr, &matches);
  std::vector<std::string> paths(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  globfree(&matches);
  if (outcome == 0) return paths;
  return Status::BadRequest(whole_path(pattern) + ": matches no file");
}

}  // namespace recmill
