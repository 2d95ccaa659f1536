// SPDX-License-Identifier: Apache-2.0
#include "server/job_attempt.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "server/child_process.h"

namespace recmill::server {
namespace {

constexpr int kLookMilliseconds = 100;
constexpr double kBeatSeconds = 0.5;
/// Guards hear the supervisor as often as it hears them, and may take a little longer.
constexpr double kLeaseBeyondSilence = 1.0;
/// What the launcher of a job has to leave after its last rank, and of a lost one, before it is
/// killed. It is not asked to: Open MPI's crashes when it is, while it ends a job of its own
/// accord.
constexpr double kLeaveSeconds = 10.0, kLostLeaveSeconds = 2.0;
/// What is left then, before it is killed too: launchers on other hosts that end their ranks.
constexpr double kOthersLeaveSeconds = 5.0;

std::string new_token() {
  uint64_t words[2] = {};
  RECMILL_CHECK(getrandom(words, sizeof(words), 0) == sizeof(words));
  return fmt::format("{:016x}{:016x}", words[0], words[1]);
}

}  // namespace

Status JobAttempt::start() {
  RECMILL_ASSIGN_OR_RETURN(MessageListener listener, MessageListener::open());
  listener_.push_back(std::move(listener));
  token_ = new_token();
  StartOptions options;
  options.variables = {{variables_.addresses, listener_[0].addresses()},
                       {variables_.token, token_},
                       {variables_.lease_seconds,
                        fmt::format("{:g}", limits_.silence_seconds + kLeaseBeyondSilence)}};
  options.dies_with_parent = true;
  RECMILL_ASSIGN_OR_RETURN(launcher_, start_process(launch_words(plan_), options));
  return {};
}

Result<Verdict> JobAttempt::run() {
  RECMILL_RETURN_IF_ERROR(start());
  JobWatch watch(plan_.ranks, limits_, watch_.seconds());
  while (true) {
    wait_for_messages(kLookMilliseconds);
    take_new();
    for (Guard& guard : guards_) hear(guard, watch);
    std::erase_if(guards_, [](const Guard& guard) { return !guard.line.open(); });
    const bool ran = launcher_end_.empty();
    reap();
    if (ran && !launcher_end_.empty()) watch.launcher_ended(launcher_end_, watch_.seconds());
    pass_interrupts();
    beat();
    Verdict verdict = watch.judge(watch_.seconds());
    state_ = verdict.state;
    if (state_ != JobState::runs) return verdict;
    if (interrupted_ > 1)
      return Verdict{JobState::failed, Status::Failed("interrupted: the job was ended"), ""};
  }
}

void JobAttempt::wait_for_messages(int milliseconds) {
  std::vector<pollfd> waits;
  waits.reserve(guards_.size() + 1);
  for (const MessageListener& listener : listener_)
    waits.push_back({listener.descriptor(), POLLIN, 0});
  for (const Guard& guard : guards_) waits.push_back({guard.line.descriptor(), POLLIN, 0});
  poll(waits.data(), waits.size(), milliseconds);
}

void JobAttempt::take_new() {
  while (auto line = listener_[0].accept()) guards_.push_back({*std::move(line), -1});
}

void JobAttempt::hear(Guard& guard, JobWatch& watch) {
  for (const Json& message : guard.line.receive()) hear_message(guard, message, watch);
  if (!guard.line.open() && guard.rank >= 0) watch.vanished(guard.rank, watch_.seconds());
}

// What is not of this job is not listened to.
void JobAttempt::hear_message(Guard& guard, const Json& message, JobWatch& watch) {
  const double now = watch_.seconds();
  const std::string what = message.value("what", "");
  const int number = message.value("number", 0);
  if (guard.rank < 0) {
    const int rank = message.value("rank", -1);
    if (what != "came" || message.value("token", "") != token_ || rank < 0 || rank >= plan_.ranks)
      return guard.line.close();
    guard.rank = rank;
    return watch.came(rank, message.value("host", "?"), message.value("process", int64_t{0}), now);
  }
  watch.heard(guard.rank, now);
  if (what == "begun") has_begun_ = true;
  if (what == "stopped") watch.stopped(guard.rank, number, now);
  if (what == "continued") watch.continued(guard.rank, now);
  if (what == "killed") watch.killed(guard.rank, number, now);
  if (what == "exited") watch.exited(guard.rank, number, now);
}

void JobAttempt::pass_interrupts() {
  const int asked = interrupts_();
  if (asked > 0 && interrupted_ == 0) tell_all("interrupt");
  interrupted_ = asked;
}

void JobAttempt::tell_all(const char* what) {
  for (Guard& guard : guards_) guard.line.send({{"what", what}});
}

void JobAttempt::beat() {
  if (since_beat_.seconds() < kBeatSeconds) return;
  since_beat_.lap();
  tell_all("alive");
}

// Orphans of the job are this process's children too.
void JobAttempt::reap() {
  int status = 0;
  for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (ended != launcher_) continue;
    launcher_end_ = WIFSIGNALED(status)
                        ? fmt::format("{} was killed by signal {}", plan_.mpirun, WTERMSIG(status))
                        : fmt::format("{} ended with status {}", plan_.mpirun, WEXITSTATUS(status));
  }
}

void JobAttempt::end() {
  const double verdict = watch_.seconds();
  tell_all("leave");
  while (launcher_ > 0 && !end_processes(watch_.seconds() - verdict))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double lease = limits_.silence_seconds + 2 * kLeaseBeyondSilence;
  while (!guards_.empty() && watch_.seconds() < verdict + lease) {
    wait_for_messages(kLookMilliseconds);
    for (Guard& guard : guards_) (void)guard.line.receive();
    std::erase_if(guards_, [](const Guard& guard) { return !guard.line.open(); });
  }
  guards_.clear();
  listener_.clear();
}

// One step towards it, `leaving` seconds after the verdict; whether none is left below this
// process.
bool JobAttempt::end_processes(double leaving) {
  reap();
  const double patience = state_ == JobState::done ? kLeaveSeconds : kLostLeaveSeconds;
  if (launcher_end_.empty()) {
    if (leaving > patience) kill(launcher_, SIGKILL);
    return false;
  }
  const std::vector<pid_t> left = descendants();
  if (leaving > patience + kOthersLeaveSeconds) {
    for (const pid_t process : left) kill(process, SIGKILL);
  }
  return left.empty();
}

}  // namespace recmill::server
