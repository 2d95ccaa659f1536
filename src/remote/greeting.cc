// SPDX-License-Identifier: Apache-2.0
#include "remote/greeting.h"

#include <algorithm>

#include "base/json/json.h"
#include "base/json/json_keys.h"
#include "table/home/shape_of_rows.h"

namespace recmill::remote {
namespace {

constexpr char kSource[] = "greeting";
constexpr int64_t kMostRanks = 1 << 16;

Bytes bytes_of(const Json& json) {
  return Bytes::text(json.dump());
}

Result<Json> parse(const Bytes& body) {
  Json json = Json::parse(body.text(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Status::Failed("a greeting is not a JSON object");
  KeyReader read{json, kSource, "", {}};
  int64_t protocol = 0;
  read("protocol", protocol);
  RECMILL_RETURN_IF_ERROR(read.status);
  if (protocol != kProtocol)
    return Status::Failed("protocol " + std::to_string(protocol) +
                          " of rows on servers; here it is " + std::to_string(kProtocol) +
                          ": use the same version of Recmill");
  return json;
}

template <NamedEnum Enum>
void read_named(KeyReader& read, const char* key, Enum& value) {
  std::string text;
  read(key, text);
  if (!read.status.ok()) return;
  for (const auto& [candidate, name] : EnumNames<Enum>::names)
    if (name == text) return void(value = candidate);
  read.status = Status::Failed(std::string(kSource) + ": " + read.at + key + ": \"" + text + "\"");
}

void read_table(KeyReader& read, TableSpec& table) {
  read("name", table.name);
  read("rows", table.rows);
  read("dim", table.dim);
  read_named(read, "precision", table.precision);
  read_named(read, "optimizer", table.optimizer.kind);
  read_named(read, "correction", table.optimizer.correction);
  read("initial_accumulator", table.optimizer.initial_accumulator);
  read("initial_scale", table.initial_scale);
  read("frozen", table.frozen);
  constexpr int64_t kMostRows = int64_t{1} << 48, kMostDim = 1 << 20;
  if (read.status.ok() &&
      (table.rows < 1 || table.rows > kMostRows || table.dim < 1 || table.dim > kMostDim))
    read.status = Status::Failed(std::string(kSource) + ": " + read.at + "rows or dim");
}

Status check_numbers(const Greeting& greeting) {
  const bool is_right = greeting.term >= 1 && greeting.ranks >= 1 && greeting.server >= 0 &&
                        greeting.server < greeting.servers && greeting.deadline > 0 &&
                        !greeting.run.empty();
  return is_right ? Status() : Status::Failed("a greeting with numbers out of their range");
}

}  // namespace

Bytes write_greeting(const Greeting& greeting) {
  Json json = {{"protocol", kProtocol},         {"run", greeting.run},
               {"term", greeting.term},         {"ranks", greeting.ranks},
               {"fresh", greeting.fresh},       {"again", greeting.again},
               {"server", greeting.server},     {"servers", greeting.servers},
               {"deadline", greeting.deadline}, {"seed", greeting.seed}};
  json["tables"] = Json::array();
  for (const TableSpec& table : greeting.tables)
    json["tables"].push_back(table::shape_of_rows(table));
  return bytes_of(json);
}

Result<Greeting> read_greeting(const Bytes& body) {
  RECMILL_ASSIGN_OR_RETURN(const Json json, parse(body));
  KeyReader read{json, kSource, "", {}};
  Greeting greeting;
  int64_t ranks = 0, server = 0, servers = 0;
  read("run", greeting.run);
  read("term", greeting.term);
  read("ranks", ranks);
  read("fresh", greeting.fresh);
  read("again", greeting.again);
  read("server", server);
  read("servers", servers);
  read("deadline", greeting.deadline);
  if (!json.contains("seed") || !json["seed"].is_number_integer())
    return Status::Failed("greeting: seed");
  greeting.seed = json["seed"].get<uint64_t>();
  if (!json.contains("tables") || !json["tables"].is_array())
    return Status::Failed("greeting: tables");
  RECMILL_RETURN_IF_ERROR(read.status);
  if (ranks > kMostRanks || servers > kMostRanks || server > servers)
    return Status::Failed("a greeting with numbers out of their range");
  greeting.ranks = static_cast<int>(ranks);
  greeting.server = static_cast<int>(server);
  greeting.servers = static_cast<int>(servers);
  for (const Json& of : json["tables"]) {
    KeyReader read_one{of, kSource, "tables: ", {}};
    read_table(read_one, greeting.tables.emplace_back());
    RECMILL_RETURN_IF_ERROR(read_one.status);
  }
  RECMILL_RETURN_IF_ERROR(check_numbers(greeting));
  return greeting;
}

std::string difference_of_tables(const Greeting& ours, const Greeting& theirs) {
  const auto differ = [](const std::string& what, const std::string& a, const std::string& b) {
    return what + " is " + a + " here and " + b + " there";
  };
  if (ours.seed != theirs.seed)
    return differ("the seed", std::to_string(ours.seed), std::to_string(theirs.seed));
  if (ours.tables.size() != theirs.tables.size())
    return differ("the number of tables", std::to_string(ours.tables.size()),
                  std::to_string(theirs.tables.size()));
  for (size_t t = 0; t < ours.tables.size(); ++t) {
    const Json a = table::shape_of_rows(ours.tables[t]), b = table::shape_of_rows(theirs.tables[t]);
    for (const auto& [key, value] : a.items())
      if (value != b[key])
        return differ(key + " of table '" + ours.tables[t].name + "'", value.dump(), b[key].dump());
  }
  return "";
}

Bytes write_guest_greeting() {
  return bytes_of({{"protocol", kProtocol}});
}

Status check_protocol(const Bytes& body) {
  return parse(body).status();
}

Bytes write_server_greeting(const ServerGreeting& greeting) {
  return bytes_of({{"protocol", kProtocol},
                   {"instance", greeting.instance},
                   {"checkpoints", greeting.checkpoints}});
}

Result<ServerGreeting> read_server_greeting(const Bytes& body) {
  RECMILL_ASSIGN_OR_RETURN(const Json json, parse(body));
  KeyReader read{json, kSource, "", {}};
  ServerGreeting greeting;
  read("instance", greeting.instance);
  read("checkpoints", greeting.checkpoints);
  RECMILL_RETURN_IF_ERROR(read.status);
  return greeting;
}

}  // namespace recmill::remote
