// SPDX-License-Identifier: Apache-2.0
// Decides from what is heard of a job's ranks whether it goes on, has ended, or has lost a rank.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace recmill::server {

struct WatchLimits {
  double start_seconds = 60.0;   // in which all ranks come
  double silence_seconds = 5.0;  // without a sign of life after which a rank is lost
  /// After a rank that ended with an error: how long others may take to do so too. One that was
  /// killed is the cause then, whoever was heard of first.
  double settle_seconds = 2.0;
};

enum class JobState {
  runs,
  done,
  failed,  // the program itself ended with an error, which it has told, or crashed: it would again
  lost,    // a rank was killed, was stopped, or is not heard of any more
};

struct Verdict {
  JobState state = JobState::runs;
  Status why;             // of failed and lost, with rank and host; a bad request where the program
                          // said so
  std::string lost_host;  // of lost: the host that is silent; empty: its rank alone
};

/// Times are seconds of one clock. What is told of a rank after its end changes nothing.
class JobWatch {
 public:
  JobWatch(int ranks, WatchLimits limits, double now);

  void came(int rank, std::string host, long process, double now);
  void heard(int rank, double now);
  void stopped(int rank, int signal, double now);
  void continued(int rank, double now);
  void killed(int rank, int signal, double now);
  void exited(int rank, int status, double now);
  /// Nothing more will be heard of the rank.
  void vanished(int rank, double now);
  /// What started the ranks has ended.
  void launcher_ended(const std::string& how, double now);

  Verdict judge(double now) const;
  bool all_came() const;

 private:
  enum class State { awaited, runs, stopped, killed, exited, vanished };
  struct Rank {
    State state = State::awaited;
    int number = 0;  // of the signal, or the exit status
    double since = 0.0, heard = 0.0;
    std::string host;
    long process = 0;
  };
  void change(int rank, State state, int number, double now);
  std::string name(size_t rank) const;
  Verdict lost(size_t rank, const std::string& how) const;
  Verdict failed(double now) const;
  Verdict silent(double now) const;
  Verdict absent(double now) const;

  const WatchLimits limits_;
  const double start_;
  std::vector<Rank> ranks_;
  std::string launcher_end_;  // empty: it runs
  double launcher_ended_at_ = 0.0;
};

}  // namespace recmill::server
