// SPDX-License-Identifier: Apache-2.0
#include "cli/config_node.h"

#include <optional>
#include <sstream>

namespace {
// toml++ 3.3 asserts on some malformed documents; here that becomes an error of the document.
struct TomlAssertion {};
[[noreturn]] void fail_toml_assertion() {
  throw TomlAssertion{};
}
}  // namespace
#define TOML_ASSERT(condition) ((condition) ? void() : fail_toml_assertion())
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace recmill::cli {
namespace {

/// Parses, or null and the reason with its line.
std::optional<toml::table> parse(const std::string& text, const std::string& file,
                                 std::string& reason) {
  try {
    toml::parse_result parsed = toml::parse(text, file);
    if (parsed) return std::move(parsed).table();
    reason = ":" + std::to_string(parsed.error().source().begin.line) + ": " +
             std::string(parsed.error().description());
  } catch (const TomlAssertion&) {
    reason = ": is not valid TOML";
  }
  return std::nullopt;
}

ConfigNode convert(const toml::node& node, const std::string& file) {
  ConfigNode result;
  result.place = {file, static_cast<int>(node.source().begin.line)};
  if (const auto* table = node.as_table()) {
    ConfigNode::Table entries;
    for (const auto& [key, value] : *table) {
      entries.emplace(std::string(key.str()), convert(value, file));
    }
    result.value = std::move(entries);
  } else if (const auto* array = node.as_array()) {
    ConfigNode::Array items;
    for (const auto& item : *array) items.push_back(convert(item, file));
    result.value = std::move(items);
  } else if (const auto* boolean = node.as_boolean()) {
    result.value = boolean->get();
  } else if (const auto* integer = node.as_integer()) {
    result.value = integer->get();
  } else if (const auto* real = node.as_floating_point()) {
    result.value = real->get();
  } else if (const auto* text = node.as_string()) {
    result.value = text->get();
  } else {  // dates and times: no option takes one; kept as text for the message
    std::ostringstream out;
    node.visit([&](const auto& value) { out << value; });
    result.value = out.str();
  }
  return result;
}

void merge(ConfigNode& into, ConfigNode from) {
  auto* target = std::get_if<ConfigNode::Table>(&into.value);
  auto* source = std::get_if<ConfigNode::Table>(&from.value);
  if (target == nullptr || source == nullptr) {
    into = std::move(from);
    return;
  }
  for (auto& [key, value] : *source) {
    const auto [position, added] = target->try_emplace(key, value);
    if (!added) merge(position->second, std::move(value));
  }
}

}  // namespace

const char* ConfigNode::type_name() const {
  static constexpr const char* names[] = {"true or false", "an integer", "a number",
                                          "text",          "a list",     "a section"};
  return names[value.index()];
}

Result<ConfigNode> parse_toml(const std::string& text, const std::string& file) {
  std::string reason;
  const auto parsed = parse(text, file, reason);
  if (!parsed) return Status::BadRequest(file + reason);
  return convert(*parsed, file);
}

Status apply_set(ConfigNode& root, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    return Status::BadRequest("--set takes key=value, got '" + assignment + "'");
  }
  const std::string place = "--set " + assignment;
  std::string reason;
  auto parsed = parse(assignment, place, reason);
  if (!parsed) {
    const std::string key = assignment.substr(0, equals);
    parsed = parse(key + " = '''" + assignment.substr(equals + 1) + "'''", place, reason);
    if (!parsed) return Status::BadRequest("--set takes key=value, got '" + assignment + "'");
  }
  ConfigNode node = convert(*parsed, place);
  const auto forget_lines = [](auto&& self, ConfigNode& any) -> void {
    any.place.line = 0;
    if (auto* table = std::get_if<ConfigNode::Table>(&any.value)) {
      for (auto& [key, value] : *table) self(self, value);
    }
  };
  forget_lines(forget_lines, node);
  merge(root, std::move(node));
  return {};
}

const ConfigNode* find(const ConfigNode& root, std::string_view path) {
  const ConfigNode* node = &root;
  while (!path.empty()) {
    const size_t dot = path.find('.');
    const std::string key(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
    const auto* table = node->table();
    if (table == nullptr) return nullptr;
    const auto entry = table->find(key);
    if (entry == table->end()) return nullptr;
    node = &entry->second;
  }
  return node;
}

Status locate(const Status& status, const ConfigNode& root) {
  if (status.ok()) return status;
  const size_t colon = status.message().find(": ");
  if (colon == std::string::npos) return status;
  const ConfigNode* node = find(root, std::string_view(status.message()).substr(0, colon));
  if (node == nullptr || node == &root) return status;
  return status.at(node->place.text());
}

}  // namespace recmill::cli
