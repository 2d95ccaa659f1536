// SPDX-License-Identifier: Apache-2.0
// Takes values of known types out of a JSON object that somebody else may have damaged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/status.h"

namespace recmill {

/// Copies the value where it has the type; else returns false.
inline bool read_value(const Json& json, bool& value) {
  if (json.is_boolean()) value = json.get<bool>();
  return json.is_boolean();
}
inline bool read_value(const Json& json, int64_t& value) {
  if (json.is_number_integer()) value = json.get<int64_t>();
  return json.is_number_integer();
}
inline bool read_value(const Json& json, double& value) {
  if (json.is_number()) value = json.get<double>();
  return json.is_number();
}
inline bool read_value(const Json& json, std::string& value) {
  if (json.is_string()) value = json.get<std::string>();
  return json.is_string();
}
template <typename T>
bool read_value(const Json& json, std::vector<T>& values) {
  if (!json.is_array()) return false;
  values.resize(json.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (!read_value(json[i], values[i])) return false;
  }
  return true;
}

/// Takes the count at a place of a checkpoint's properties, such as "reader/row".
inline Status read_count(const Json& properties, const std::string& place, int64_t& value) {
  const Json::json_pointer at("/" + place);
  if (!properties.contains(at) || !properties[at].is_number_integer() ||
      properties[at].get<int64_t>() < 0) {
    return Status::Failed("property " + place + " is no count");
  }
  value = properties[at].get<int64_t>();
  return {};
}

/// Takes keys out of an object and remembers the first that is missing or of another type.
struct KeyReader {
  const Json& json;
  std::string source;  // a file or what is read: begins the error
  std::string at;      // before the key in the error
  Status status;

  template <typename T>
  void operator()(const char* key, T& value) {
    if (!status.ok()) return;
    if (!json.is_object() || !json.contains(key)) {
      status = Status::Failed(source + ": no key " + at + key);
    } else if (!read_value(json[key], value)) {
      status = Status::Failed(source + ": " + at + key + ": a value of another type");
    }
  }
  /// The status where a user may have written what is read: what is wrong is a wrong request.
  Status as_request() const { return status.ok() ? status : Status::BadRequest(status.message()); }
  /// Takes the key "version", which must be `known`.
  void version(int64_t known) {
    int64_t version = 0;
    (*this)("version", version);
    if (!status.ok() || version == known) return;
    status = Status::Failed(source + ": version " + std::to_string(version) + "; " +
                            std::to_string(known) + " is known here");
  }
};

}  // namespace recmill
