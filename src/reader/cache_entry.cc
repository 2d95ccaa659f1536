// SPDX-License-Identifier: Apache-2.0
#include "reader/cache_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <utility>

#include "base/hash.h"
#include "base/key_text.h"
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

// Of what was written just now: its sources cannot have changed later, if clocks are right.
void warn_of_the_future(int64_t written, int64_t changed, const std::string& source) {
  static std::atomic<bool> warned = false;
  if (written >= changed || warned.exchange(true)) return;
  log_warning(source +
              ": its time of change lies in the future, so that no index of it is trusted " +
              "and every run reads the whole file first; touch it");
}

}  // namespace

CacheEntry::CacheEntry(Files& files, std::string folder, std::string place, std::string key,
                       int64_t changed, std::string latest_source)
    : files_(&files),
      folder_(std::move(folder)),
      place_(std::move(place)),
      key_(std::move(key)),
      changed_(changed),
      latest_source_(std::move(latest_source)),
      lock_(mutex_of(place_)) {}

Result<CacheEntry> CacheEntry::open(Files& files, const std::string& cache,
                                    std::span<const std::string> sources, const std::string& rule,
                                    const std::string& suffix) {
  KeyText identity, key;
  int64_t latest = 0;
  std::string latest_source;
  for (const std::string& source : sources) {
    RECMILL_ASSIGN_OR_RETURN(const auto file, files.open(source));
    RECMILL_ASSIGN_OR_RETURN(const ChangeTimes changed, files.changed_at(source));
    if (changed.content > latest) {
      latest = changed.content;
      latest_source = source;
    }
    const std::string path = std::filesystem::absolute(source).lexically_normal().string();
    identity.add(path);
    key.add(path).add(file->size()).add(changed.content).add(changed.entry);
  }
  const std::string place =
      fmt::format("{}/{:016x}{}", cache, hash_bytes(identity.add(rule).text()), suffix);
  return CacheEntry(files, cache, place, key.add(rule).text(), latest, latest_source);
}

std::optional<std::string> CacheEntry::find() const {
  if (!files_->exists(place_)) return {};
  const auto written = files_->changed_at(place_);
  if (!written.ok() || written->content <= changed_) return {};
  auto content = read_text(*files_, place_);
  if (!content.ok()) return {};
  return *std::move(content);
}

void CacheEntry::keep(const std::string& content, const std::string& what) const {
  Status written = files_->make_folder(folder_);
  if (written.ok()) written = write_atomically(*files_, place_, content);
  if (written.ok()) {
    if (const auto at = files_->changed_at(place_); at.ok()) {
      warn_of_the_future(at->content, changed_, latest_source_);
    }
    return;
  }
  if (find()) return;
  log_warning("no " + what + " is kept: " + written.message());
}

}  // namespace recmill::reader
