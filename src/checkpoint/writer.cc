// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/writer.h"

#include <algorithm>
#include <filesystem>

#include "base/hash.h"
#include "base/json/json.h"
#include "checkpoint/reader.h"

namespace recmill::checkpoint {
namespace {

// Fewer bytes than these wait for the rows that follow them.
constexpr size_t kRunBytes = size_t{64} << 10;
// Entries that may wait for more rows at a time: weights and state of a table or two.
constexpr size_t kMostPending = 8;

/// Of a row's columns; none: all of them.
int64_t row_bytes_of(const EntrySpec& entry, ColumnRange columns) {
  return columns.count == 0 ? entry.row_bytes() : columns.count * size_of(entry.type);
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
  const std::string name = name_of(number);
  const std::string file_path = path + "/" + name;
  RECMILL_ASSIGN_OR_RETURN(auto file, files.create(file_path));
  std::unique_ptr<PartWriter> writer(new PartWriter(file_path, std::move(file)));
  writer->contents_.part.file = name;
  return writer;
}

Status PartWriter::add(const EntrySpec& entry, int64_t first_row, std::span<const std::byte> bytes,
                       ColumnRange columns) {
  return add_rows(entry, {first_row, {}, bytes, columns});
}

Status PartWriter::add(const EntrySpec& entry, std::span<const int64_t> rows,
                       std::span<const std::byte> bytes) {
  RECMILL_CHECK(rows.size() * entry.row_bytes() == bytes.size(), entry.name);
  return rows.empty() ? Status() : add_rows(entry, {rows[0], rows, bytes});
}

// At most a block of rows at a time.
Status PartWriter::add_rows(const EntrySpec& entry, RowBytes rows) {
  RECMILL_CHECK(entry.all_columns().contains(rows.columns), entry.name);
  if (rows.columns == entry.all_columns()) rows.columns = {};
  const auto row_bytes = static_cast<size_t>(row_bytes_of(entry, rows.columns));
  RECMILL_CHECK(row_bytes == 0 || rows.bytes.size() % row_bytes == 0, entry.name);
  RECMILL_RETURN_IF_ERROR(check_finite(entry, rows).at(path_));
  RECMILL_ASSIGN_OR_RETURN(Pending* const pending, pending_of(entry));
  while (!rows.bytes.empty()) {
    const size_t most = std::max<size_t>(1, kBlockBytes / row_bytes);
    const size_t count = std::min(rows.bytes.size() / row_bytes, most);
    const bool listed = !rows.listed.empty();
    RECMILL_RETURN_IF_ERROR(append(
        *pending, {listed ? rows.listed[0] : rows.first_row, rows.listed.first(listed ? count : 0),
                   rows.bytes.first(count * row_bytes), rows.columns}));
    rows.first_row += static_cast<int64_t>(count);
    if (listed) rows.listed = rows.listed.subspan(count);
    rows.bytes = rows.bytes.subspan(count * row_bytes);
  }
  return {};
}

Status PartWriter::add_rule(const EntrySpec& entry, const RowRule& rule) {
  RECMILL_ASSIGN_OR_RETURN(const Pending* const pending, pending_of(entry));
  contents_.entries[pending->entry].rule = rule;
  return {};
}

// The entry is in contents_ after this, even when it has no rows.
Result<PartWriter::Pending*> PartWriter::pending_of(const EntrySpec& entry) {
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
  RECMILL_CHECK(contents_.entries[found->second.entry].spec == entry, entry.name);
  return &found->second;
}

Status PartWriter::append(Pending& pending, const RowBytes& rows) {
  if (!pending.bytes.empty()) {
    const int64_t row_bytes = row_bytes_of(contents_.entries[pending.entry].spec, pending.columns);
    const int64_t next = pending.first_row + static_cast<int64_t>(pending.bytes.size()) / row_bytes;
    const bool follows = rows.listed.empty()
                             ? pending.listed.empty() && rows.first_row == next
                             : !pending.listed.empty() && rows.listed[0] > pending.listed.back();
    if (!follows || rows.columns != pending.columns ||
        pending.bytes.size() + rows.bytes.size() > kBlockBytes) {
      RECMILL_RETURN_IF_ERROR(write(pending));
    }
  }
  if (pending.bytes.empty()) {
    // Long enough: no need to copy it.
    if (rows.bytes.size() >= kRunBytes) return write_block(pending.entry, rows);
    pending.first_row = rows.first_row;
    pending.columns = rows.columns;
  }
  pending.listed.insert(pending.listed.end(), rows.listed.begin(), rows.listed.end());
  pending.bytes.insert(pending.bytes.end(), rows.bytes.begin(), rows.bytes.end());
  return {};
}

Status PartWriter::write(Pending& pending) {
  if (pending.bytes.empty()) return {};
  const Status status = write_block(
      pending.entry, {pending.first_row, pending.listed, pending.bytes, pending.columns});
  pending.listed.clear();
  pending.bytes.clear();
  return status;
}

Status PartWriter::write_block(size_t entry, const RowBytes& rows) {
  const auto row_numbers = std::as_bytes(rows.listed);
  Block block;
  block.offset = contents_.part.bytes;
  block.columns = rows.columns;
  block.rows = static_cast<int64_t>(rows.bytes.size()) /
               row_bytes_of(contents_.entries[entry].spec, rows.columns);
  block.first_row = rows.first_row;
  block.listed = !rows.listed.empty();
  block.last_row = block.listed ? rows.listed.back() : rows.first_row + block.rows - 1;
  block.crc = crc32c(rows.bytes, crc32c(row_numbers));
  if (block.listed) RECMILL_RETURN_IF_ERROR(file_->append(row_numbers));
  RECMILL_RETURN_IF_ERROR(file_->append(rows.bytes));
  contents_.part.bytes += static_cast<int64_t>(row_numbers.size() + rows.bytes.size());
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

Writer::Writer(Files& files, MadeFolders made, std::string folder, int64_t step,
               ExistingCheckpoint existing)
    : files_(files),
      made_(std::move(made)),
      folder_(std::move(folder)),
      step_(step),
      existing_(existing),
      beside_(folder_ + "/" + folder_name(step) + ".tmp") {}

Result<std::unique_ptr<Writer>> Writer::create(Files& files, const std::string& folder,
                                               int64_t step, ExistingCheckpoint existing) {
  RECMILL_ASSIGN_OR_RETURN(auto made, MadeFolders::make(files, folder));
  std::unique_ptr<Writer> writer(new Writer(files, std::move(made), folder, step, existing));
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
    // What is not whole was of no use.
    if (existing_ == ExistingCheckpoint::keep && Reader::open(files_, path).ok())
      return Status::Failed(path + ": is there already");
    RECMILL_RETURN_IF_ERROR(files_.remove(path));
  }
  RECMILL_RETURN_IF_ERROR(files_.rename(beside_, path));
  finished_ = true;
  return files_.sync_folder(folder_);
}

}  // namespace recmill::checkpoint
