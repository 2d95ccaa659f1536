// SPDX-License-Identifier: Apache-2.0
// Decides from what is heard of processes that were started together whether they go on, have
// ended, or have lost one.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "server/role.h"

namespace recmill::server {

enum class UnitState {
  runs,
  done,
  failed,  // a program itself ended with an error, which it has told, or crashed: it would again
  lost,    // a process was killed, was stopped, or is not heard of any more
};

struct Verdict {
  UnitState state = UnitState::runs;
  Status why = {};             // of failed and lost, with process and host; a bad request where
                               // the program said so
  std::string lost_host = {};  // of lost: the host that is silent; empty: its process alone
  double since = 0.0;          // of failed and lost
};

/// A unit is what one launcher starts: all ranks of a job, or one server. Times are seconds of one
/// clock. What is told of a process after its end changes nothing.
class UnitWatch {
 public:
  /// Processes number `first` to first + count - 1 of their role; below, `index` counts from 0.
  UnitWatch(const Role& role, int first, int count, double now);

  void came(int index, std::string host, long process, double now);
  void heard(int index, double now);
  /// Where a server answers.
  void announced(int index, std::string address, double now);
  void stopped(int index, int signal, double now);
  void continued(int index, double now);
  void killed(int index, int signal, double now);
  void exited(int index, int status, double now);
  /// Nothing more will be heard of the process.
  void vanished(int index, double now);
  /// What started the processes has ended.
  void launcher_ended(const std::string& how, double now);

  Verdict judge(double now) const;
  /// Whether all processes have come, and servers told their addresses.
  bool ready() const;
  /// Empty: not told.
  const std::string& address(int index) const { return processes_[index].address; }

 private:
  enum class State { awaited, runs, stopped, killed, exited, vanished };
  struct Process {
    State state = State::awaited;
    int number = 0;  // of the signal, or the exit status
    double since = 0.0, heard = 0.0;
    std::string host, address;
    long id = 0;
  };
  void change(int index, State state, int number, double now);
  bool awaits(const Process& process) const;
  bool lost_by(const Process& process, double now) const;
  double lost_at(const Process& process) const;
  std::string name(size_t index) const;
  Verdict lost(size_t index) const;
  Verdict silent(double now) const;
  Verdict failed(double now) const;
  Verdict absent(double now) const;

  const std::string role_;
  const bool serves_;
  const int first_;
  const WatchLimits limits_;
  const double start_;
  std::vector<Process> processes_;
  std::string launcher_end_;  // empty: it runs
  double launcher_ended_at_ = 0.0;
};

}  // namespace recmill::server
