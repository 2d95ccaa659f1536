// SPDX-License-Identifier: Apache-2.0
#include "stats/access_counts_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/hash.h"
#include "base/json/json.h"
#include "base/json/json_keys.h"
#include "stats/counts_codec.h"

namespace recmill::stats {
namespace {

constexpr std::string_view kMagic = "recmill-counts ";
constexpr size_t kPreambleBytes = 43;  // magic, version, checksum and length of the head
constexpr size_t kMostHeadBytes = size_t{1} << 30;

std::string preamble_of(std::string_view head) {
  return fmt::format("{}1 {:08x} {:016}\n", kMagic, crc32c(std::as_bytes(std::span(head))),
                     head.size());
}

/// What the head says of a table, and the table without its lists.
struct TableHead {
  TableCounts counts;
  ColumnSizes sizes;
  int64_t bytes = 0, crc = 0;  // of its columns
};

Json to_json(const TableHead& head) {
  const TableCounts& counts = head.counts;
  return {{"table", counts.table},
          {"rows", counts.rows},
          {"lookups", counts.lookups},
          {"bags", counts.bags},
          {"undercount", counts.undercount},
          {"range_rows", counts.range_rows},
          {"hot", head.sizes.hot},
          {"least", head.sizes.least},
          {"tail_counts", head.sizes.tail_counts},
          {"bytes", head.bytes},
          {"crc", head.crc}};
}

bool is_sound(const TableHead& head) {
  const TableCounts& c = head.counts;
  return c.rows >= 0 && c.rows <= kMostRows && c.lookups >= 0 && c.lookups < kMostLookups &&
         c.bags >= 0 && c.bags <= c.lookups && c.undercount >= 0 && c.undercount < kMostLookups &&
         c.range_rows >= 1 && head.sizes.ranges <= kMostListed && head.sizes.hot >= 0 &&
         head.sizes.hot <= c.rows && head.sizes.least >= 1 && head.sizes.least < kMostLookups &&
         head.sizes.tail_counts >= 0 && head.sizes.tail_counts <= kMostListed && head.bytes >= 0 &&
         head.bytes < kMostLookups;
}

Result<TableHead> table_head(const Json& json, const std::string& path, size_t table) {
  TableHead head;
  KeyReader take{json, path, fmt::format("tables[{}].", table), {}};
  take("table", head.counts.table);
  take("rows", head.counts.rows);
  take("lookups", head.counts.lookups);
  take("bags", head.counts.bags);
  take("undercount", head.counts.undercount);
  take("range_rows", head.counts.range_rows);
  take("hot", head.sizes.hot);
  take("least", head.sizes.least);
  take("tail_counts", head.sizes.tail_counts);
  take("bytes", head.bytes);
  take("crc", head.crc);
  RECMILL_RETURN_IF_ERROR(take.status);
  head.sizes.rows = head.counts.rows;
  head.sizes.ranges = ranges_of(head.counts.rows, std::max<int64_t>(1, head.counts.range_rows));
  if (!is_sound(head))
    return Status::Failed(fmt::format("{}: tables[{}] is not what it should be", path, table));
  return head;
}

struct FileHead {
  std::string model;
  int64_t samples = 0;
  std::vector<TableHead> tables;
};

Result<FileHead> file_head(const Json& json, const std::string& path) {
  FileHead head;
  KeyReader take{json, path, "", {}};
  take("model", head.model);
  take("samples", head.samples);
  RECMILL_RETURN_IF_ERROR(take.status);
  const Json tables = json.value("tables", Json());
  if (!tables.is_array() || head.samples < 0)
    return Status::Failed(path + ": its head is not what it should be");
  for (size_t t = 0; t < tables.size(); ++t) {
    RECMILL_ASSIGN_OR_RETURN(head.tables.emplace_back(), table_head(tables[t], path, t));
  }
  return head;
}

Result<std::string> read_bytes(const ReadableFile& file, uint64_t offset, size_t size) {
  std::string bytes(size, '\0');
  RECMILL_ASSIGN_OR_RETURN(const size_t got,
                           file.read(offset, std::as_writable_bytes(std::span(bytes))));
  bytes.resize(got);
  return bytes;
}

Result<FileHead> read_head(const ReadableFile& file, const std::string& path, uint64_t& end) {
  RECMILL_ASSIGN_OR_RETURN(const std::string preamble, read_bytes(file, 0, kPreambleBytes));
  if (!preamble.starts_with(kMagic))
    return Status::BadRequest(path + ": is not a file of access counts");
  if (preamble.compare(kMagic.size(), 2, "1 ") != 0) {
    return Status::Failed(path + ": has another version of the format than 1: " +
                          preamble.substr(0, preamble.find_first_of(" \n", kMagic.size())));
  }
  const auto damaged =
      Status::Failed(path + ": is damaged: the checksum or length of its head is wrong");
  if (preamble.size() < kPreambleBytes) return damaged;
  const size_t size = std::strtoull(preamble.c_str() + kPreambleBytes - 17, nullptr, 10);
  if (size > kMostHeadBytes || kPreambleBytes + size > file.size()) return damaged;
  RECMILL_ASSIGN_OR_RETURN(const std::string text, read_bytes(file, kPreambleBytes, size));
  if (preamble != preamble_of(text)) return damaged;
  end = kPreambleBytes + size;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return file_head(json, path);
}

/// Whether what `table` says in several ways is the same.
Status check_sums(const TableCounts& table) {
  int64_t lookups = 0, tail = 0;
  for (const auto* counts : {&table.hot_counts, &table.range_lookups}) {
    for (const int64_t count : *counts) {
      lookups += count;
      if (lookups > table.lookups) return Status::Failed("its rows have more lookups than it has");
    }
  }
  for (const int64_t rows : table.tail_rows_by_count) {
    tail += rows;
    if (tail > table.rows) return Status::Failed("its tail has more rows than it has");
  }
  if (lookups != table.lookups) return Status::Failed("its rows have fewer lookups than it has");
  if (tail != table.rows - std::ssize(table.hot_rows))
    return Status::Failed("its tail has fewer rows than it has");
  return {};
}

Status read_table(const ReadableFile& file, uint64_t offset, TableHead& head) {
  RECMILL_ASSIGN_OR_RETURN(const std::string bytes,
                           read_bytes(file, offset, static_cast<size_t>(head.bytes)));
  const auto span = std::as_bytes(std::span(bytes));
  if (std::ssize(bytes) != head.bytes || crc32c(span) != head.crc)
    return Status::Failed("its checksum is wrong");
  RECMILL_RETURN_IF_ERROR(decode_columns(head.sizes, span, head.counts));
  return check_sums(head.counts);
}

/// Tables, the one of the most bytes first.
std::vector<size_t> by_bytes(const std::vector<int64_t>& bytes) {
  std::vector<size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
  return order;
}

}  // namespace

Status write_counts(const AccessCounts& counts, const std::string& path, Files& files,
                    ThreadPool& pool) {
  std::vector<std::vector<std::byte>> columns(counts.tables.size());
  std::vector<TableHead> heads(counts.tables.size());
  std::vector<int64_t> listed;
  for (const TableCounts& table : counts.tables) listed.push_back(std::ssize(table.hot_rows));
  const std::vector<size_t> order = by_bytes(listed);
  pool.run(std::ssize(order), [&](int64_t i) {
    const size_t t = order[static_cast<size_t>(i)];
    const TableCounts& table = counts.tables[t];
    columns[t] = encode_columns(table);
    TableCounts& said = heads[t].counts;
    said.table = table.table;
    said.rows = table.rows;
    said.lookups = table.lookups;
    said.bags = table.bags;
    said.undercount = table.undercount;
    said.range_rows = table.range_rows;
    heads[t].sizes = sizes_of(table);
    heads[t].bytes = std::ssize(columns[t]);
    heads[t].crc = crc32c(columns[t]);
  });
  Json json = {{"model", counts.model}, {"samples", counts.samples}, {"tables", Json::array()}};
  for (const TableHead& head : heads) json["tables"].push_back(to_json(head));
  // Names may hold bytes that are no UTF-8; they must not stop counts from being saved.
  const std::string head = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  RECMILL_ASSIGN_OR_RETURN(const auto file, AtomicFile::create(files, path));
  const std::string first = preamble_of(head) + head;
  RECMILL_RETURN_IF_ERROR(file->append(std::as_bytes(std::span(first))));
  for (const auto& bytes : columns) RECMILL_RETURN_IF_ERROR(file->append(bytes));
  return file->close();
}

Result<AccessCounts> read_counts(const std::string& path, const std::string& model, Files& files,
                                 ThreadPool& pool) {
  RECMILL_ASSIGN_OR_RETURN(const auto file, files.open(path));
  uint64_t at = 0;
  RECMILL_ASSIGN_OR_RETURN(FileHead head, read_head(*file, path, at));
  if (!model.empty() && head.model != model) {
    return Status::BadRequest(
        fmt::format("{}: counts rows of another model or data set: its digest is {}, here it is {}",
                    path, head.model, model));
  }
  std::vector<uint64_t> offsets;
  std::vector<int64_t> bytes;
  for (const TableHead& table : head.tables) {
    offsets.push_back(at);
    bytes.push_back(table.bytes);
    at += static_cast<uint64_t>(table.bytes);
    if (at > file->size()) break;
  }
  if (at != file->size()) {
    return Status::Failed(fmt::format("{}: is cut short or too long: it has {} bytes, of {}", path,
                                      file->size(), at));
  }
  std::vector<Status> read(head.tables.size());
  const std::vector<size_t> order = by_bytes(bytes);
  pool.run(std::ssize(order), [&](int64_t i) {
    const size_t t = order[static_cast<size_t>(i)];
    read[t] = read_table(*file, offsets[t], head.tables[t]);
  });
  AccessCounts counts;
  counts.model = std::move(head.model);
  counts.samples = head.samples;
  for (size_t t = 0; t < read.size(); ++t) {
    if (!read[t].ok()) return read[t].at(path + ": table '" + head.tables[t].counts.table + "'");
    counts.tables.push_back(std::move(head.tables[t].counts));
  }
  return counts;
}

}  // namespace recmill::stats
