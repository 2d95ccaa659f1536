// SPDX-License-Identifier: Apache-2.0
#include "cli/verb.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "base/files.h"
#include "cli/workloads.h"

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

}  // namespace

void add_config_arguments(CLI::App& verb, ConfigArguments& arguments) {
  verb.add_option(
          "config", arguments.path,
          "configuration file, a run's folder, or a workload's name (" + workload_names() + ")")
      ->required();
  verb.add_option("--set", arguments.sets,
                  "one key=value in place of the file's; --set again for each other")
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

void print_result(const Json& result, bool json) {
  if (json) {
    std::printf("%s\n", result.dump().c_str());
    return;
  }
  for (const auto& [key, value] : result.items()) {
    std::printf("%-20s %s\n", key.c_str(),
                value.is_string() ? value.get<std::string>().c_str() : value.dump().c_str());
  }
}

}  // namespace recmill::cli
