// SPDX-License-Identifier: Apache-2.0
#include "base/testing/faulty_files.h"

#include <algorithm>
#include <cstring>
#include <sstream>

namespace recmill {
namespace {

std::vector<std::string> components(const std::string& path) {
  std::vector<std::string> parts;
  std::stringstream stream(path);
  for (std::string part; std::getline(stream, part, '/');) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

}  // namespace

class FaultyFiles::Reading final : public ReadableFile {
 public:
  explicit Reading(std::shared_ptr<Node> node) : node_(std::move(node)) {}
  Result<size_t> read(uint64_t offset, std::span<std::byte> buffer) const override {
    if (offset >= node_->content.size()) return size_t{0};
    const size_t size = std::min<size_t>(buffer.size(), node_->content.size() - offset);
    std::memcpy(buffer.data(), node_->content.data() + offset, size);
    return size;
  }
  uint64_t size() const override { return node_->content.size(); }

 private:
  const std::shared_ptr<Node> node_;
};

class FaultyFiles::Writing final : public WritableFile {
 public:
  Writing(FaultyFiles& files, std::shared_ptr<Node> node, std::string path)
      : files_(files), node_(std::move(node)), path_(std::move(path)) {}

  Status append(std::span<const std::byte> bytes) override {
    const Status status = files_.operation(path_);
    const auto size = static_cast<int64_t>(bytes.size());
    const int64_t written =
        std::min(status.ok() ? size : size / 2, std::max<int64_t>(files_.bytes_left_, 0));
    node_->content.append(reinterpret_cast<const char*>(bytes.data()), written);
    files_.bytes_left_ -= written;
    if (status.ok() && written < size) return Status::Failed(path_ + ": no space left on device");
    return status;
  }
  Status sync() override {
    RECMILL_RETURN_IF_ERROR(files_.operation(path_));
    node_->synced_content = node_->content;
    return {};
  }
  Status close() override { return files_.operation(path_); }

 private:
  FaultyFiles& files_;
  const std::shared_ptr<Node> node_;
  const std::string path_;
};

FaultyFiles::FaultyFiles() : root_(std::make_shared<Node>()) {
  root_->folder = true;
}

Status FaultyFiles::operation(const std::string& path) {
  ++operations_;
  if (operations_left_ <= 1) {
    operations_left_ = 0;
    return Status::Failed(path + ": injected failure");
  }
  --operations_left_;
  return {};
}

std::shared_ptr<FaultyFiles::Node> FaultyFiles::find(const std::string& path) const {
  std::shared_ptr<Node> node = root_;
  for (const auto& part : components(path)) {
    const auto next = node->names.find(part);
    if (next == node->names.end()) return nullptr;
    node = next->second;
  }
  return node;
}

std::pair<std::shared_ptr<FaultyFiles::Node>, std::string> FaultyFiles::place(
    const std::string& path) const {
  auto parts = components(path);
  RECMILL_CHECK(!parts.empty(), path);
  std::shared_ptr<Node> node = root_;
  for (size_t i = 0; i + 1 < parts.size() && node != nullptr; ++i) {
    const auto next = node->names.find(parts[i]);
    node = next == node->names.end() ? nullptr : next->second;
  }
  return {node, parts.back()};
}

void FaultyFiles::recover(Node& node, Unsynced unsynced) {
  node.content = node.synced_content;
  if (unsynced == Unsynced::lost) node.names = node.synced_names;
  for (auto& [name, child] : node.names) recover(*child, unsynced);
}

void FaultyFiles::lose_power(Unsynced unsynced) {
  heal();
  recover(*root_, unsynced);
}

std::string& FaultyFiles::content(const std::string& path) {
  const auto node = find(path);
  RECMILL_CHECK(node != nullptr && !node->folder, path);
  return node->content;
}

Result<std::unique_ptr<ReadableFile>> FaultyFiles::open(const std::string& path) {
  auto node = find(path);
  if (node == nullptr) return Status::Failed(path + ": no such file");
  if (node->folder) return Status::Failed(path + ": is a folder, not a file");
  return std::unique_ptr<ReadableFile>(new Reading(std::move(node)));
}

Result<std::unique_ptr<WritableFile>> FaultyFiles::open_for_writing(const std::string& path,
                                                                    bool truncate) {
  RECMILL_RETURN_IF_ERROR(operation(path));
  const auto [folder, name] = place(path);
  if (folder == nullptr) return Status::Failed(path + ": no such folder");
  auto& node = folder->names[name];
  if (node == nullptr) node = std::make_shared<Node>();
  if (node->folder) return Status::Failed(path + ": is a folder");
  if (truncate) node->content.clear();
  return std::unique_ptr<WritableFile>(new Writing(*this, node, path));
}

Result<std::unique_ptr<WritableFile>> FaultyFiles::create(const std::string& path) {
  return open_for_writing(path, true);
}

Result<std::unique_ptr<WritableFile>> FaultyFiles::open_append(const std::string& path) {
  return open_for_writing(path, false);
}

Status FaultyFiles::rename(const std::string& from, const std::string& to) {
  RECMILL_RETURN_IF_ERROR(operation(to));
  const auto [old_folder, old_name] = place(from);
  const auto [new_folder, new_name] = place(to);
  const auto node = find(from);
  if (node == nullptr || new_folder == nullptr) return Status::Failed(from + ": no such file");
  const auto there = find(to);
  if (there != nullptr && there->folder && !there->names.empty()) {
    return Status::Failed(to + ": cannot rename to: folder not empty");
  }
  old_folder->names.erase(old_name);
  new_folder->names[new_name] = node;
  return {};
}

Status FaultyFiles::remove(const std::string& path) {
  RECMILL_RETURN_IF_ERROR(operation(path));
  const auto [folder, name] = place(path);
  if (folder != nullptr) folder->names.erase(name);
  return {};
}

Status FaultyFiles::make_folder(const std::string& path) {
  RECMILL_RETURN_IF_ERROR(operation(path));
  std::shared_ptr<Node> node = root_;
  for (const auto& part : components(path)) {
    auto& next = node->names[part];
    if (next == nullptr) {
      next = std::make_shared<Node>();
      next->folder = true;
    }
    if (!next->folder) return Status::Failed(path + ": is a file");
    node = next;
  }
  return {};
}

Status FaultyFiles::sync_folder(const std::string& path) {
  RECMILL_RETURN_IF_ERROR(operation(path));
  const auto node = find(path);
  if (node == nullptr || !node->folder) return Status::Failed(path + ": no such folder");
  node->synced_names = node->names;
  return {};
}

Result<std::vector<std::string>> FaultyFiles::list(const std::string& folder) {
  const auto node = find(folder);
  if (node == nullptr || !node->folder) return Status::Failed(folder + ": cannot list");
  std::vector<std::string> names;
  for (const auto& [name, child] : node->names) names.push_back(name);
  return names;
}

bool FaultyFiles::is_folder(const std::string& path) {
  const auto node = find(path);
  return node != nullptr && node->folder;
}

Result<ChangeTimes> FaultyFiles::changed_at(const std::string& path) {
  if (find(path) == nullptr) return Status::Failed(path + ": no such file");
  return ChangeTimes();
}

}  // namespace recmill
