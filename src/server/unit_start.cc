// SPDX-License-Identifier: Apache-2.0
#include "server/unit_start.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/json/json.h"

namespace recmill::server {
namespace {

/// What the launcher of a job has to leave after its last process, and of a lost one, before it is
/// killed. It is not asked to: Open MPI's crashes when it is, while it ends a job of its own
/// accord.
constexpr double kLeaveSeconds = 10.0, kLostLeaveSeconds = 2.0;
/// What is left then, before it is killed too: launchers on other hosts that end their ranks.
constexpr double kOthersLeaveSeconds = 5.0;

}  // namespace

Result<UnitStart> UnitStart::begin(StartPlan plan) {
  UnitStart start(std::move(plan));
  RECMILL_ASSIGN_OR_RETURN(start.launcher_, start_process(start.plan_.words, start.plan_.options));
  return start;
}

void UnitStart::take(MessageLine line, std::vector<Json> messages, UnitWatch& watch, double now) {
  const Json came = std::move(messages.front());
  const int index = came.value("index", -1) - plan_.first;
  if (index < 0 || index >= plan_.count) return;
  messages.erase(messages.begin());
  watch.came(index, came.value("host", "?"), came.value("process", int64_t{0}), now);
  guards_.push_back({std::move(line), index, std::move(messages)});
  if (interrupted_) guards_.back().line.send({{"what", "interrupt"}});
}

bool UnitStart::hear(UnitWatch& watch, double now) {
  bool begun = false;
  for (Guard& guard : guards_) {
    std::vector<Json> messages = std::exchange(guard.unheard, {});
    std::ranges::move(guard.line.receive(), std::back_inserter(messages));
    for (const Json& message : messages) begun |= hear_message(guard, message, watch, now);
    if (!guard.line.open()) watch.vanished(guard.index, now);
  }
  std::erase_if(guards_, [](const Guard& guard) { return !guard.line.open(); });
  return begun;
}

bool UnitStart::hear_message(const Guard& guard, const Json& message, UnitWatch& watch,
                             double now) const {
  const std::string what = message.value("what", "");
  const int number = message.value("number", 0);
  watch.heard(guard.index, now);
  if (what == "address") {
    const std::string address = message.value("address", "");
    watch.announced(guard.index, (address.starts_with(":") ? plan_.host : "") + address, now);
  }
  if (what == "stopped") watch.stopped(guard.index, number, now);
  if (what == "continued") watch.continued(guard.index, now);
  if (what == "killed") watch.killed(guard.index, number, now);
  if (what == "exited") watch.exited(guard.index, number, now);
  return what == "begun";
}

void UnitStart::append_descriptors(std::vector<int>& to) const {
  for (const Guard& guard : guards_) to.push_back(guard.line.descriptor());
}

void UnitStart::tell(const char* what) {
  for (Guard& guard : guards_) guard.line.send({{"what", what}});
}

void UnitStart::interrupt() {
  interrupted_ = true;
  tell("interrupt");
}

std::optional<pid_t> UnitStart::launcher() const {
  return launcher_end_.empty() ? std::optional(launcher_) : std::nullopt;
}

void UnitStart::launcher_ended(int status) {
  launcher_end_ = WIFSIGNALED(status)
                      ? fmt::format("{} was killed by signal {}", plan_.name, WTERMSIG(status))
                      : fmt::format("{} ended with status {}", plan_.name, WEXITSTATUS(status));
}

void UnitStart::end(double now) {
  end_ = now;
  tell("leave");
}

bool UnitStart::is_gone(double now, const std::vector<pid_t>& others, bool patient) {
  const double leaving = now - end_;
  for (Guard& guard : guards_) (void)guard.line.receive();
  std::erase_if(guards_, [](const Guard& guard) { return !guard.line.open(); });
  processes_gone_ = processes_gone_ || processes_are_gone(leaving, others, patient);
  if (!processes_gone_) return false;
  return guards_.empty() || leaving > plan_.lease_seconds + plan_.grace_seconds;
}

// Orphans, which might be another unit's that has lost a guard, are nobody's: they go too.
bool UnitStart::processes_are_gone(double leaving, const std::vector<pid_t>& others, bool patient) {
  const double patience = (patient ? kLeaveSeconds : kLostLeaveSeconds) + plan_.grace_seconds;
  if (launcher_end_.empty()) {
    if (leaving > patience) kill(launcher_, SIGKILL);
    return false;
  }
  const std::vector<pid_t> left = descendants(others);
  if (leaving > patience + kOthersLeaveSeconds) {
    for (const pid_t process : left) kill(process, SIGKILL);
  }
  return left.empty();
}

}  // namespace recmill::server
