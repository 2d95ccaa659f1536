// SPDX-License-Identifier: Apache-2.0
#include "hotset_plan/hot_set_file.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "base/json/json.h"
#include "base/json/json_keys.h"
#include "base/json/json_lines.h"
#include "base/varint.h"

namespace recmill {
namespace {

constexpr int64_t kVersion = 1;
constexpr const char* kRows = ".rows";  // behind the name of the set's file

std::string checksum_of(std::span<const std::byte> bytes) {
  return fmt::format("{:08x}", crc32c(bytes));
}

// By table: row less the row before it, less 1.
std::vector<std::byte> listed_bytes(const HotSet& set) {
  std::vector<std::byte> bytes;
  for (const HotTable& table : set.tables) {
    int64_t last = -1;
    for (const int64_t row : table.hot_rows) {
      append_varint(bytes, static_cast<uint64_t>(row - last - 1));
      last = row;
    }
  }
  return bytes;
}

Json to_json(const HotSet& set) {
  Json json{{"version", kVersion},
            {"model", set.model},
            {"inputs", set.inputs},
            {"cutoff", set.cutoff},
            {"tables", Json::array()}};
  for (const HotTable& table : set.tables) {
    Json entry{{"table", table.table}, {"rows", table.rows}};
    if (table.all_hot) {
      entry["all_hot"] = true;
    } else {
      entry["listed"] = table.hot_rows.size();
    }
    json["tables"].push_back(std::move(entry));
  }
  return json;
}

Status read_table(const Json& json, const std::string& source, HotTable& table, int64_t& listed) {
  KeyReader read{json, source, "tables[].", {}};
  read("table", table.table);
  read.at = "table '" + table.table + "': ";
  read("rows", table.rows);
  if (json.is_object() && json.contains("all_hot")) {
    read("all_hot", table.all_hot);
  } else {
    read("listed", listed);
  }
  RECMILL_RETURN_IF_ERROR(read.status);
  if (table.rows < 0 || listed < 0 || listed > table.rows)
    return Status::Failed(source + ": " + read.at + "more rows are listed than the table has");
  return {};
}

Status read_listed(std::span<const std::byte> bytes, const std::string& source,
                   std::span<const int64_t> listed, HotSet& set) {
  VarintReader reader(bytes);
  for (size_t t = 0; t < set.tables.size(); ++t) {
    HotTable& table = set.tables[t];
    int64_t last = -1;
    for (int64_t i = 0; i < listed[t]; ++i) {
      const uint64_t skipped = reader.next();
      if (!reader.whole() || skipped >= static_cast<uint64_t>(table.rows - last - 1))
        return Status::Failed(source + ": damaged, table '" + table.table + "'");
      last += static_cast<int64_t>(skipped) + 1;
      table.hot_rows.push_back(last);
    }
  }
  return reader.at_end() ? Status() : Status::Failed(source + ": damaged, more rows than listed");
}

bool has_rows(const Json& json) {
  return json.is_object() && json.contains("listed_crc32c");
}

Result<HotSet> set_from(const Json& json, const std::string& rows, const std::string& path) {
  HotSet set;
  KeyReader read{json, path, "", {}};
  read.version(kVersion);
  read("model", set.model);
  read("inputs", set.inputs);
  read("cutoff", set.cutoff);
  RECMILL_RETURN_IF_ERROR(read.status);
  if (!json.contains("tables") || !json["tables"].is_array())
    return Status::Failed(path + ": no list tables");
  std::vector<int64_t> listed;
  for (const Json& entry : json["tables"])
    RECMILL_RETURN_IF_ERROR(
        read_table(entry, path, set.tables.emplace_back(), listed.emplace_back()));
  const auto bytes = std::as_bytes(std::span(rows));
  const std::string source = has_rows(json) ? path + kRows : path;
  if (has_rows(json) && json["listed_crc32c"] != checksum_of(bytes))
    return Status::Failed(source + ": damaged, or of another hot set: its checksum does not hold");
  RECMILL_RETURN_IF_ERROR(read_listed(bytes, source, listed, set));
  return set;
}

}  // namespace

HotSetFiles encode_hot_set(const HotSet& set) {
  const std::vector<std::byte> listed = listed_bytes(set);
  Json json = to_json(set);
  if (!listed.empty()) json["listed_crc32c"] = checksum_of(listed);
  return {json.dump(1) + "\n", {reinterpret_cast<const char*>(listed.data()), listed.size()}};
}

Result<HotSet> decode_hot_set(const HotSetFiles& files, const std::string& path) {
  const Json json = Json::parse(files.text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return Status::Failed(path + ": is not valid JSON");
  return set_from(json, files.rows, path);
}

Status write_hot_set(Files& files, const std::string& path, const HotSet& set) {
  const HotSetFiles contents = encode_hot_set(set);
  if (!contents.rows.empty())
    RECMILL_RETURN_IF_ERROR(write_atomically(files, path + kRows, contents.rows));
  return write_atomically(files, path, contents.text);
}

Result<HotSet> read_hot_set(Files& files, const std::string& path) {
  RECMILL_ASSIGN_OR_RETURN(const Json json, read_json(files, path));
  std::string rows;
  if (has_rows(json)) {
    RECMILL_ASSIGN_OR_RETURN(rows, read_text(files, path + kRows));
  }
  return set_from(json, rows, path);
}

}  // namespace recmill
