// SPDX-License-Identifier: Apache-2.0
#include "kernels/codegen/compiler.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"

extern char** environ;

namespace recmill::kernels::codegen {
namespace {

constexpr size_t kMostSaid = 64 * 1024;

/// Contraction would change sums, and so would anything that -ffast-math means.
const std::vector<std::string> kFlags = {
    "-std=c++17", "-O3", "-march=native", "-ffp-contract=off", "-fPIC", "-shared", "-Wno-psabi"};

struct Child {
  size_t command = 0;
  pid_t process = -1;
  int said = -1;  // read end of its pipe
  double started = 0.0;
};

Result<Child> start(const Command& command, size_t index, double now) {
  int ends[2];
  RECMILL_CHECK(pipe2(ends, O_CLOEXEC) == 0, std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  posix_spawnattr_t attributes;  // a group of its own, to be killed with what it starts
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char*> arguments;
  for (const std::string& argument : command.arguments)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  Child child{index, -1, ends[0], now};
  const int error =
      posix_spawnp(&child.process, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error == 0) return child;
  close(ends[0]);
  return Status::Failed("cannot start the compiler '" + command.arguments[0] +
                        "': " + std::strerror(error));
}

/// Reads what is there; false: the end.
bool read_some(int from, std::string& to) {
  char buffer[4096];
  const ssize_t count = read(from, buffer, sizeof buffer);
  if (count < 0) return errno == EINTR;
  to.append(buffer,
            std::min(static_cast<size_t>(count), kMostSaid - std::min(kMostSaid, to.size())));
  return count > 0;
}

void finish(const Child& child, Outcome& outcome) {
  close(child.said);
  int status = 0;
  while (waitpid(child.process, &status, 0) < 0 && errno == EINTR) {
  }
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Waits for output or an end, and takes children off the list that have ended or are late.
void attend(std::vector<Child>& children, std::vector<Outcome>& outcomes, const Stopwatch& clock,
            double seconds) {
  std::vector<pollfd> ready;
  ready.reserve(children.size());
  for (const Child& child : children) ready.push_back({child.said, POLLIN, 0});
  poll(ready.data(), ready.size(), 100);
  for (size_t c = children.size(); c-- > 0;) {
    const Child& child = children[c];
    Outcome& outcome = outcomes[child.command];
    if (clock.seconds() - child.started > seconds) {
      kill(-child.process, SIGKILL);
      outcome.late = true;
    } else if (ready[c].revents == 0 || read_some(child.said, outcome.said)) {
      continue;
    }
    finish(child, outcome);
    children.erase(children.begin() + static_cast<ptrdiff_t>(c));
  }
}

}  // namespace

Result<std::vector<Outcome>> run_commands(std::span<const Command> commands, int at_once,
                                          double seconds) {
  const Stopwatch clock;
  std::vector<Outcome> outcomes(commands.size());
  std::vector<Child> children;
  Status started;
  for (size_t next = 0; next < commands.size() || !children.empty();) {
    if (next < commands.size() && static_cast<int>(children.size()) < at_once && started.ok()) {
      auto child = start(commands[next], next, clock.seconds());
      ++next;
      if (child.ok()) {
        children.push_back(*child);
      } else {
        started = child.status();
        next = commands.size();
      }
      continue;
    }
    attend(children, outcomes, clock, seconds);
  }
  if (!started.ok()) return started;
  return outcomes;
}

Result<Compiler> Compiler::find(const CompilerOptions& options) {
  Compiler compiler;
  compiler.options_ = options;
  const Command version{{options.program, "--version"}};
  RECMILL_ASSIGN_OR_RETURN(const auto outcomes, run_commands({&version, 1}, 1, options.seconds));
  if (outcomes[0].status != 0 || outcomes[0].said.empty())
    return Status::Failed("'" + options.program + " --version' fails: it is not a compiler");
  compiler.identity_ = outcomes[0].said;
  for (const std::string& flag : kFlags) compiler.identity_ += flag + " ";
  return compiler;
}

Command Compiler::command(const Job& job, std::span<const std::string> inputs,
                          const std::string& output) const {
  Command made{{options_.program}};
  auto& arguments = made.arguments;
  arguments.insert(arguments.end(), kFlags.begin(), kFlags.end());
  arguments.insert(arguments.end(), job.flags.begin(), job.flags.end());
  if (!job.headers.empty()) arguments.push_back("-I" + job.headers);
  if (output.ends_with(".o")) arguments.emplace_back("-c");
  arguments.insert(arguments.end(), {"-o", output});
  arguments.insert(arguments.end(), inputs.begin(), inputs.end());
  return made;
}

// Objects of all jobs first, then the libraries whose objects are there.
Result<std::vector<Outcome>> Compiler::compile(std::span<const Job> jobs) const {
  std::vector<Outcome> outcomes(jobs.size());
  const auto run = [&](std::span<const Command> commands,
                       std::span<const size_t> of_job) -> Status {
    RECMILL_ASSIGN_OR_RETURN(const auto ended,
                             run_commands(commands, options_.at_once, options_.seconds));
    for (size_t c = 0; c < ended.size(); ++c) {
      Outcome& outcome = outcomes[of_job[c]];
      if (outcome.status == 0) outcome.status = ended[c].status;
      outcome.late |= ended[c].late;
      outcome.said += ended[c].said;
    }
    return {};
  };
  std::vector<std::vector<std::string>> inputs;
  std::vector<Command> objects, libraries;
  std::vector<size_t> of_object, of_library;
  for (size_t j = 0; j < jobs.size(); ++j) {
    inputs.push_back(jobs[j].sources);
    if (inputs[j].size() == 1) continue;
    for (std::string& input : inputs[j]) {
      const std::string source = input;
      input += ".o";
      objects.push_back(command(jobs[j], {&source, 1}, input));
      of_object.push_back(j);
    }
  }
  RECMILL_RETURN_IF_ERROR(run(objects, of_object));
  for (size_t j = 0; j < jobs.size(); ++j) {
    if (outcomes[j].status != 0 || outcomes[j].late) continue;
    libraries.push_back(command(jobs[j], inputs[j], jobs[j].library));
    of_library.push_back(j);
  }
  RECMILL_RETURN_IF_ERROR(run(libraries, of_library));
  return outcomes;
}

}  // namespace recmill::kernels::codegen
