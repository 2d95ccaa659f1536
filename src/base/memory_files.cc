// SPDX-License-Identifier: Apache-2.0
#include "base/memory_files.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace recmill {
namespace {

using Lengths = std::array<uint64_t, 2>;

bool is_under(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

}  // namespace

class MemoryFiles::Reading final : public ReadableFile {
 public:
  explicit Reading(Content content) : content_(std::move(content)) {}
  Result<size_t> read(uint64_t offset, std::span<std::byte> buffer) const override {
    if (offset >= content_->size()) return size_t{0};
    const size_t count = std::min(buffer.size(), content_->size() - static_cast<size_t>(offset));
    std::memcpy(buffer.data(), content_->data() + offset, count);
    return count;
  }
  uint64_t size() const override { return content_->size(); }

 private:
  const Content content_;
};

class MemoryFiles::Writing final : public WritableFile {
 public:
  explicit Writing(Content content) : content_(std::move(content)) {}
  Status append(std::span<const std::byte> bytes) override {
    content_->insert(content_->end(), bytes.begin(), bytes.end());
    return {};
  }
  Status sync() override { return {}; }
  Status close() override { return {}; }

 private:
  const Content content_;
};

std::vector<std::byte> MemoryFiles::pack() const {
  std::vector<std::byte> bytes;
  const auto add = [&](const void* from, size_t count) {
    const auto* const first = static_cast<const std::byte*>(from);
    bytes.insert(bytes.end(), first, first + count);
  };
  for (const auto& [path, content] : files_) {
    const Lengths lengths{path.size(), content->size()};
    add(lengths.data(), sizeof(lengths));
    add(path.data(), path.size());
    add(content->data(), content->size());
  }
  return bytes;
}

Result<std::unique_ptr<MemoryFiles>> MemoryFiles::unpack(std::span<const std::byte> bytes) {
  auto files = std::make_unique<MemoryFiles>();
  while (!bytes.empty()) {
    Lengths lengths{};
    if (bytes.size() < sizeof(lengths)) return Status::Failed("packed files are cut short");
    std::memcpy(lengths.data(), bytes.data(), sizeof(lengths));
    bytes = bytes.subspan(sizeof(lengths));
    if (lengths[0] > bytes.size() || lengths[1] > bytes.size() - lengths[0])
      return Status::Failed("packed files are cut short");
    const auto path = bytes.first(static_cast<size_t>(lengths[0]));
    const auto content = bytes.subspan(path.size(), static_cast<size_t>(lengths[1]));
    bytes = bytes.subspan(path.size() + content.size());
    files->files_[{reinterpret_cast<const char*>(path.data()), path.size()}] =
        std::make_shared<std::vector<std::byte>>(content.begin(), content.end());
  }
  return files;
}

Result<std::unique_ptr<ReadableFile>> MemoryFiles::open(const std::string& path) {
  const auto file = files_.find(path);
  if (file == files_.end()) return Status::Failed(path + ": is not there");
  return std::unique_ptr<ReadableFile>(std::make_unique<Reading>(file->second));
}

Result<std::unique_ptr<WritableFile>> MemoryFiles::create(const std::string& path) {
  auto& content = files_[path] = std::make_shared<std::vector<std::byte>>();
  return std::unique_ptr<WritableFile>(std::make_unique<Writing>(content));
}

Result<std::unique_ptr<WritableFile>> MemoryFiles::open_append(const std::string& path) {
  auto& content = files_[path];
  content = content == nullptr ? std::make_shared<std::vector<std::byte>>()
                               : std::make_shared<std::vector<std::byte>>(*content);
  return std::unique_ptr<WritableFile>(std::make_unique<Writing>(content));
}

Status MemoryFiles::rename(const std::string& from, const std::string& to) {
  if (!exists(from)) return Status::Failed(from + ": is not there");
  std::map<std::string, Content> files;
  std::set<std::string> folders;
  const auto moved = [&](const std::string& path) {
    return path == from || is_under(path, from) ? to + path.substr(from.size()) : path;
  };
  files_.erase(to);
  for (auto& [path, content] : files_) files[moved(path)] = std::move(content);
  for (const std::string& path : folders_) folders.insert(moved(path));
  files_ = std::move(files);
  folders_ = std::move(folders);
  return {};
}

Status MemoryFiles::remove(const std::string& path) {
  if (!exists(path)) return Status::Failed(path + ": is not there");
  std::erase_if(files_,
                [&](const auto& file) { return file.first == path || is_under(file.first, path); });
  std::erase_if(folders_, [&](const std::string& of) { return of == path || is_under(of, path); });
  return {};
}

Status MemoryFiles::make_folder(const std::string& path) {
  for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1))
    folders_.insert(path.substr(0, end));
  folders_.insert(path);
  return {};
}

Result<std::vector<std::string>> MemoryFiles::list(const std::string& folder) {
  if (!is_folder(folder)) return Status::Failed(folder + ": is no folder");
  std::set<std::string> names;
  const auto add = [&](const std::string& path) {
    if (is_under(path, folder))
      names.insert(
          path.substr(folder.size() + 1, path.find('/', folder.size() + 1) - folder.size() - 1));
  };
  for (const auto& [path, content] : files_) add(path);
  for (const std::string& path : folders_) add(path);
  return std::vector<std::string>(names.begin(), names.end());
}

bool MemoryFiles::exists(const std::string& path) {
  return files_.contains(path) || is_folder(path);
}

bool MemoryFiles::is_folder(const std::string& path) {
  return folders_.contains(path) ||
         std::ranges::any_of(files_, [&](const auto& file) { return is_under(file.first, path); });
}

Result<ChangeTimes> MemoryFiles::changed_at(const std::string& path) {
  return Status::Failed(path + ": files in memory have no times");
}

}  // namespace recmill
