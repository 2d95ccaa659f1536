// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/writer.h"

#include <algorithm>
#include <filesystem>

#include "base/hash.h"
#include "checkpoint/reader.h"

namespace recmill::checkpoint {
namespace {

// Scattered rows are gathered into a list up to this size; longer runs become blocks of their own.
constexpr size_t kRunBytes = size_t{64} << 10;
// Entries that may wait for more rows at a time: weights and state of a table or two.
constexpr size_t kMostPending = 8;

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

/// A folder whose name survives a loss of power, as do those above it.
Status make_durable_folder(Files& files, const std::string& path) {
  if (path.empty() || files.exists(path)) return {};
  const std::string above = std::filesystem::path(path).parent_path().string();
  RECMILL_RETURN_IF_ERROR(make_durable_folder(files, above));
  RECMILL_RETURN_IF_ERROR(files.make_folder(path));
  return files.sync_folder(above);
}

}  // namespace

std::string encode(const PartContents& contents) {
  Manifest manifest;
  manifest.parts = {contents.part};
  manifest.entries = contents.entries;
  return encode(manifest);
}

Result<PartContents> decode_part(const std::string& text) {
  auto manifest = decode_incomplete(text);
  if (!manifest.ok()) return manifest.status();
  if (manifest->parts.size() != 1) return Status::Failed("is not about one part");
  return PartContents{manifest->parts[0], std::move(manifest->entries)};
}

Result<std::unique_ptr<PartWriter>> PartWriter::create(Files& files, const std::string& path,
                                                       int number) {
  const std::string name = "part-" + std::to_string(number);
  RECMILL_ASSIGN_OR_RETURN(auto file, files.create(path + "/" + name));
  std::unique_ptr<PartWriter> writer(new PartWriter(std::move(file)));
  writer->contents_.part.file = name;
  return writer;
}

Status PartWriter::add(const EntrySpec& entry, int64_t first_row,
                       std::span<const std::byte> bytes) {
  const auto row_bytes = static_cast<size_t>(entry.row_bytes());
  RECMILL_CHECK(row_bytes == 0 || bytes.size() % row_bytes == 0, entry.name);
  auto found = pending_.find(entry.name);
  if (found == pending_.end()) {
    if (pending_.size() == kMostPending) {
      for (auto& [name, pending] : pending_) RECMILL_RETURN_IF_ERROR(write(pending));
      pending_.clear();
    }
    auto& entries = contents_.entries;
    auto known = std::find_if(entries.begin(), entries.end(),
                              [&](const Entry& e) { return e.spec.name == entry.name; });
    if (known == entries.end()) known = entries.insert(entries.end(), {entry, {}});
    found = pending_.emplace(entry.name, Pending{}).first;
    found->second.entry = static_cast<size_t>(known - entries.begin());
  }
  Pending& pending = found->second;
  RECMILL_CHECK(contents_.entries[pending.entry].spec == entry, entry.name);
  while (!bytes.empty()) {
    const size_t most = std::max<size_t>(1, kBlockBytes / row_bytes) * row_bytes;
    const size_t size = std::min(bytes.size(), most);
    RECMILL_RETURN_IF_ERROR(append(pending, first_row, bytes.first(size)));
    bytes = bytes.subspan(size);
    first_row += static_cast<int64_t>(size / row_bytes);
  }
  return {};
}

/// Adds at most one block of rows.
Status PartWriter::append(Pending& pending, int64_t first_row, std::span<const std::byte> bytes) {
  const EntrySpec& spec = contents_.entries[pending.entry].spec;
  const int64_t rows = static_cast<int64_t>(bytes.size()) / spec.row_bytes();
  const int64_t last = pending.row_numbers.empty() ? pending.first_row + pending.rows - 1
                                                   : pending.row_numbers.back();
  const bool follows = pending.row_numbers.empty() && first_row == last + 1;
  const bool scattered = first_row > last && bytes.size() < kRunBytes &&
                         (!pending.row_numbers.empty() || pending.bytes.size() < kRunBytes);
  if (pending.rows > 0 &&
      (pending.bytes.size() + bytes.size() > kBlockBytes || !(follows || scattered))) {
    RECMILL_RETURN_IF_ERROR(write(pending));
  }
  if (pending.rows == 0) {
    if (bytes.size() >= kRunBytes) {  // long enough: no need to copy it
      const Block block{0, 0, first_row, first_row + rows - 1, rows, false, 0};
      return write_block(pending.entry, block, {}, bytes);
    }
    pending.first_row = first_row;
  } else if (!follows && pending.row_numbers.empty()) {
    for (int64_t i = 0; i < pending.rows; ++i) {
      pending.row_numbers.push_back(pending.first_row + i);
    }
  }
  if (!pending.row_numbers.empty()) {
    for (int64_t i = 0; i < rows; ++i) pending.row_numbers.push_back(first_row + i);
  }
  pending.rows += rows;
  pending.bytes.insert(pending.bytes.end(), bytes.begin(), bytes.end());
  return {};
}

Status PartWriter::write(Pending& pending) {
  if (pending.rows == 0) return {};
  const bool listed = !pending.row_numbers.empty();
  const int64_t last = listed ? pending.row_numbers.back() : pending.first_row + pending.rows - 1;
  const Block block{0, 0, pending.first_row, last, pending.rows, listed, 0};
  const Status status =
      write_block(pending.entry, block, bytes_of(pending.row_numbers), pending.bytes);
  pending.row_numbers.clear();
  pending.bytes.clear();
  pending.rows = 0;
  return status;
}

Status PartWriter::write_block(size_t entry, Block block, std::span<const std::byte> row_numbers,
                               std::span<const std::byte> bytes) {
  block.offset = contents_.part.bytes;
  block.crc = crc32c(bytes, crc32c(row_numbers));
  if (!row_numbers.empty()) RECMILL_RETURN_IF_ERROR(file_->append(row_numbers));
  RECMILL_RETURN_IF_ERROR(file_->append(bytes));
  contents_.part.bytes += static_cast<int64_t>(row_numbers.size() + bytes.size());
  contents_.entries[entry].blocks.push_back(block);
  return {};
}

Result<PartContents> PartWriter::finish() {
  for (auto& [name, pending] : pending_) RECMILL_RETURN_IF_ERROR(write(pending));
  pending_.clear();
  RECMILL_RETURN_IF_ERROR(file_->sync());
  RECMILL_RETURN_IF_ERROR(file_->close());
  return std::move(contents_);
}

Writer::Writer(Files& files, std::string folder, int64_t step)
    : files_(files),
      folder_(std::move(folder)),
      step_(step),
      beside_(folder_ + "/" + folder_name(step) + ".tmp") {}

Result<std::unique_ptr<Writer>> Writer::create(Files& files, const std::string& folder,
                                               int64_t step) {
  RECMILL_RETURN_IF_ERROR(make_durable_folder(files, folder));
  std::unique_ptr<Writer> writer(new Writer(files, folder, step));
  if (files.exists(writer->beside_)) RECMILL_RETURN_IF_ERROR(files.remove(writer->beside_));
  RECMILL_RETURN_IF_ERROR(files.make_folder(writer->beside_));
  return writer;
}

Writer::~Writer() {
  if (!finished_ && files_.exists(beside_)) (void)files_.remove(beside_).ok();
}

Status Writer::finish(std::vector<PartContents> parts, Json properties) {
  Manifest manifest;
  manifest.step = step_;
  manifest.properties = std::move(properties);
  for (PartContents& contents : parts) {
    for (Entry& entry : contents.entries) {
      for (Block& block : entry.blocks) block.part = static_cast<int64_t>(manifest.parts.size());
      manifest.entries.push_back(std::move(entry));
    }
    manifest.parts.push_back(contents.part);
  }
  RECMILL_RETURN_IF_ERROR(arrange(manifest.entries).at(beside_));
  const std::string text = encode(manifest);
  RECMILL_ASSIGN_OR_RETURN(auto file, files_.create(beside_ + "/" + kManifestName));
  RECMILL_RETURN_IF_ERROR(file->append(std::as_bytes(std::span(text))));
  RECMILL_RETURN_IF_ERROR(file->sync());
  RECMILL_RETURN_IF_ERROR(file->close());
  RECMILL_RETURN_IF_ERROR(files_.sync_folder(beside_));
  return publish();
}

Status Writer::publish() {
  const std::string path = folder_ + "/" + folder_name(step_);
  if (files_.exists(path)) {
    // A whole checkpoint is never replaced; what is not whole was of no use.
    if (Reader::open(files_, path).ok()) return Status::Failed(path + ": is there already");
    RECMILL_RETURN_IF_ERROR(files_.remove(path));
  }
  RECMILL_RETURN_IF_ERROR(files_.rename(beside_, path));
  finished_ = true;
  return files_.sync_folder(folder_);
}

}  // namespace recmill::checkpoint
