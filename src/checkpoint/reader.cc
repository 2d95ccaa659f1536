// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/reader.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/hash.h"

namespace recmill::checkpoint {
namespace {

// Blocks kept: enough for the blocks of one range of rows that 16 ranks wrote.
constexpr size_t kLoadedBlocks = 16;

}  // namespace

Result<std::unique_ptr<Reader>> Reader::open(Files& files, const std::string& path) {
  const std::string manifest_path = path + "/" + kManifestName;
  RECMILL_ASSIGN_OR_RETURN(const std::string text, read_text(files, manifest_path));
  auto manifest = decode(text);
  if (!manifest.ok()) return manifest.status().at(manifest_path);
  std::unique_ptr<Reader> reader(new Reader(path, *std::move(manifest)));
  for (const Part& part : reader->manifest_.parts) {
    RECMILL_ASSIGN_OR_RETURN(auto file, files.open(path + "/" + part.file));
    if (file->size() != static_cast<uint64_t>(part.bytes)) {
      return Status::Failed(path + "/" + part.file + ": has " + std::to_string(file->size()) +
                            " bytes instead of " + std::to_string(part.bytes));
    }
    reader->parts_.push_back(std::move(file));
  }
  return reader;
}

const Entry* Reader::find(const std::string& name) const {
  const auto& entries = manifest_.entries;
  const auto found = std::lower_bound(
      entries.begin(), entries.end(), name,
      [](const Entry& entry, const std::string& wanted) { return entry.spec.name < wanted; });
  return found != entries.end() && found->spec.name == name ? &*found : nullptr;
}

Result<const Entry*> Reader::expect(const EntrySpec& spec) const {
  const Entry* entry = find(spec.name);
  if (entry == nullptr) return Status::Failed(path_ + ": has no '" + spec.name + "'");
  if (entry->spec != spec) {
    return Status::Failed(path_ + ": '" + spec.name + "' is " + entry->spec.text() +
                          " instead of " + spec.text());
  }
  return entry;
}

Result<const Reader::Loaded*> Reader::load(const Entry& entry, const Block& block) {
  for (auto it = loaded_.begin(); it != loaded_.end(); ++it) {
    if (it->block != &block) continue;
    loaded_.splice(loaded_.begin(), loaded_, it);
    return const_cast<const Loaded*>(&loaded_.front());
  }
  if (loaded_.size() < kLoadedBlocks) {
    loaded_.emplace_front();
  } else {
    loaded_.splice(loaded_.begin(), loaded_, std::prev(loaded_.end()));
  }
  Loaded& loaded = loaded_.front();
  loaded.block = nullptr;
  loaded.bytes.resize(block.bytes(entry.spec));
  const auto damaged = [&](const std::string& what) {
    return Status::Failed(path_ + "/" + manifest_.parts[block.part].file + ": the block at byte " +
                          std::to_string(block.offset) + " (" + entry.spec.name + ", rows " +
                          std::to_string(block.first_row) + " to " +
                          std::to_string(block.last_row) + ") " + what);
  };
  RECMILL_ASSIGN_OR_RETURN(const size_t size, parts_[block.part]->read(block.offset, loaded.bytes));
  if (size != loaded.bytes.size()) return damaged("is cut short");
  if (crc32c(loaded.bytes) != block.crc) return damaged("is damaged: its checksum is wrong");
  loaded.row_numbers.resize(block.listed ? block.rows : 0);
  const size_t list_bytes = loaded.row_numbers.size() * sizeof(int64_t);
  if (block.listed) std::memcpy(loaded.row_numbers.data(), loaded.bytes.data(), list_bytes);
  if (block.listed && (!std::is_sorted(loaded.row_numbers.begin(), loaded.row_numbers.end()) ||
                       loaded.row_numbers.front() != block.first_row ||
                       loaded.row_numbers.back() != block.last_row)) {
    return damaged("lists other rows than the manifest");
  }
  loaded.rows = loaded.bytes.data() + list_bytes;
  loaded.block = &block;
  return const_cast<const Loaded*>(&loaded);
}

Status Reader::read(const Entry& entry, int64_t first, int64_t count, ColumnRange columns,
                    std::span<std::byte> out) {
  const int64_t size = size_of(entry.spec.type), width = columns.count * size;
  const int64_t end = first + count;
  RECMILL_CHECK(first >= 0 && count >= 0 && end <= entry.spec.rows(), entry.spec.name);
  RECMILL_CHECK(entry.spec.all_columns().contains(columns), entry.spec.name);
  RECMILL_CHECK(out.size() == static_cast<size_t>(count * width), entry.spec.name);
  if (entry.rule) make_rows(*entry.rule, entry.spec, first, count, columns, out);
  int64_t found = 0;  // bytes
  // Listed blocks overlap, so last_row is not sorted: only the end of the walk is known.
  for (const Block& block : entry.blocks) {
    if (block.first_row >= end) break;
    const ColumnRange there = block.columns_of(entry.spec), common = there.common(columns);
    if (block.last_row < first || common.count == 0) continue;
    RECMILL_ASSIGN_OR_RETURN(const Loaded* loaded, load(entry, block));
    // Rows [from, from + rows) of the block, which follow each other from `row` on.
    const auto copy = [&](int64_t from, int64_t rows, int64_t row) {
      const std::byte* source =
          loaded->rows + (from * there.count + common.first - there.first) * size;
      std::byte* to = out.data() + (row - first) * width + (common.first - columns.first) * size;
      found += rows * common.count * size;
      if (there == columns) {
        std::copy_n(source, rows * width, to);
        return;
      }
      for (int64_t i = 0; i < rows; ++i, source += there.count * size, to += width)
        std::memcpy(to, source, common.count * size);
    };
    if (!block.listed) {
      const int64_t from = std::max(first, block.first_row);
      copy(from - block.first_row, std::min(end, block.last_row + 1) - from, from);
      continue;
    }
    const auto& numbers = loaded->row_numbers;
    auto row = std::lower_bound(numbers.begin(), numbers.end(), first);
    for (; row != numbers.end() && *row < end; ++row) copy(row - numbers.begin(), 1, *row);
  }
  // Rows that are there twice leave others out, or make more than there are.
  if (entry.rule ? found > count * width : found != count * width) {
    return Status::Failed(path_ + ": " + std::to_string(found / width) + " rows of '" +
                          entry.spec.name + "' are there from " + std::to_string(first) +
                          " on, of " + std::to_string(count));
  }
  return {};
}

Status Reader::verify() {
  for (const Entry& entry : manifest_.entries) RECMILL_RETURN_IF_ERROR(check_once(entry));
  return {};
}

// What the manifest says of rows that follow each other was checked when it was read.
Status Reader::check_once(const Entry& entry) {
  const bool listed = std::ranges::any_of(entry.blocks, &Block::listed);
  std::map<int64_t, std::vector<bool>> there;  // by first column: rows; where some are listed
  for (const Block& block : entry.blocks) {
    RECMILL_ASSIGN_OR_RETURN(const Loaded* loaded, load(entry, block));
    if (!listed) continue;
    auto& rows = there[block.columns_of(entry.spec).first];
    rows.resize(entry.spec.rows());
    for (int64_t i = 0; i < block.rows; ++i) {
      const int64_t row = block.listed ? loaded->row_numbers[i] : block.first_row + i;
      if (rows[row]) {
        return Status::Failed(path_ + ": row " + std::to_string(row) + " of '" + entry.spec.name +
                              "' is there twice");
      }
      rows[row] = true;
    }
  }
  return {};
}

}  // namespace recmill::checkpoint
