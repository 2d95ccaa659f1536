// SPDX-License-Identifier: Apache-2.0
// A configuration file as values with the place where each was written.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/files.h"
#include "base/status.h"

namespace recmill::config {

/// Where a value was written: a file and a line, or "--set" and line 0.
struct SourcePlace {
  std::string file;
  int line = 0;
  std::string text() const { return line > 0 ? file + ":" + std::to_string(line) : file; }
};

struct ConfigNode {
  using Array = std::vector<ConfigNode>;
  using Table = std::map<std::string, ConfigNode>;
  std::variant<bool, int64_t, double, std::string, Array, Table> value = Table{};
  SourcePlace place;

  const Table* table() const { return std::get_if<Table>(&value); }
  const Array* array() const { return std::get_if<Array>(&value); }
  /// "an integer", "a list" ...
  const char* type_name() const;
};

/// Parses TOML text; an error says file, line and what is wrong there.
Result<ConfigNode> parse_toml(const std::string& text, const std::string& file);

/// Applies one "key.path=value" of --set; the value is TOML, or text where it is not valid TOML.
Status apply_set(ConfigNode& root, const std::string& assignment);

/// The node at a dotted path, "tables[2].rows", or null.
const ConfigNode* find(const ConfigNode& root, std::string_view path);

/// Puts file and line in front of a status whose message begins with "dotted.key: "; those of the
/// item of a list where it is that which lacks the key.
Status locate(const Status& status, const ConfigNode& root);

}  // namespace recmill::config
