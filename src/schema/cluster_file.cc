// SPDX-License-Identifier: Apache-2.0
#include "schema/cluster_file.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json/json.h"
#include "base/json/json_keys.h"
#include "base/json/json_lines.h"

namespace recmill {
namespace {

constexpr int64_t kVersion = 1;

std::string link_name(size_t to, size_t from) {
  return "of device " + std::to_string(to) + " from device " + std::to_string(from);
}

// A matrix [devices][devices] of numbers of at least 0; between two devices above `above`.
Result<std::vector<std::vector<double>>> matrix_of(const Json& json, const char* key,
                                                   size_t devices, double above,
                                                   const std::string& source) {
  const auto bad = [&](const std::string& what) {
    return Status::BadRequest(source + ": " + key + ": " + what);
  };
  if (!json.contains(key) || !json[key].is_array() || json[key].size() != devices)
    return bad("must have a line for each of " + std::to_string(devices) + " devices");
  std::vector<std::vector<double>> matrix;
  for (size_t to = 0; to < devices; ++to) {
    const Json& line = json[key][to];
    if (!line.is_array() || line.size() != devices)
      return bad("line " + std::to_string(to) + " must have a number for each device");
    matrix.emplace_back();
    for (size_t from = 0; from < devices; ++from) {
      if (!line[from].is_number()) return bad("the link " + link_name(to, from) + " is missing");
      const double value = line[from].get<double>();
      if (!std::isfinite(value) || value < 0 || (to != from && value <= above && above >= 0))
        return bad("the link " + link_name(to, from) + " takes " + std::to_string(value) +
                   " seconds");
      matrix[to].push_back(value);
    }
  }
  return matrix;
}

}  // namespace

Json to_json(const ClusterSpec& cluster) {
  Json json{{"version", kVersion}, {"devices", Json::array()}};
  for (const DeviceSpec& device : cluster.devices)
    json["devices"].push_back({{"name", device.name}, {"memory_bytes", device.memory_bytes}});
  json["message_seconds"] = json["byte_seconds"] = Json::array();
  for (int to = 0; to < cluster.size(); ++to) {
    Json messages = Json::array(), bytes = Json::array();
    for (int from = 0; from < cluster.size(); ++from) {
      messages.push_back(cluster.link(to, from).message_seconds);
      bytes.push_back(cluster.link(to, from).byte_seconds);
    }
    json["message_seconds"].push_back(std::move(messages));
    json["byte_seconds"].push_back(std::move(bytes));
  }
  return json;
}

Result<ClusterSpec> cluster_from_json(const Json& json, const std::string& source) {
  KeyReader read{json, source, "", {}};
  read.version(kVersion);
  RECMILL_RETURN_IF_ERROR(read.as_request());
  if (!json.contains("devices") || !json["devices"].is_array() || json["devices"].empty())
    return Status::BadRequest(source + ": no list devices");
  ClusterSpec cluster;
  for (const Json& item : json["devices"]) {
    DeviceSpec device;
    KeyReader of{item, source, "devices[].", {}};
    of("name", device.name);
    of("memory_bytes", device.memory_bytes);
    RECMILL_RETURN_IF_ERROR(of.as_request());
    if (device.memory_bytes <= 0)
      return Status::BadRequest(source + ": device '" + device.name + "' has no memory");
    cluster.devices.push_back(device);
  }
  const size_t devices = cluster.devices.size();
  RECMILL_ASSIGN_OR_RETURN(const auto messages,
                           matrix_of(json, "message_seconds", devices, -1, source));
  RECMILL_ASSIGN_OR_RETURN(const auto bytes, matrix_of(json, "byte_seconds", devices, 0, source));
  for (size_t to = 0; to < devices; ++to)
    for (size_t from = 0; from < devices; ++from)
      cluster.links.push_back({messages[to][from], bytes[to][from]});
  return cluster;
}

std::string table_of(const ClusterSpec& cluster) {
  std::string text = fmt::format("{:<24}{:>14}{:>18}\n", "device", "memory MiB", "lookups GB/s");
  for (int d = 0; d < cluster.size(); ++d) {
    const double seconds = cluster.link(d, d).byte_seconds;
    text += fmt::format("{:<24}{:>14}{:>18.2f}\n", cluster.devices[d].name,
                        cluster.devices[d].memory_bytes >> 20, seconds > 0 ? 1e-9 / seconds : 0.0);
  }
  if (cluster.size() < 2 || cluster.size() > 16) return text;
  text += "\nMbit/s, and microseconds a message: lines receive, columns send\n";
  for (int to = 0; to < cluster.size(); ++to) {
    text += fmt::format("{:>4}", to);
    for (int from = 0; from < cluster.size(); ++from) {
      const LinkSpec& link = cluster.link(to, from);
      text += to == from ? fmt::format("{:>18}", "-")
                         : fmt::format("{:>10.1f} {:>7.1f}", 8e-6 / link.byte_seconds,
                                       1e6 * link.message_seconds);
    }
    text += "\n";
  }
  return text;
}

Status write_cluster(Files& files, const std::string& path, const ClusterSpec& cluster) {
  return write_atomically(files, path, to_json(cluster).dump(1) + "\n");
}

Result<ClusterSpec> read_cluster(Files& files, const std::string& path) {
  RECMILL_ASSIGN_OR_RETURN(const Json json, read_json(files, path));
  return cluster_from_json(json, path);
}

}  // namespace recmill
