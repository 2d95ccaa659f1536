// SPDX-License-Identifier: Apache-2.0
#include "server/unit_watch.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

namespace recmill::server {
namespace {

constexpr int kBadRequest = 2;  // exit status of the program

std::string signal_name(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("signal {} (SIG{})", signal, name)
                         : fmt::format("signal {}", signal);
}

/// Signals that a program's own doing raises.
bool is_crash(int signal) {
  constexpr std::array kCrashes{SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
  return std::ranges::find(kCrashes, signal) != kCrashes.end();
}

}  // namespace

UnitWatch::UnitWatch(const Role& role, int first, int count, double now)
    : role_(role.name),
      serves_(role.kind == RoleKind::servers),
      first_(first),
      limits_(role.limits),
      start_(now),
      processes_(count) {}

void UnitWatch::came(int index, std::string host, long process, double now) {
  processes_[index].host = std::move(host);
  processes_[index].id = process;
  change(index, State::runs, 0, now);
}

void UnitWatch::heard(int index, double now) {
  processes_[index].heard = now;
}

void UnitWatch::announced(int index, std::string address, double now) {
  heard(index, now);
  processes_[index].address = std::move(address);
}

void UnitWatch::change(int index, State state, int number, double now) {
  Process& of = processes_[index];
  of.heard = now;
  if (of.state == State::killed || of.state == State::exited || of.state == State::vanished) return;
  of.state = state;
  of.number = number;
  of.since = now;
}

void UnitWatch::stopped(int index, int signal, double now) {
  change(index, State::stopped, signal, now);
}
void UnitWatch::continued(int index, double now) {
  change(index, State::runs, 0, now);
}
void UnitWatch::killed(int index, int signal, double now) {
  change(index, State::killed, signal, now);
}
void UnitWatch::exited(int index, int status, double now) {
  change(index, State::exited, status, now);
}
void UnitWatch::vanished(int index, double now) {
  change(index, State::vanished, 0, now);
}

void UnitWatch::launcher_ended(const std::string& how, double now) {
  launcher_end_ = how;
  launcher_ended_at_ = now;
}

bool UnitWatch::awaits(const Process& process) const {
  return process.state == State::awaited ||
         (serves_ && process.state == State::runs && process.address.empty());
}

bool UnitWatch::ready() const {
  return std::ranges::none_of(processes_, [&](const Process& each) { return awaits(each); });
}

std::string UnitWatch::name(size_t index) const {
  const Process& process = processes_[index];
  return fmt::format("{} {} on {} (process {})", role_, first_ + index, process.host, process.id);
}

double UnitWatch::lost_at(const Process& process) const {
  return process.since + (process.state == State::stopped ? limits_.stopped_seconds : 0.0);
}

bool UnitWatch::lost_by(const Process& process, double now) const {
  switch (process.state) {
    case State::killed:
    case State::vanished:
      return true;
    case State::stopped:
      return now >= lost_at(process);
    case State::exited:
      return serves_ && process.number == 0;
    case State::awaited:
    case State::runs:
      return false;
  }
  return false;
}

// The earliest loss is the cause. A process that exits with an error may have met the loss of
// another.
Verdict UnitWatch::judge(double now) const {
  std::optional<size_t> first;
  for (size_t i = 0; i < processes_.size(); ++i) {
    if (!lost_by(processes_[i], now)) continue;
    if (!first || lost_at(processes_[i]) < lost_at(processes_[*first])) first = i;
  }
  const Verdict unheard = silent(now);
  if (first && (unheard.state == UnitState::runs || lost_at(processes_[*first]) < unheard.since))
    return lost(*first);
  for (const Verdict& verdict : {unheard, failed(now), absent(now)}) {
    if (verdict.state != UnitState::runs) return verdict;
  }
  const bool done = std::ranges::all_of(
      processes_, [](const Process& process) { return process.state == State::exited; });
  return {done ? UnitState::done : UnitState::runs};
}

Verdict UnitWatch::lost(size_t index) const {
  const Process& process = processes_[index];
  const bool crashed = process.state == State::killed && is_crash(process.number);
  std::string how = "ended before the job did";
  if (process.state == State::vanished) how = "was lost together with the process that watched it";
  if (process.state == State::killed)
    how = (crashed ? "crashed by " : "was killed by ") + signal_name(process.number);
  if (process.state == State::stopped) how = "was stopped by " + signal_name(process.number);
  return {.state = crashed ? UnitState::failed : UnitState::lost,
          .why = Status::Failed(name(index) + " " + how),
          .since = lost_at(process)};
}

Verdict UnitWatch::silent(double now) const {
  std::optional<size_t> first;
  for (size_t i = 0; i < processes_.size(); ++i) {
    const Process& process = processes_[i];
    const bool watched = process.state == State::runs || process.state == State::stopped;
    if (!watched || now <= process.heard + limits_.silence_seconds) continue;
    if (!first || process.heard < processes_[*first].heard) first = i;
  }
  if (!first) return {};
  return {.state = UnitState::lost,
          .why = Status::Failed(
              fmt::format("{} has given no sign of life for {:g} s: its host or the way to it is "
                          "lost",
                          name(*first), limits_.silence_seconds)),
          .lost_host = processes_[*first].host,
          .since = processes_[*first].heard + limits_.silence_seconds};
}

Verdict UnitWatch::failed(double now) const {
  std::optional<size_t> first;
  bool settled = true, all_failed = processes_.size() > 1;
  double last = 0.0;
  for (size_t i = 0; i < processes_.size(); ++i) {
    const Process& process = processes_[i];
    settled = settled && process.state == State::exited;
    const bool failed = process.state == State::exited && process.number != 0;
    all_failed = all_failed && failed;
    last = std::max(last, process.since);
    if (failed && (!first || process.since < processes_[*first].since)) first = i;
  }
  if (!first) return {};
  const Process& process = processes_[*first];
  const double settles = process.since + limits_.settle_seconds;
  if (!settled && now < settles) return {};
  // Of all that failed the first to end need not be the one that told why.
  const std::string text = fmt::format(
      "{} ended with status {}", all_failed ? "every " + role_ : name(*first), process.number);
  return {.state = UnitState::failed,
          .why = process.number == kBadRequest ? Status::BadRequest(text) : Status::Failed(text),
          .since = settled ? std::min(last, settles) : settles};
}

Verdict UnitWatch::absent(double now) const {
  const auto awaited =
      std::ranges::find_if(processes_, [&](const Process& process) { return awaits(process); });
  const double left = launcher_ended_at_ + limits_.settle_seconds;
  const bool launcher_left = !launcher_end_.empty() && now > left;
  if (awaited != processes_.end()) {
    const double end = start_ + limits_.start_seconds;
    const bool came = awaited->state != State::awaited;
    const std::string who = fmt::format("{} {}", role_, first_ + (awaited - processes_.begin()));
    if (launcher_left)
      return {.state = UnitState::failed,
              .why = Status::Failed(fmt::format("{} before {} started", launcher_end_, who)),
              .since = left};
    if (now <= end) return {};
    return {.state = UnitState::failed,
            .why = Status::Failed(fmt::format("{} has not {} within {:g} s", who,
                                              came ? "told its address" : "started",
                                              limits_.start_seconds)),
            .since = end};
  }
  const auto running = std::ranges::find(processes_, State::runs, &Process::state);
  if (!launcher_left || running == processes_.end()) return {};
  return {.state = UnitState::lost,
          .why = Status::Failed(fmt::format("{} while {} was running", launcher_end_,
                                            name(running - processes_.begin()))),
          .since = left};
}

}  // namespace recmill::server
