// SPDX-License-Identifier: Apache-2.0
// What the programs recmill and recmill-bench share: a command line is parsed, what it chose is
// done, and what goes wrong is one line. Exit status: 0 done; 1 failed while running; 2 the request
// was wrong.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "comm/world.h"

namespace CLI {
class App;
}

namespace recmill::program {

/// What the command line chose.
struct Chosen {
  std::function<Status()> action;
  bool on_ranks = false;         // set by actions that run on ranks, before anything can fail
  std::unique_ptr<World> world;  // set by them when it is open; ends after all was told
};

struct Program {
  std::string name;  // as people call it: "recmill", "recmill bench"
  std::string description;
  std::function<void(CLI::App&, Chosen&)> add;  // adds verbs and options, whose callbacks choose
};

/// The body of main().
int run_program(const Program& program, int argc, char** argv);

}  // namespace recmill::program
