// SPDX-License-Identifier: Apache-2.0
#include "kernels/codegen/library_cache.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <mutex>

#include "base/hash.h"
#include "base/key_text.h"

namespace recmill::kernels::codegen {
namespace {

std::string checksum_of(const std::string& bytes) {
  return fmt::format("{:08x}\n", crc32c(std::as_bytes(std::span(bytes))));
}

std::string host_between_dots() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return fmt::format(".{}.", host);
}

constexpr std::string_view kLock = ".lock";

/// Whether a folder beside has this lock, and was made by a process of this machine that is no
/// more, as far as numbers of processes tell. One's own number is that of an earlier process, or of
/// one in another container.
bool is_of_no_other_process(std::string_view lock) {
  const std::string host = host_between_dots();
  const size_t at = lock.find(host);
  if (at == std::string_view::npos || !lock.ends_with(kLock)) return false;
  lock = lock.substr(at + host.size());
  pid_t process = 0;
  const auto [end, error] = std::from_chars(lock.data(), lock.data() + lock.size(), process);
  return error == std::errc() && *end == '.' && process > 0 &&
         (process == getpid() || (kill(process, 0) != 0 && errno == ESRCH));
}

std::string with_all_replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// The line of a compiler's first error; empty: there is none.
std::string first_error(const std::string& said) {
  const size_t error = said.find("error:");
  if (error == std::string::npos) return "";
  const size_t begin = said.rfind('\n', error) + 1;  // 0 where there is none
  return said.substr(begin, said.find('\n', error) - begin);
}

}  // namespace

Result<std::shared_ptr<const Library>> Library::load(const std::string& path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Status::Failed(path + ": cannot be loaded: " + dlerror());
  return std::shared_ptr<const Library>(new Library(handle, path));
}

Library::~Library() {
  dlclose(handle_);
}

void* Library::symbol(const char* name) const {
  return dlsym(handle_, name);
}

/// Where one library is made. Others leave it alone while its lock, a file beside it, is open
/// (Files::create_unless_open); destroyed, it leaves neither.
class LibraryCache::FolderBeside {
 public:
  /// Beside `folder`, which need not be there.
  static Result<std::shared_ptr<const FolderBeside>> make(Files& files, const std::string& folder) {
    RECMILL_RETURN_IF_ERROR(files.make_folder(folder.substr(0, folder.rfind('/'))));
    // Processes of two containers may have one number.
    uint64_t digits = 0;
    static_cast<void>(getentropy(&digits, sizeof digits));
    std::string stem;
    std::unique_ptr<WritableFile> lock;
    for (; lock == nullptr; ++digits) {
      stem = fmt::format("{}{}{}.{:016x}", folder, host_between_dots(), getpid(), digits);
      RECMILL_ASSIGN_OR_RETURN(lock, files.create_unless_open(stem + std::string(kLock)));
    }
    const std::shared_ptr<const FolderBeside> made(
        new FolderBeside(files, std::move(stem), std::move(lock)));
    RECMILL_RETURN_IF_ERROR(files.make_folder(made->path()));
    return made;
  }
  /// Removes what processes left that are no more.
  static void remove_abandoned(Files& files, const std::string& cache) {
    const auto names = files.list(cache);
    if (!names.ok()) return;  // not there yet; who writes into it says what is wrong otherwise
    for (const std::string& name : *names) {
      if (!is_of_no_other_process(name)) continue;
      const std::string path = cache + "/" + name;
      auto lock = files.create_unless_open(path);
      if (!lock.ok() || *lock == nullptr) continue;
      const FolderBeside removed(files, path.substr(0, path.size() - kLock.size()),
                                 *std::move(lock));
    }
  }

  // One that cannot be removed is in nobody's way, and keeps its lock, by which others try again.
  ~FolderBeside() {
    if (files_.remove(path_).ok()) static_cast<void>(files_.remove(lock_path_));
  }
  FolderBeside(const FolderBeside&) = delete;
  FolderBeside& operator=(const FolderBeside&) = delete;

  const std::string& path() const { return path_; }

 private:
  FolderBeside(Files& files, std::string stem, std::unique_ptr<WritableFile> lock)
      : files_(files),
        path_(stem + ".tmp"),
        lock_path_(std::move(stem) + std::string(kLock)),
        lock_(std::move(lock)) {}

  Files& files_;
  const std::string path_, lock_path_;
  const std::unique_ptr<WritableFile> lock_;
};

struct LibraryCache::Entry {
  const LibrarySource* source = nullptr;
  std::string folder;                               // where it is published
  std::shared_ptr<const FolderBeside> beside = {};  // where it is made
};

LibraryCache::LibraryCache(LibraryCacheOptions options, Files& files)
    : options_(std::move(options)), files_(files) {}

Result<std::shared_ptr<const Library>> LibraryCache::open(const Entry& entry) const {
  RECMILL_ASSIGN_OR_RETURN(const std::string source,
                           read_text(files_, entry.folder + "/source.cc"));
  RECMILL_ASSIGN_OR_RETURN(const std::string sum, read_text(files_, entry.folder + "/checksum"));
  const std::string path = entry.folder + "/library.so";
  RECMILL_ASSIGN_OR_RETURN(const std::string bytes, read_text(files_, path));
  if (source != entry.source->text || sum != checksum_of(bytes))
    return Status::Failed(path + ": damaged, its checksum does not hold; remove " + entry.folder);
  return Library::load(path);
}

Status LibraryCache::write_parts(const LibrarySource& source, const std::string& folder) {
  RECMILL_RETURN_IF_ERROR(files_.make_folder(folder));
  for (const auto* const parts : {&source.headers, &source.further}) {
    for (const auto& [name, text] : *parts) {
      const std::string path = folder + "/" + name;
      RECMILL_RETURN_IF_ERROR(files_.make_folder(path.substr(0, path.rfind('/'))));
      RECMILL_RETURN_IF_ERROR(write_atomically(files_, path, text));
    }
  }
  return write_atomically(files_, folder + "/source.cc", source.text);
}

// File by file, each whole: other processes may keep the same errors at the same time.
Status LibraryCache::keep_errors(const Entry& entry, const Outcome& outcome) {
  const std::string failed = entry.folder + ".failed", source = failed + "/source.cc";
  RECMILL_RETURN_IF_ERROR(write_parts(*entry.source, failed));
  const std::string& name = entry.source->name.empty() ? source : entry.source->name;
  std::string said = with_all_replaced(outcome.said, entry.beside->path() + "/source.cc", name);
  said = with_all_replaced(std::move(said), entry.beside->path(), failed);
  RECMILL_RETURN_IF_ERROR(write_atomically(files_, failed + "/errors.txt", said));
  if (outcome.late)
    return Status::Failed(fmt::format("{}: '{}' took more than {:.0f} s", source,
                                      options_.compiler.program, options_.compiler.seconds));
  const std::string first = with_all_replaced(first_error(said), failed + "/", "");
  return Status::Failed(fmt::format("{}: '{}' fails with status {}{}{}; what it says is in {}",
                                    source, options_.compiler.program, outcome.status,
                                    first.empty() ? "" : ": ", first, failed + "/errors.txt"));
}

Status LibraryCache::publish(const Entry& entry, const Outcome& outcome) {
  if (outcome.status != 0 || outcome.late) return keep_errors(entry, outcome);
  const std::string& beside = entry.beside->path();
  const auto bytes = read_text(files_, beside + "/library.so");
  if (!bytes.ok()) return keep_errors(entry, {1, false, outcome.said});
  RECMILL_RETURN_IF_ERROR(write_atomically(files_, beside + "/checksum", checksum_of(*bytes)));
  const Status renamed = files_.rename(beside, entry.folder);
  return files_.exists(entry.folder) ? Status() : renamed;  // another process may be faster
}

Status LibraryCache::compile(std::span<Entry> entries, const Compiler& compiler) {
  std::vector<Compiler::Job> jobs;
  for (Entry& entry : entries) {
    RECMILL_ASSIGN_OR_RETURN(entry.beside, FolderBeside::make(files_, entry.folder));
    const std::string& beside = entry.beside->path();
    RECMILL_RETURN_IF_ERROR(write_parts(*entry.source, beside));
    std::vector<std::string> sources = {beside + "/source.cc"};
    for (const auto& [name, text] : entry.source->further) sources.push_back(beside + "/" + name);
    jobs.push_back({std::move(sources), beside + "/library.so",
                    entry.source->headers.empty() ? "" : beside, entry.source->flags});
  }
  compilations_ += static_cast<int64_t>(jobs.size());
  RECMILL_ASSIGN_OR_RETURN(const auto outcomes, compiler.compile(jobs));
  Status first;
  for (size_t e = 0; e < entries.size(); ++e) {
    const Status published = publish(entries[e], outcomes[e]);
    if (first.ok()) first = published;
  }
  return first;
}

Result<std::vector<std::shared_ptr<const Library>>> LibraryCache::load(
    std::span<const LibrarySource> sources) {
  static std::mutex one_at_a_time;  // of this process; others make theirs in folders of their own
  std::lock_guard lock(one_at_a_time);
  RECMILL_ASSIGN_OR_RETURN(const Compiler compiler, Compiler::find(options_.compiler));
  std::vector<Entry> entries, missing;
  for (const LibrarySource& source : sources) {
    KeyText key;
    key.add(compiler.identity()).add(options_.processor).add(source.text);
    for (const auto* parts : {&source.headers, &source.further}) {
      key.add(parts->size());
      for (const auto& [name, text] : *parts) key.add(name).add(text);
    }
    key.add_all(source.flags);
    const std::string folder = fmt::format("{}/{:016x}", options_.folder, hash_bytes(key.text()));
    entries.push_back({&source, folder});
    const bool repeated = std::any_of(missing.begin(), missing.end(),
                                      [&](const Entry& entry) { return entry.folder == folder; });
    if (!repeated && !files_.exists(folder)) missing.push_back(entries.back());
  }
  if (!missing.empty()) {
    FolderBeside::remove_abandoned(files_, options_.folder);
    RECMILL_RETURN_IF_ERROR(compile(missing, compiler));
  }
  std::vector<std::shared_ptr<const Library>> libraries;
  for (const Entry& entry : entries) {
    RECMILL_ASSIGN_OR_RETURN(auto library, open(entry));
    libraries.push_back(std::move(library));
  }
  return libraries;
}

}  // namespace recmill::kernels::codegen
