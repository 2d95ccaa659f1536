// SPDX-License-Identifier: Apache-2.0
#include "placement_plan/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/json/json.h"
#include "base/json/json_keys.h"
#include "base/json/json_lines.h"
#include "base/varint.h"

namespace recmill {
namespace {

constexpr int64_t kVersion = 1;
constexpr const char* kRows = ".rows";  // behind the name of the plan's file

std::string checksum_of(std::span<const std::byte> bytes) {
  return fmt::format("{:08x}", crc32c(bytes));
}

// {"device": home} for one copy, with "copies": "all" for one on every device, else with "from".
void append_path(Json& json, const FetchPath& path, int devices) {
  json["device"] = path.home;
  if (path == FetchPath::at(path.home, devices)) return;
  if (path == FetchPath::everywhere(path.home, devices)) {
    json["copies"] = "all";
  } else {
    json["from"] = path.from;
  }
}

Result<FetchPath> path_from(const Json& json, int devices, const std::string& source,
                            const std::string& at) {
  int64_t home = 0;
  KeyReader read{json, source, at, {}};
  read("device", home);
  RECMILL_RETURN_IF_ERROR(read.as_request());
  if (home < 0 || home >= devices)
    return Status::BadRequest(
        fmt::format("{}: {}device: {} of {} devices", source, at, home, devices));
  if (json.contains("copies")) {
    if (json["copies"] == "all") return FetchPath::everywhere(static_cast<int>(home), devices);
    return Status::BadRequest(source + ": " + at + "copies: only \"all\" is known");
  }
  FetchPath path = FetchPath::at(static_cast<int>(home), devices);
  if (!json.contains("from")) return path;
  std::vector<int64_t> from;
  read("from", from);
  RECMILL_RETURN_IF_ERROR(read.as_request());
  path.from.clear();
  for (const int64_t device : from) {
    if (device < 0 || device >= devices)
      return Status::BadRequest(
          fmt::format("{}: {}from: {} of {} devices", source, at, device, devices));
    path.from.push_back(static_cast<int>(device));
  }
  return path;
}

Json table_to_json(const TablePlacement& table, const PlacementPlan& plan) {
  Json json{{"table", table.table}, {"rows", table.rows}, {"dim", table.dim}};
  if (table.send_pooled) json["pooling"] = "send";
  if (!table.column_devices.empty()) {
    json["columns"] = table.column_devices;
    return json;
  }
  json["ranges"] = Json::array();
  int64_t begin = 0;
  for (const PlacedRun& run : table.runs) {
    Json range{{"rows", {begin, run.end}}};
    append_path(range, plan.paths[run.path], plan.devices);
    json["ranges"].push_back(std::move(range));
    begin = run.end;
  }
  json["listed"] = table.listed_rows.size();
  return json;
}

// By table: row less the row before it, less 1; path.
std::vector<std::byte> listed_bytes(const PlacementPlan& plan) {
  std::vector<std::byte> bytes;
  for (const TablePlacement& table : plan.tables) {
    int64_t last = -1;
    for (size_t i = 0; i < table.listed_rows.size(); ++i) {
      append_varint(bytes, static_cast<uint64_t>(table.listed_rows[i] - last - 1));
      append_varint(bytes, static_cast<uint64_t>(table.listed_paths[i]));
      last = table.listed_rows[i];
    }
  }
  return bytes;
}

Status read_ranges(const Json& json, const std::string& source, TablePlacement& table,
                   PlacementPlan& plan) {
  int64_t begin = 0;
  for (const Json& item : json) {
    const std::string at = fmt::format("table '{}', rows from {}: ", table.table, begin);
    std::vector<int64_t> rows;
    KeyReader read{item, source, at, {}};
    read("rows", rows);
    RECMILL_RETURN_IF_ERROR(read.as_request());
    if (rows.size() != 2)
      return Status::BadRequest(source + ": " + at + "rows: two numbers, the first and the end");
    if (rows[0] != begin)
      return Status::BadRequest(
          fmt::format("{}: table '{}', row {}: {}", source, table.table, std::min(rows[0], begin),
                      rows[0] < begin ? "two ranges have it" : "no range has it"));
    if (rows[1] <= rows[0])
      return Status::BadRequest(
          fmt::format("{}: table '{}', row {}: a range that ends before it begins", source,
                      table.table, rows[0]));
    RECMILL_ASSIGN_OR_RETURN(const FetchPath path, path_from(item, plan.devices, source, at));
    table.runs.push_back({rows[1], plan.path(path)});
    begin = rows[1];
  }
  return {};
}

Status read_table(const Json& json, const std::string& source, PlacementPlan& plan,
                  int64_t& listed) {
  TablePlacement table;
  KeyReader read{json, source, "tables[].", {}};
  read("table", table.table);
  read.at = "table '" + table.table + "': ";
  read("rows", table.rows);
  read("dim", table.dim);
  RECMILL_RETURN_IF_ERROR(read.as_request());
  if (json.contains("pooling")) {
    if (json["pooling"] != "send")
      return Status::BadRequest(source + ": " + read.at + "pooling: only \"send\" is known");
    table.send_pooled = true;
  }
  listed = 0;
  if (json.contains("columns")) {
    std::vector<int64_t> devices;
    read("columns", devices);
    RECMILL_RETURN_IF_ERROR(read.as_request());
    if (devices.empty())
      return Status::BadRequest(source + ": " + read.at + "columns: on no device");
    table.column_devices.assign(devices.begin(), devices.end());
  } else {
    read("listed", listed);
    RECMILL_RETURN_IF_ERROR(read.as_request());
    if (listed < 0 || listed > table.rows)
      return Status::BadRequest(source + ": " + read.at + "listed: more rows than the table has");
    if (!json.contains("ranges") || !json["ranges"].is_array())
      return Status::BadRequest(source + ": " + read.at + "neither ranges nor columns");
    RECMILL_RETURN_IF_ERROR(read_ranges(json["ranges"], source, table, plan));
  }
  plan.tables.push_back(std::move(table));
  return {};
}

Status read_listed(std::span<const std::byte> bytes, const std::string& source,
                   std::span<const int64_t> listed, PlacementPlan& plan) {
  VarintReader reader(bytes);
  for (size_t t = 0; t < plan.tables.size(); ++t) {
    TablePlacement& table = plan.tables[t];
    int64_t row = -1;
    for (int64_t i = 0; i < listed[t] && reader.whole(); ++i) {
      row += static_cast<int64_t>(reader.next() + 1);
      table.listed_rows.push_back(row);
      table.listed_paths.push_back(static_cast<int32_t>(reader.next()));
    }
  }
  if (!reader.whole() || !reader.at_end())
    return Status::Failed(source + ": damaged, other numbers of listed rows than in the plan");
  return {};
}

Status read_header(const Json& json, const std::string& path, PlacementPlan& plan) {
  KeyReader read{json, path, "", {}};
  read.version(kVersion);
  read("planner", plan.planner);
  int64_t devices = 0;
  read("devices", devices);
  RECMILL_RETURN_IF_ERROR(read.as_request());
  if (devices < 1 || devices > 1 << 20)
    return Status::BadRequest(fmt::format("{}: devices: {}", path, devices));
  plan.devices = static_cast<int>(devices);
  for (const char* list : {"paths", "tables"})
    if (!json.contains(list) || !json[list].is_array())
      return Status::BadRequest(path + ": no list " + list);
  for (const Json& item : json["paths"]) {
    const std::string at = fmt::format("paths[{}].", plan.paths.size());
    RECMILL_ASSIGN_OR_RETURN(FetchPath way, path_from(item, plan.devices, path, at));
    plan.paths.push_back(std::move(way));
  }
  return {};
}

bool has_rows(const Json& json) {
  return json.is_object() && json.contains("listed_crc32c");
}

Result<PlacementPlan> plan_from(const Json& json, const std::string& rows,
                                const std::string& path) {
  PlacementPlan plan;
  RECMILL_RETURN_IF_ERROR(read_header(json, path, plan));
  std::vector<int64_t> listed;
  for (const Json& item : json["tables"]) {
    listed.emplace_back();
    RECMILL_RETURN_IF_ERROR(read_table(item, path, plan, listed.back()));
  }
  const auto bytes = std::as_bytes(std::span(rows));
  const std::string source = has_rows(json) ? path + kRows : path;
  if (has_rows(json) && json["listed_crc32c"] != checksum_of(bytes))
    return Status::Failed(source + ": damaged, or of another plan: its checksum does not hold");
  RECMILL_RETURN_IF_ERROR(read_listed(bytes, source, listed, plan));
  return plan;
}

}  // namespace

PlanFiles encode_plan(const PlacementPlan& plan) {
  const std::vector<std::byte> listed = listed_bytes(plan);
  Json json{{"version", kVersion}, {"planner", plan.planner}, {"devices", plan.devices}};
  if (!listed.empty()) json["listed_crc32c"] = checksum_of(listed);
  json["paths"] = Json::array();
  for (const FetchPath& way : plan.paths) {
    json["paths"].push_back(Json::object());
    append_path(json["paths"].back(), way, plan.devices);
  }
  json["tables"] = Json::array();
  for (const TablePlacement& table : plan.tables)
    json["tables"].push_back(table_to_json(table, plan));
  return {json.dump(1) + "\n", {reinterpret_cast<const char*>(listed.data()), listed.size()}};
}

Result<PlacementPlan> decode_plan(const PlanFiles& files, const std::string& path) {
  const Json json = Json::parse(files.text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return Status::Failed(path + ": is not valid JSON");
  return plan_from(json, files.rows, path);
}

Status write_plan(Files& files, const std::string& path, const PlacementPlan& plan) {
  const PlanFiles contents = encode_plan(plan);
  if (!contents.rows.empty())
    RECMILL_RETURN_IF_ERROR(write_atomically(files, path + kRows, contents.rows));
  return write_atomically(files, path, contents.text);
}

Result<PlacementPlan> read_plan(Files& files, const std::string& path) {
  RECMILL_ASSIGN_OR_RETURN(const Json json, read_json(files, path));
  std::string rows;
  if (has_rows(json)) {
    RECMILL_ASSIGN_OR_RETURN(rows, read_text(files, path + kRows));
  }
  return plan_from(json, rows, path);
}

}  // namespace recmill
