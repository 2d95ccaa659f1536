// SPDX-License-Identifier: Apache-2.0
#include "cli/verb.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/json/json.h"
#include "base/paths.h"
#include "config/workloads.h"

namespace recmill::cli {
namespace {

std::atomic<bool> g_interrupted{false};

// The first Ctrl-C asks training to finish its iteration and save; the second one ends the program.
void on_interrupt(int signal) {
  if (g_interrupted.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

std::string shown(const Json& value) {
  if (value.is_null()) return "not measured";
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// "registers 32, stack 0".
std::string shown_in_a_line(const Json& object) {
  std::string line;
  for (const auto& [key, value] : object.items())
    line += (line.empty() ? "" : ", ") + key + " " + shown(value);
  return line;
}

bool is_list_of_objects(const Json& value) {
  return value.is_array() && !value.empty() &&
         std::ranges::all_of(value, [](const Json& element) { return element.is_object(); });
}

/// Each value's name and how it is shown; those of an object in it are named behind the object, and
/// objects of a list have a line each.
void add_lines(const Json& object, const std::string& prefix,
               std::vector<std::pair<std::string, std::string>>& lines) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix + key;
    if (value.is_object() && !value.empty()) {
      add_lines(value, name + ".", lines);
    } else if (is_list_of_objects(value)) {
      for (const Json& element : value) lines.emplace_back(name, shown_in_a_line(element));
    } else {
      lines.emplace_back(name, shown(value));
    }
  }
}

}  // namespace

void add_config_arguments(CLI::App& verb, ConfigArguments& arguments) {
  verb.add_option("config", arguments.path,
                  "configuration file, a run's folder, or a workload's name (" +
                      config::workload_names() + ")")
      ->required();
  verb.add_option("--set", arguments.sets,
                  "replace a key of the file, as key=value; repeat --set for others")
      ->allow_extra_args(false);
}

train::Progress::Style progress_style(bool quiet) {
  if (quiet) return train::Progress::Style::silent;
  return isatty(STDERR_FILENO) != 0 ? train::Progress::Style::terminal
                                    : train::Progress::Style::lines;
}

const std::atomic<bool>& watch_interrupts() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  return g_interrupted;
}

Status refuse_existing(const std::string& path, bool overwrite) {
  if (overwrite || !posix_files().exists(path)) return {};
  return Status::BadRequest(path + ": is there already; --overwrite replaces it");
}

Status refuse_unwritable(const std::string& option, const std::string& path, bool overwrite) {
  if (path.empty()) return {};
  RECMILL_RETURN_IF_ERROR(refuse_existing(path, overwrite));
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0 || posix_files().is_folder(path.substr(0, slash)))
    return {};
  return Status::BadRequest(option + " " + path + ": there is no folder " +
                            whole_path(path.substr(0, slash)));
}

Result<std::string> own_path() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return Status::Failed("/proc/self/exe: " + error.message());
  return path.string();
}

std::function<std::string(const std::string&)> within(double least, double most) {
  return [=](const std::string& text) -> std::string {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || *end != '\0') return {};  // no number: CLI11 says so
    if (value >= least && value <= most) return {};
    const std::string upper = std::isinf(most) ? "" : fmt::format(" and at most {}", most);
    return fmt::format("must be at least {}{}, is {}", least, upper, text);
  };
}

void print_result(const Json& result, bool json) {
  if (json) {
    std::printf("%s\n", result.dump().c_str());
    return;
  }
  std::vector<std::pair<std::string, std::string>> lines;
  add_lines(result, "", lines);
  size_t width = 20;
  for (const auto& [name, value] : lines) width = std::max(width, name.size());
  for (const auto& [name, value] : lines)
    std::printf("%s\n", fmt::format("{:<{}} {}", name, width, value).c_str());
}

}  // namespace recmill::cli
