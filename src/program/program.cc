// SPDX-License-Identifier: Apache-2.0
#include "program/program.h"

#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include "config/option_binder.h"
#include "device/gpu/cuda_driver.h"
#include "program/open_world.h"

namespace recmill::program {
namespace {

/// An error is one line, whatever a value in it is made of.
std::string in_one_line(const std::string& message) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string line;
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      line += {'\\', 'x', kHex[byte / 16], kHex[byte % 16]};
    } else {
      line += c;
    }
  }
  return line;
}

/// One line of what is wrong with the command line: the verb, the fault, where help is.
std::string usage_error(const CLI::App* app, const CLI::Error& error) {
  const CLI::App* verb = app;
  std::string called = app->get_name(), prefix;
  if (const size_t space = called.find(' '); space != std::string::npos)
    prefix = called.substr(space + 1) + ": ";
  while (!verb->get_subcommands().empty()) {
    verb = verb->get_subcommands().front();
    called += " " + verb->get_name();
    prefix += verb->get_name() + ": ";
  }
  std::vector<std::string> verbs;
  for (const CLI::App* each : verb->get_subcommands([](const CLI::App*) { return true; }))
    verbs.push_back(each->get_name());
  const std::vector<std::string> rest = app->remaining(true);
  std::string what = error.what();
  if (!verbs.empty()) {
    what = rest.empty() ? "a verb is required"
                        : "'" + rest[0] + "' is not a verb" + config::suggestion(rest[0], verbs);
  } else if (!what.empty()) {
    what[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(what[0])));
  }
  return "recmill: " + in_one_line(prefix + what) + "; see " + called + " --help\n";
}

int run(const Program& program, int argc, char** argv) {
  CLI::App app{program.description, program.name};
  app.failure_message(usage_error);
  Chosen chosen;
  program.add(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;  // --help is 0
  }
  const Status status = chosen.action();
  if (status.ok()) return 0;
  if (chosen.world == nullptr && chosen.on_ranks) chosen.world = open_world_of_launcher();
  const Status told = chosen.world == nullptr ? status : chosen.world->fail(status);
  if (chosen.world == nullptr || chosen.world->tells())
    std::fprintf(stderr, "recmill: %s\n", in_one_line(told.message()).c_str());
  return status.code() == Status::Code::bad_request ? 2 : 1;
}

/// 1 where all went well but for what was to be printed: a full disk, a closed descriptor.
int with_output_written(int status) {
  const bool flushed = std::fflush(stdout) == 0;
  const char* const why = flushed ? "" : std::strerror(errno);
  std::cout.flush();
  if (status != 0 || (flushed && std::ferror(stdout) == 0 && std::cout.good())) return status;
  std::fprintf(stderr, "recmill: the result cannot be written to stdout%s%s\n", flushed ? "" : ": ",
               why);
  return 1;
}

/// Of the process; nothing waits any more for what was given up.
int end(int status) {
  if (!cuda_kernel_was_given_up()) return status;
  std::fflush(nullptr);
  ::_exit(status);
}

}  // namespace

int run_program(const Program& program, int argc, char** argv) {
  // Long arrays go back to the system when they are freed. Left alone, the C library raises this
  // limit to the longest one freed so far, and a run's memory grows with its length.
  ::mallopt(M_MMAP_THRESHOLD, 4 << 20);
  // On any thread, and before anything is thrown through our functions.
  std::set_new_handler([] {
    static constexpr char kLine[] = "recmill: the machine has no memory left\n";
    (void)!::write(STDERR_FILENO, kLine, sizeof kLine - 1);
    ::_exit(1);
  });
  try {
    return end(with_output_written(run(program, argc, argv)));
  } catch (const std::exception& error) {  // a library that throws
    std::fprintf(stderr, "recmill: %s\n", error.what());
    return 1;
  }
}

}  // namespace recmill::program
