// SPDX-License-Identifier: Apache-2.0
// Real processes of several roles, started, killed and ended. RECMILL_SMALL_JOB is the program.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <sstream>
#include <thread>

#include "base/files.h"
#include "base/temporary_folder.h"

namespace recmill::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Starts ranks as MPICH's launcher does, all on this host.
constexpr const char* kLauncher = R"(#!/bin/sh
[ "$1" = --version ] && { echo "HYDRA build details:"; exit 0; }
ranks=$2
while [ "$1" != ")" RECMILL_SMALL_JOB R"(" ]; do shift; done
rank=0
while [ $rank -lt $ranks ]; do
  PMI_RANK=$rank "$@" &
  rank=$((rank + 1))
done
wait
)";

bool alive(pid_t process) {
  return kill(process, 0) == 0;
}

class SmallJob : public testing::Test {
 protected:
  void TearDown() override {
    if (job_ > 0) {
      kill(job_, SIGKILL);
      waitpid(job_, nullptr, 0);
    }
  }

  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  void write_script(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_atomically(posix_files(), path(name), text).ok());
    chmod(path(name).c_str(), 0755);
  }
  void start(const std::string& hosts = "", const std::string& remote_shell = "") {
    write_script("mpirun", kLauncher);
    const std::string folder = folder_.path();
    job_ = fork();
    if (job_ != 0) return;
    execl(RECMILL_SMALL_JOB, RECMILL_SMALL_JOB, "launch", folder.c_str(), hosts.c_str(),
          remote_shell.c_str(), nullptr);
    _exit(127);
  }
  /// Exit status of the job; -1: ended by a signal.
  int end() {
    int status = 0;
    waitpid(std::exchange(job_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string text(const std::string& name) const {
    const auto text = read_text(posix_files(), path(name));
    return text.ok() ? *text : "";
  }
  std::vector<std::string> lines(const std::string& name) const {
    std::istringstream all(text(name));
    std::vector<std::string> lines;
    for (std::string line; std::getline(all, line);) lines.push_back(line);
    return lines;
  }
  /// The line of a process's start, counted from 1, once it is there.
  std::string started(const std::string& name, size_t count = 1) {
    for (int look = 0; look < 2000 && lines(name).size() < count; ++look)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_GE(lines(name).size(), count) << name << "\n" << text("said");
    return lines(name).size() < count ? "0 0" : lines(name)[count - 1];
  }
  static pid_t process_of(const std::string& line) { return std::stoi(line); }
  static std::string port_of(const std::string& line) {
    std::istringstream words(line);
    std::string process, port;
    words >> process >> port;
    return port;
  }
  void finish() { ASSERT_TRUE(write_atomically(posix_files(), path("finish"), "").ok()); }
  /// All processes that have told of themselves, and the children of servers.
  void expect_nothing_left() {
    for (const char* name : {"server-0", "server-1", "helper-0", "helper-1"}) {
      for (const std::string& line : lines(name)) {
        const size_t child = line.find(" with ");
        if (child == std::string::npos) continue;
        expect_gone(process_of(line));
        expect_gone(std::stoi(line.substr(child + 6)));
      }
    }
    for (const char* name : {"rank-0", "rank-1", "rank-2"}) {
      for (const std::string& line : lines(name)) expect_gone(process_of(line));
    }
  }
  void expect_gone(pid_t process) {
    for (int look = 0; look < 1000 && alive(process); ++look)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_FALSE(alive(process)) << process;
  }

  TemporaryFolder folder_;
  pid_t job_ = -1;
};

TEST_F(SmallJob, servers_outlive_a_lost_rank_and_each_role_restarts_by_its_rule) {
  start();
  const std::string server = started("server-0"), other = started("server-1"),
                    helper = started("helper-0"), rank = started("rank-0");
  EXPECT_THAT(rank, HasSubstr("localhost:" + port_of(server) + ",localhost:" + port_of(other)));
  kill(process_of(started("rank-1")), SIGKILL);
  EXPECT_EQ(port_of(started("rank-0", 2)), port_of(rank));  // the same servers
  started("rank-1", 2);
  EXPECT_THAT(lines("said")[0], StartsWith("rank 1 on "));
  EXPECT_EQ(lines("said")[1], "starts again with 3 ranks, restart 1 of 3");
  EXPECT_FALSE(alive(process_of(rank)));
  for (const auto& line : {server, other, helper}) EXPECT_TRUE(alive(process_of(line)));

  kill(process_of(helper), SIGKILL);
  const std::string second_helper = started("helper-0", 2);
  EXPECT_EQ(port_of(second_helper), port_of(helper));
  EXPECT_EQ(lines("rank-0").size(), 2u);
  EXPECT_EQ(lines("server-0").size(), 1u);

  kill(process_of(other), SIGKILL);
  EXPECT_EQ(port_of(started("rank-0", 3)), port_of(rank));
  EXPECT_EQ(lines("server-0").size(), 3u);  // started, asked to end, started
  EXPECT_EQ(lines("helper-0").size(), 2u);
  EXPECT_TRUE(alive(process_of(second_helper)));

  finish();
  EXPECT_EQ(end(), 0);
  EXPECT_THAT(lines("server-0").back(), HasSubstr("asked to end"));
  EXPECT_THAT(lines("helper-0").back(), HasSubstr("asked to end"));
  expect_nothing_left();
}

TEST_F(SmallJob, an_interrupt_ends_ranks_and_then_servers) {
  start();
  started("rank-0");
  started("rank-1");
  started("rank-2");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // they heed signals
  kill(job_, SIGINT);
  EXPECT_EQ(end(), 0) << text("said");
  EXPECT_THAT(lines("server-1").back(), HasSubstr("asked to end"));
  expect_nothing_left();
}

TEST_F(SmallJob, nothing_outlives_a_supervisor_that_is_killed) {
  start();
  for (const char* name : {"server-0", "server-1", "helper-0", "helper-1", "rank-0", "rank-2"})
    started(name);
  kill(job_, SIGKILL);
  EXPECT_EQ(end(), -1);
  expect_nothing_left();
  EXPECT_THAT(lines("server-0").back(), HasSubstr("asked to end"));
}

TEST_F(SmallJob, servers_run_on_the_hosts_in_turn) {
  write_script("shell",
               "#!/bin/sh\necho \"$1: $2\" >> " + path("shells") + "\nexec sh -c \"$2\"\n");
  write_script("hosts", "localhost slots=3\n127.0.0.2\n");
  start(path("hosts"), path("shell"));
  const std::string rank = started("rank-0");
  EXPECT_THAT(rank, HasSubstr(" localhost:" + port_of(started("server-0")) +
                              ",127.0.0.2:" + port_of(started("server-1")) + " "));
  EXPECT_EQ(lines("shells").size(), 2u);  // server 1 and helper 1
  EXPECT_THAT(lines("shells")[0], StartsWith("127.0.0.2: IFS= read -r SMALL_TOKEN && "));
  finish();
  EXPECT_EQ(end(), 0) << text("said");
  EXPECT_THAT(lines("server-1").back(), HasSubstr("asked to end"));
  expect_nothing_left();
}

}  // namespace
}  // namespace recmill::server
