// SPDX-License-Identifier: Apache-2.0
// A job of programs that do nothing but tell of themselves, for tests of what launches one:
//   small_job launch FOLDER HOSTS REMOTE_SHELL
// starts two servers, two helpers and three ranks, by the MPI launcher FOLDER/mpirun. Each appends
// a line "PROCESS WHAT" to FOLDER/NAME-NUMBER. Ranks end when there is FOLDER/finish.
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/files.h"
#include "server/guard.h"
#include "server/launch.h"

namespace recmill::server {
namespace {

using Words = std::vector<std::string>;

const GuardVariables kVariables{"SMALL_SUPERVISOR", "SMALL_TOKEN", "SMALL_LEASE"};
constexpr const char* kNoteVariable = "SMALL_NOTES";
std::atomic<int> g_asked{0};

std::string variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

void append_line(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  const std::string line = text + "\n";
  (void)!write(file, line.data(), line.size());
  ::close(file);
}

void heed(int signal) {
  struct sigaction action {};
  action.sa_handler = [](int) { ++g_asked; };
  sigaction(signal, &action, nullptr);
}

int launch_small(const std::string& program, const Words& words) {
  const std::string& folder = words[1];
  const WatchLimits limits{.start_seconds = 20.0, .silence_seconds = 2.0, .settle_seconds = 0.5};
  const auto servers = [&](const char* name, Restart restart) {
    return Role{.name = name,
                .kind = RoleKind::servers,
                .words = {"serve", folder + "/" + name + "-{index}", "{port}"},
                .count = 2,
                .restart = restart,
                .grace_seconds = 2.0,
                .limits = limits};
  };
  const Role ranks{
      .words = {"rank", folder, "{server} {helper}"}, .count = 3, .restarts = 3, .limits = limits};
  heed(SIGINT);
  const Status status =
      launch({.roles = {servers("server", Restart::all), servers("helper", Restart::alone), ranks},
              .hosts = words[2],
              .mpirun = folder + "/mpirun",
              .remote_shell = words[3],
              .guard = {program, "guard"}},
             {.files = posix_files(),
              .variables = kVariables,
              .interrupts = [] { return g_asked.load(); },
              .say = [&](const std::string& line) { append_line(folder + "/said", line); }});
  if (!status.ok()) append_line(folder + "/said", status.message());
  return status.ok() ? 0 : 1;
}

/// guard [--role NAME --index N --grace-seconds S] -- WORDS
int guard(const std::string& program, const Words& words) {
  GuardSetting setting{.addresses = variable(kVariables.addresses),
                       .token = variable(kVariables.token),
                       .lease_seconds = std::atof(variable(kVariables.lease_seconds).c_str()),
                       .note_variable = kNoteVariable};
  setting.index = std::atoi(variable("PMI_RANK").c_str());
  size_t at = 1;
  for (; words[at] != "--"; at += 2) {
    if (words[at] == "--role") setting.role = words[at + 1];
    if (words[at] == "--index") setting.index = std::stoi(words[at + 1]);
    if (words[at] == "--grace-seconds") setting.grace_seconds = std::stod(words[at + 1]);
  }
  Words process{program};
  process.insert(process.end(), words.begin() + static_cast<long>(at) + 1, words.end());
  const Status status = guard_process(setting, process);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}

/// A socket that listens at the port, or at another where that is taken.
int listen_at(int& port) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<uint16_t>(port));
  socklen_t size = sizeof(at);
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  if (bind(descriptor, address, size) != 0) {
    at.sin_port = 0;
    RECMILL_CHECK(bind(descriptor, address, size) == 0);
  }
  RECMILL_CHECK(listen(descriptor, 1) == 0 && getsockname(descriptor, address, &size) == 0);
  port = ntohs(at.sin_port);
  return descriptor;
}

/// serve FILE PORT: announces itself, has a child, and ends when asked to.
int serve(const Words& words) {
  heed(SIGTERM);
  int port = std::stoi(words[2]);
  listen_at(port);
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    while (true) pause();
  }
  append_line(words[1], std::to_string(getpid()) + " " + std::to_string(port) + " with " +
                            std::to_string(child));
  const std::string note = address_note(":" + std::to_string(port));
  (void)!write(std::stoi(variable(kNoteVariable)), note.data(), note.size());
  while (g_asked == 0) usleep(10000);
  append_line(words[1], std::to_string(getpid()) + " asked to end");
  return 0;
}

/// rank FOLDER ADDRESSES
int rank(const Words& words) {
  heed(SIGINT);
  append_line(words[1] + "/rank-" + variable("PMI_RANK"),
              std::to_string(getpid()) + " " + words[2]);
  while (g_asked == 0 && access((words[1] + "/finish").c_str(), F_OK) != 0) usleep(10000);
  return 0;
}

}  // namespace
}  // namespace recmill::server

int main(int argc, char** argv) {
  using namespace recmill::server;
  const Words words(argv + 1, argv + argc);
  if (words[0] == "launch") return launch_small(argv[0], words);
  if (words[0] == "guard") return guard(argv[0], words);
  return words[0] == "serve" ? serve(words) : rank(words);
}
