// SPDX-License-Identifier: Apache-2.0
#include "reader/cache_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "base/hash.h"
#include "base/log.h"

namespace recmill::reader {
namespace {

// One for each place that this process has asked for.
std::mutex& mutex_of(const std::string& place) {
  static std::mutex guard;
  static std::map<std::string, std::mutex> mutexes;
  const std::lock_guard lock(guard);
  return mutexes[place];
}

}  // namespace

CacheEntry::CacheEntry(Files& files, std::string folder, std::string place, std::string key,
                       int64_t changed)
    : files_(&files),
      folder_(std::move(folder)),
      place_(std::move(place)),
      key_(std::move(key)),
      changed_(changed),
      lock_(mutex_of(place_)) {}

Result<CacheEntry> CacheEntry::open(Files& files, const std::string& cache,
                                    std::span<const std::string> sources, const std::string& rule,
                                    const std::string& suffix) {
  std::string identity, key;
  int64_t latest = 0;
  for (const std::string& source : sources) {
    RECMILL_ASSIGN_OR_RETURN(const auto file, files.open(source));
    RECMILL_ASSIGN_OR_RETURN(const int64_t changed, files.changed_at(source));
    latest = std::max(latest, changed);
    const std::string path = std::filesystem::absolute(source).lexically_normal().string();
    identity += path + '\n';
    key += fmt::format("{}\n{}\n{}\n", path, file->size(), changed);
  }
  const std::string place = fmt::format("{}/{:016x}{}", cache, hash_bytes(identity + rule), suffix);
  return CacheEntry(files, cache, place, key + rule, latest);
}

std::optional<std::string> CacheEntry::find() const {
  if (!files_->exists(place_)) return {};
  const auto written = files_->changed_at(place_);
  if (!written.ok() || *written <= changed_) return {};
  auto content = read_text(*files_, place_);
  if (!content.ok()) return {};
  return *std::move(content);
}

void CacheEntry::keep(const std::string& content, const std::string& what) const {
  Status written = files_->make_folder(folder_);
  if (written.ok()) written = write_atomically(*files_, place_, content);
  if (written.ok() || find()) return;
  log_warning("no " + what + " is kept: " + written.message());
}

}  // namespace recmill::reader
