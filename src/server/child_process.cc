// SPDX-License-Identifier: Apache-2.0
#include "server/child_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>

namespace recmill::server {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  return argv;
}

/// In the child: becomes the program, or tells `report` why it cannot.
[[noreturn]] void become(const std::vector<std::string>& words, const StartOptions& options,
                         pid_t parent, int input, int report) {
  setpgid(0, 0);
  if (options.dies_with_parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(input, STDIN_FILENO);
  for (const auto& [name, value] : options.variables) setenv(name.c_str(), value.c_str(), 1);
  execvp(words[0].c_str(), pointers(words).data());
  const int error = errno;
  (void)!write(report, &error, sizeof(error));
  _exit(127);
}

/// A descriptor from which `text` is read; negative: there is none.
int readable(const std::string& text) {
  if (text.empty()) return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  (void)!write(ends[1], text.data(), text.size());  // a pipe holds a page
  ::close(ends[1]);
  return ends[0];
}

/// Parents by process, from the numbers in /proc.
std::map<pid_t, pid_t> parents() {
  std::map<pid_t, pid_t> of;
  DIR* const folder = opendir("/proc");
  if (folder == nullptr) return of;
  while (const dirent* entry = readdir(folder)) {
    const pid_t process = atoi(entry->d_name);
    if (process <= 0) continue;
    std::ifstream file("/proc/" + std::string(entry->d_name) + "/stat");
    std::string line;
    std::getline(file, line);
    const size_t name_end = line.rfind(')');  // the name may hold anything
    int parent = 0;
    if (name_end != std::string::npos &&
        sscanf(line.c_str() + name_end + 1, " %*c %d", &parent) == 1)
      of[process] = parent;
  }
  closedir(folder);
  return of;
}

}  // namespace

Result<pid_t> start_process(const std::vector<std::string>& words, const StartOptions& options) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0)
    return Status::Failed(std::string("pipe: ") + std::strerror(errno));
  const int input = readable(options.input);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) become(words, options, parent, input, report[1]);
  if (input >= 0) ::close(input);
  ::close(report[1]);
  int error = 0;
  const bool failed = child < 0 || read(report[0], &error, sizeof(error)) == sizeof(error);
  ::close(report[0]);
  if (!failed) return child;
  if (child < 0) return Status::Failed(std::string("fork: ") + std::strerror(errno));
  waitpid(child, nullptr, 0);
  return Status::BadRequest(words[0] + ": " + std::strerror(error));
}

Result<std::string> output_of(const std::vector<std::string>& words) {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0)
    return Status::Failed(std::string("pipe: ") + std::strerror(errno));
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], STDOUT_FILENO);
    execvp(words[0].c_str(), pointers(words).data());
    _exit(127);
  }
  ::close(out[1]);
  std::string text;
  char piece[1024];
  for (ssize_t got = 0; (got = read(out[0], piece, sizeof(piece))) > 0;) text.append(piece, got);
  ::close(out[0]);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
      WEXITSTATUS(status) == 127)
    return Status::BadRequest(words[0] + ": cannot be run");
  return text;
}

void adopt_orphans() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

std::vector<pid_t> descendants(const std::vector<pid_t>& others) {
  const auto parent_of = parents();
  const pid_t own = getpid();
  const auto stops = [&](pid_t at) {
    return at == own || !parent_of.contains(at) || std::ranges::find(others, at) != others.end();
  };
  std::vector<pid_t> below;
  for (const auto& [process, parent] : parent_of) {
    pid_t at = process;
    while (!stops(at)) at = parent_of.at(at);
    if (at == own && process != own) below.push_back(process);
  }
  return below;
}

}  // namespace recmill::server
