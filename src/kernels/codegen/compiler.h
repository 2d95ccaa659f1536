// SPDX-License-Identifier: Apache-2.0
// The system's C++ compiler as a child process.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace recmill::kernels::codegen {

struct Command {
  std::vector<std::string> arguments;  // the program first, looked for in PATH
};
struct Outcome {
  int status = 0;     // of exit; -1: ended by a signal, or killed at the time limit
  bool late = false;  // killed at the time limit
  std::string said;   // what it wrote to stdout and stderr, at most 64 KiB
};

/// Runs the commands, at most `at_once` at a time, each for at most `seconds`. Fails, naming the
/// program, when it cannot be started.
Result<std::vector<Outcome>> run_commands(std::span<const Command> commands, int at_once,
                                          double seconds);

struct CompilerOptions {
  std::string program = "c++";
  int at_once = 2;         // processes
  double seconds = 300.0;  // of one compilation, at most
};

class Compiler {
 public:
  /// Asks the program for its version. Fails, naming it, where it is none.
  static Result<Compiler> find(const CompilerOptions& options);

  /// What makes a library another one beside its source: version and flags.
  const std::string& identity() const { return identity_; }

  /// One shared library of a source, or of several, each of which becomes an object SOURCE.o first.
  struct Job {
    std::vector<std::string> sources;     // paths
    std::string library;                  // path
    std::string headers;                  // folder in which they are; empty: none
    std::vector<std::string> flags = {};  // behind those of all
  };
  Result<std::vector<Outcome>> compile(std::span<const Job> jobs) const;

 private:
  Compiler() = default;
  Command command(const Job& job, std::span<const std::string> inputs,
                  const std::string& output) const;
  CompilerOptions options_;
  std::string identity_;
};

}  // namespace recmill::kernels::codegen
