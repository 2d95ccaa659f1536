// SPDX-License-Identifier: Apache-2.0
#include "server/job_watch.h"

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

JobWatch::JobWatch(int ranks, WatchLimits limits, double now)
    : limits_(limits), start_(now), ranks_(ranks) {}

void JobWatch::came(int rank, std::string host, long process, double now) {
  Rank& of = ranks_[rank];
  of.host = std::move(host);
  of.process = process;
  change(rank, State::runs, 0, now);
}

void JobWatch::heard(int rank, double now) {
  ranks_[rank].heard = now;
}

void JobWatch::change(int rank, State state, int number, double now) {
  Rank& of = ranks_[rank];
  of.heard = now;
  if (of.state == State::killed || of.state == State::exited || of.state == State::vanished) return;
  of.state = state;
  of.number = number;
  of.since = now;
}

void JobWatch::stopped(int rank, int signal, double now) {
  change(rank, State::stopped, signal, now);
}
void JobWatch::continued(int rank, double now) {
  change(rank, State::runs, 0, now);
}
void JobWatch::killed(int rank, int signal, double now) {
  change(rank, State::killed, signal, now);
}
void JobWatch::exited(int rank, int status, double now) {
  change(rank, State::exited, status, now);
}
void JobWatch::vanished(int rank, double now) {
  change(rank, State::vanished, 0, now);
}

void JobWatch::launcher_ended(const std::string& how, double now) {
  launcher_end_ = how;
  launcher_ended_at_ = now;
}

bool JobWatch::all_came() const {
  return std::ranges::none_of(ranks_,
                              [](const Rank& rank) { return rank.state == State::awaited; });
}

std::string JobWatch::name(size_t rank) const {
  return fmt::format("rank {} on {} (process {})", rank, ranks_[rank].host, ranks_[rank].process);
}

Verdict JobWatch::lost(size_t rank, const std::string& how) const {
  return {JobState::lost, Status::Failed(name(rank) + " " + how), ""};
}

// The earliest loss is the cause. A rank that exits with an error may have met the loss of another.
Verdict JobWatch::judge(double now) const {
  std::optional<size_t> first;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const State state = ranks_[r].state;
    const bool gone = state == State::killed || state == State::stopped || state == State::vanished;
    if (gone && (!first || ranks_[r].since < ranks_[*first].since)) first = r;
  }
  if (first) {
    const Rank& rank = ranks_[*first];
    if (rank.state == State::vanished)
      return lost(*first, "was lost together with the process that watched it");
    if (rank.state == State::killed && is_crash(rank.number))
      return {JobState::failed,
              Status::Failed(name(*first) + " crashed by " + signal_name(rank.number)), ""};
    return lost(*first, (rank.state == State::killed ? "was killed by " : "was stopped by ") +
                            signal_name(rank.number));
  }
  for (const Verdict& verdict : {silent(now), failed(now), absent(now)}) {
    if (verdict.state != JobState::runs) return verdict;
  }
  const bool done =
      std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.state == State::exited; });
  return {done ? JobState::done : JobState::runs, {}, ""};
}

Verdict JobWatch::silent(double now) const {
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = ranks_[r];
    if (rank.state != State::runs || now - rank.heard <= limits_.silence_seconds) continue;
    Verdict verdict = lost(r, fmt::format("has given no sign of life for {:g} s: its host or the "
                                          "way to it is lost",
                                          limits_.silence_seconds));
    verdict.lost_host = rank.host;
    return verdict;
  }
  return {};
}

Verdict JobWatch::failed(double now) const {
  std::optional<size_t> first;
  bool settled = true, all_failed = true;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = ranks_[r];
    settled = settled && rank.state == State::exited;
    const bool failed = rank.state == State::exited && rank.number != 0;
    all_failed = all_failed && failed;
    if (failed && (!first || rank.since < ranks_[*first].since)) first = r;
  }
  if (!first || (!settled && now - ranks_[*first].since < limits_.settle_seconds)) return {};
  // Of all that failed the first to end need not be the one that told why.
  const std::string text = fmt::format(
      "{} ended with status {}", all_failed ? "every rank" : name(*first), ranks_[*first].number);
  return {JobState::failed,
          ranks_[*first].number == kBadRequest ? Status::BadRequest(text) : Status::Failed(text),
          ""};
}

Verdict JobWatch::absent(double now) const {
  const auto rank = std::ranges::find(ranks_, State::awaited, &Rank::state);
  const auto fail = [](const std::string& text) {
    return Verdict{JobState::failed, Status::Failed(text), ""};
  };
  const bool launcher_left =
      !launcher_end_.empty() && now - launcher_ended_at_ > limits_.settle_seconds;
  if (rank != ranks_.end()) {
    const std::string who = fmt::format("rank {}", rank - ranks_.begin());
    if (launcher_left) return fail(fmt::format("{} before {} started", launcher_end_, who));
    if (now - start_ > limits_.start_seconds)
      return fail(fmt::format("{} has not started within {:g} s", who, limits_.start_seconds));
    return {};
  }
  const auto running = std::ranges::find(ranks_, State::runs, &Rank::state);
  if (launcher_left && running != ranks_.end()) {
    return {JobState::lost,
            Status::Failed(fmt::format("{} while {} was running", launcher_end_,
                                       name(running - ranks_.begin()))),
            ""};
  }
  return {};
}

}  // namespace recmill::server
