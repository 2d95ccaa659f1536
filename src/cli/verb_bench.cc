// SPDX-License-Identifier: Apache-2.0
// recmill bench: becomes the program recmill-bench, which is beside this one, in the same process:
// so a launcher's environment, and who waits for the process, are the same.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "cli/verb.h"

namespace recmill::cli {
namespace {

Status become_bench(const std::vector<std::string>& words) {
  RECMILL_ASSIGN_OR_RETURN(const std::string own, own_path());
  const std::string program = std::filesystem::path(own).parent_path() / "recmill-bench";
  std::vector<char*> arguments{const_cast<char*>(program.c_str())};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
  if (errno == ENOENT)
    return Status::Failed("bench: " + program +
                          " is not there; make build makes it, make install brings it");
  return Status::Failed("bench: " + program + ": " + std::strerror(errno));
}

}  // namespace

void add_bench(CLI::App& app, Chosen& chosen) {
  CLI::App* verb = app.add_subcommand(
      "bench", "check and time a part against its rivals; recmill bench --help has its options");
  verb->prefix_command();
  verb->set_help_flag();  // the program's own
  verb->callback(
      [verb, &chosen] { chosen.action = [verb] { return become_bench(verb->remaining()); }; });
}

}  // namespace recmill::cli
