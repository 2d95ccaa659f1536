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

namespace recmill::kernels::codegen {
namespace {

std::string checksum_of(const std::string& bytes) {
  return fmt::format("{:08x}\n", crc32c(std::as_bytes(std::span(bytes))));
}

/// Folders that libraries are made in: NAME.HOST.PROCESS.tmp. Machines may share a cache.
constexpr std::string_view kBeside = ".tmp";

std::string host_between_dots() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return fmt::format(".{}.", host);
}

std::string beside(const std::string& folder) {
  return fmt::format("{}{}{}{}", folder, host_between_dots(), getpid(), kBeside);
}

/// Whether the folder of that name was made by a process of this machine that is no more.
bool is_abandoned(std::string_view name) {
  const std::string host = host_between_dots();
  const size_t at = name.find(host);
  if (at == std::string_view::npos || !name.ends_with(kBeside)) return false;
  name = name.substr(at + host.size());
  pid_t process = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process);
  return error == std::errc() && std::string_view(end) == kBeside && process > 0 &&
         kill(process, 0) != 0 && errno == ESRCH;
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

struct LibraryCache::Entry {
  const LibrarySource* source = nullptr;
  std::string folder;  // where it is published
  std::string beside;  // where it is made, by this process
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

Status LibraryCache::write_parts(const Entry& entry) {
  RECMILL_RETURN_IF_ERROR(files_.make_folder(entry.beside));
  for (const auto* const parts : {&entry.source->headers, &entry.source->further}) {
    for (const auto& [name, text] : *parts) {
      const std::string path = entry.beside + "/" + name;
      RECMILL_RETURN_IF_ERROR(files_.make_folder(path.substr(0, path.rfind('/'))));
      RECMILL_RETURN_IF_ERROR(write_atomically(files_, path, text));
    }
  }
  return write_atomically(files_, entry.beside + "/source.cc", entry.source->text);
}

Status LibraryCache::keep_errors(const Entry& entry, const Outcome& outcome) {
  const std::string failed = entry.folder + ".failed", errors = failed + "/errors.txt";
  RECMILL_RETURN_IF_ERROR(write_atomically(files_, entry.beside + "/errors.txt", outcome.said));
  if (files_.exists(failed)) RECMILL_RETURN_IF_ERROR(files_.remove(failed));
  RECMILL_RETURN_IF_ERROR(files_.rename(entry.beside, failed));
  if (outcome.late)
    return Status::Failed(fmt::format("{}: '{}' took more than {:.0f} s", failed + "/source.cc",
                                      options_.compiler.program, options_.compiler.seconds));
  return Status::Failed(fmt::format("{}: '{}' fails with status {}; what it says is in {}",
                                    failed + "/source.cc", options_.compiler.program,
                                    outcome.status, errors));
}

Status LibraryCache::publish(const Entry& entry, const Outcome& outcome) {
  if (outcome.status != 0 || outcome.late) return keep_errors(entry, outcome);
  const auto bytes = read_text(files_, entry.beside + "/library.so");
  if (!bytes.ok()) return keep_errors(entry, {1, false, outcome.said});
  RECMILL_RETURN_IF_ERROR(
      write_atomically(files_, entry.beside + "/checksum", checksum_of(*bytes)));
  const Status renamed = files_.rename(entry.beside, entry.folder);
  if (renamed.ok() || !files_.exists(entry.folder)) return renamed;
  return files_.remove(entry.beside);  // another process was faster with the same
}

void LibraryCache::remove_abandoned() {
  const auto names = files_.list(options_.folder);
  if (!names.ok()) return;  // not there yet; who writes into it says what is wrong otherwise
  for (const std::string& name : *names) {
    // One that cannot be removed is in nobody's way.
    if (is_abandoned(name)) static_cast<void>(files_.remove(options_.folder + "/" + name));
  }
}

Status LibraryCache::compile(std::span<const Entry> entries, const Compiler& compiler) {
  std::vector<Compiler::Job> jobs;
  for (const Entry& entry : entries) {
    RECMILL_RETURN_IF_ERROR(write_parts(entry));
    std::vector<std::string> sources = {entry.beside + "/source.cc"};
    for (const auto& [name, text] : entry.source->further)
      sources.push_back(entry.beside + "/" + name);
    jobs.push_back({std::move(sources), entry.beside + "/library.so",
                    entry.source->headers.empty() ? "" : entry.beside, entry.source->flags});
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
    std::string all = compiler.identity() + options_.processor + source.text;
    for (const auto& [name, text] : source.headers) all += name + text;
    for (const auto& [name, text] : source.further) all += name + text;
    for (const std::string& flag : source.flags) all += flag;
    const std::string folder = fmt::format("{}/{:016x}", options_.folder, hash_bytes(all));
    entries.push_back({&source, folder, beside(folder)});
    const bool repeated = std::any_of(missing.begin(), missing.end(),
                                      [&](const Entry& entry) { return entry.folder == folder; });
    if (!repeated && !files_.exists(folder)) missing.push_back(entries.back());
  }
  if (!missing.empty()) {
    remove_abandoned();
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
