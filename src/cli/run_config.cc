// SPDX-License-Identifier: Apache-2.0
#include "cli/run_config.h"

#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "cli/option_binder.h"
#include "cli/workloads.h"

namespace recmill::cli {
namespace {

// JSON's numbers and lists are TOML but for infinities, which no option has.
std::string inline_value(const Json& value) {
  if (value.is_string()) {
    const auto text = quote(value.get<std::string>());
    RECMILL_CHECK(text.ok(), text.status().message());  // what was read was TOML, or checked
    return *text;
  }
  if (!value.is_array()) return value.dump();
  std::string text = "[";
  for (const Json& item : value) text += (text.size() > 1 ? ", " : "") + inline_value(item);
  return text + "]";
}

bool is_list_of_sections(const Json& value) {
  return value.is_array() && !value.empty() && value.front().is_object();
}

void write_section(const Json& section, const std::string& path, std::string& out) {
  for (const auto& [key, value] : section.items()) {
    if (!value.is_object() && !is_list_of_sections(value)) {
      out += key + " = " + inline_value(value) + "\n";
    }
  }
  for (const auto& [key, value] : section.items()) {
    const std::string inner = path.empty() ? key : path + "." + key;
    if (value.is_object()) {
      out += "\n[" + inner + "]\n";
      write_section(value, inner, out);
    } else if (is_list_of_sections(value)) {
      for (const Json& item : value) {
        out += "\n[[" + inner + "]]\n";
        write_section(item, inner, out);
      }
    }
  }
}

/// Text of a configuration, and what its places and its run are named after.
struct ConfigText {
  std::string text, file, name;
};

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

train::UsersTools users_tools() {
  train::UsersTools tools;
  if (const std::string compiler = variable("CXX"); !compiler.empty()) tools.compiler = compiler;
  const std::string cache = variable("XDG_CACHE_HOME"), home = variable("HOME");
  if (!cache.empty()) {
    tools.cache = cache + "/recmill";
  } else if (!home.empty()) {
    tools.cache = home + "/.cache/recmill";
  }
  return tools;
}

bool is_bare_name(const std::string& path) {
  return path.find('/') == std::string::npos && !path.ends_with(".toml") &&
         !posix_files().exists(path);
}

Result<ConfigText> config_text(const std::string& path) {
  if (is_bare_name(path)) {
    RECMILL_ASSIGN_OR_RETURN(const std::string_view text, workload_text(path));
    return ConfigText{std::string(text), "workload " + path, path};
  }
  const std::string file = posix_files().is_folder(path) ? path + "/config.toml" : path;
  const auto text = read_text(posix_files(), file);
  if (!text.ok()) return Status::BadRequest(text.status().message());
  return ConfigText{*text, file, std::filesystem::path(file).stem().string()};
}

}  // namespace

Result<RunConfig> load_run_config(const std::string& path, const std::vector<std::string>& sets) {
  RECMILL_ASSIGN_OR_RETURN(const ConfigText from, config_text(path));
  RunConfig config;
  RECMILL_ASSIGN_OR_RETURN(config.source, parse_toml(from.text, from.file));
  for (const std::string& set : sets) RECMILL_RETURN_IF_ERROR(apply_set(config.source, set));
  RECMILL_RETURN_IF_ERROR(OptionBinder(config.source, "").bind(config.options));
  config.options.kernels.users = users_tools();
  if (config.options.name.empty()) {
    config.options.name = from.name;
    if (!quote(config.options.name).ok()) {
      return Status::BadRequest("name: is that of the file, which is no UTF-8 text; set another");
    }
  }
  return config;
}

std::string to_toml(const train::RunOptions& options) {
  std::string text;
  write_section(OptionWriter::write(options), "", text);
  return text;
}

}  // namespace recmill::cli
