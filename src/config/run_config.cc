// SPDX-License-Identifier: Apache-2.0
#include "config/run_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "base/json/json.h"
#include "base/json/json_lines.h"
#include "base/log.h"
#include "base/paths.h"
#include "config/old_names.h"
#include "config/option_binder.h"
#include "config/workloads.h"

namespace recmill::config {
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

/// Whether the user said it for this call, and so relative to the current folder.
bool is_set_here(const RunConfig& config, std::string_view key) {
  const ConfigNode* const node = find(config.source, key);
  return node != nullptr && node->place.file.starts_with("--set");
}

/// The paths of a configuration but those of [data], which are relative to a folder of their own.
std::vector<std::pair<std::string_view, std::string*>> paths_of(train::RunOptions& options) {
  return {{"data.cache", &options.data.cache},
          {"placement.plan", &options.placement.plan},
          {"placement.counts", &options.placement.counts},
          {"placement.cluster", &options.placement.cluster},
          {"hotset.plan", &options.hotset.plan},
          {"hotset.folder", &options.hotset.folder},
          {"hotset.replay", &options.hotset.replay},
          {"kernels.record", &options.kernels.record},
          {"kernels.cache", &options.kernels.cache},
          {"lookahead.token_file", &options.lookahead.token_file},
          {"lookahead.tls_ca", &options.lookahead.tls_ca},
          {"train.runs", &options.train.runs}};
}

/// The files of [data] are relative to the base, those that are set here to the current folder.
void use_base_of_data(RunConfig& config) {
  DataOptions& data = config.options.data;
  data.base = config.options.base;
  if (is_set_here(config, "data.path")) data.path = whole_path(data.path);
  if (!data.path.empty()) return;
  for (const auto& [key, files] :
       {std::pair{"data.train", &data.train}, std::pair{"data.eval", &data.eval}})
    if (is_set_here(config, key))
      for (std::string& file : *files) file = path_from(whole_path("."), file);
}

/// Has paths that are relative to another folder than the current one go from there. Where that
/// folder is gone they are as those without one.
void use_base(RunConfig& config) {
  train::RunOptions& options = config.options;
  if (!options.base.empty() && !posix_files().is_folder(options.base)) {
    log_warning("base: there is no folder " + options.base +
                "; paths are relative to the current folder");
    options.base.clear();
  }
  if (same_place(options.base, ".")) options.base.clear();
  if (options.base.empty()) return;
  options.base = whole_path(options.base);
  const std::string here = whole_path(".");
  for (const auto& [key, path] : paths_of(options))
    *path = path_from(is_set_here(config, key) ? here : options.base, *path);
  for (std::string& file : options.kernels.templates)
    file = path_from(is_set_here(config, "kernels.templates") ? here : options.base, file);
  use_base_of_data(config);
}

/// Folders that are named by no configuration need not be text.
Status check_text(train::RunOptions& options) {
  std::vector<std::string> texts{options.name, options.data.path};
  for (const auto& [key, path] : paths_of(options)) texts.push_back(*path);
  for (const auto* list : {&options.data.train, &options.data.eval, &options.kernels.templates})
    texts.insert(texts.end(), list->begin(), list->end());
  for (const std::string& text : texts) {
    if (!quote(text).ok())
      return Status::BadRequest(
          "the run or the current folder is in a folder whose name is not UTF-8 text");
  }
  return {};
}

/// A run's folder is the run, wherever it was moved to and whatever it is called now.
void take_folder_of_run(const std::string& opened, RunConfig& config) {
  train::RunOptions& options = config.options;
  if (!posix_files().is_folder(opened) || is_set_here(config, "train.runs") ||
      is_set_here(config, "name") || same_place(opened, options.train.runs + "/" + options.name))
    return;
  const std::filesystem::path folder = whole_path(opened);
  options.train.runs = folder.parent_path().string();
  options.name = folder.filename().string();
}

/// Of a folder within train.runs.
Status check_name(const std::string& name) {
  const std::filesystem::path path(name);
  const bool leaves = std::any_of(path.begin(), path.end(),
                                  [](const std::filesystem::path& part) { return part == ".."; });
  constexpr size_t kLongest = 200;  // bytes of a folder's name; file systems take 255
  const auto long_part = std::find_if(
      path.begin(), path.end(), [](const auto& part) { return part.native().size() > kLongest; });
  if (long_part != path.end())
    return Status::BadRequest(fmt::format("name: may have at most {} bytes in each folder, has {}",
                                          kLongest, long_part->native().size()));
  if (!leaves && path.is_relative() && path.lexically_normal() != ".") return {};
  return Status::BadRequest("name: must be that of a folder within train.runs, is '" + name + "'");
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
  RECMILL_RETURN_IF_ERROR(take_old_names(config.source));
  for (const std::string& set : sets) RECMILL_RETURN_IF_ERROR(apply_set(config.source, set));
  RECMILL_RETURN_IF_ERROR(bind_options(config.source, config.options));
  config.options.kernels.users = users_tools();
  if (config.options.name.empty()) {
    config.options.name = from.name;
    if (!quote(config.options.name).ok()) {
      return Status::BadRequest("name: is that of the file, which is not UTF-8 text; set another");
    }
  }
  RECMILL_RETURN_IF_ERROR(config.locate(check_name(config.options.name)));
  use_base(config);
  take_folder_of_run(path, config);
  RECMILL_RETURN_IF_ERROR(check_text(config.options));
  return config;
}

std::string run_copy(const train::RunOptions& options) {
  train::RunOptions copy = options;
  if (copy.base.empty()) {
    copy.base = whole_path(".");
  } else {
    for (const auto& [key, path] : paths_of(copy)) *path = path_below(copy.base, *path);
    for (std::string& file : copy.kernels.templates) file = path_below(copy.base, file);
  }
  if (!quote(copy.base).ok()) copy.base.clear();
  return to_toml(copy);
}

Result<train::RunOptions> options_of_text(const std::string& text, const std::string& path) {
  RECMILL_ASSIGN_OR_RETURN(ConfigNode source, parse_toml(text, path));
  RECMILL_RETURN_IF_ERROR(take_old_names(source));
  train::RunOptions options;
  RECMILL_RETURN_IF_ERROR(OptionBinder(source, "").bind(options));
  return options;
}

std::string to_toml(const train::RunOptions& options) {
  std::string text;
  write_section(OptionWriter::write(options), "", text);
  return text;
}

}  // namespace recmill::config
