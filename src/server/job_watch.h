// SPDX-License-Identifier: Apache-2.0
// Decides what a job's supervisor does, from what it has heard of the job's processes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "server/host_list.h"
#include "server/role.h"
#include "server/unit_watch.h"

namespace recmill::server {

/// What one launcher starts and ends: the ranks of a role, or one server.
struct Unit {
  enum class State {
    waiting,  // to be started
    runs,
    ending,  // told to end, with all that it has started
    gone,    // for good
  };
  size_t role = 0;
  int first = 0, count = 1;  // of the role's processes
  State state = State::waiting;
  std::string host = {};     // of a server; empty: this one
  std::string address = {};  // that a server told when it last ran
  std::string restart = {};  // what is said of its next start
};

struct Order {
  enum class What {
    start,
    end,        // and tell gone() when nothing of it is left
    interrupt,  // let its processes finish what they do, save and end
  };
  What what;
  size_t unit;
};

struct Step {
  std::vector<std::string> lines;  // to be told to people
  std::vector<Order> orders;       // in their order
};

/// Without threads, sockets or clocks: times are seconds of one clock. What is guaranteed:
/// - A role starts when those before it are ready, and not before all that a loss ends is gone: no
///   two starts of a process live at once, and none lives beside an older one of a role that
///   restarts with it.
/// - Losses of a role end nothing but what its rule says.
/// - The earliest loss is the cause. An error that a process has told of its own is believed only
///   when no loss explains it, and is not tried again.
/// - The job ends when its ranks have, by an error, or when a role has had its restarts.
class JobWatch {
 public:
  /// No hosts: everything runs on this one. Else they have room for the ranks.
  JobWatch(std::vector<Role> roles, std::vector<Host> hosts);

  const std::vector<Unit>& units() const { return units_; }
  const Role& role_of(size_t unit) const { return roles_[units_[unit].role]; }
  const std::vector<Host>& hosts() const { return hosts_; }
  /// The arguments of the unit's program, were it started now.
  std::vector<std::string> words(size_t unit) const;

  /// What is heard of a unit that runs is told here.
  UnitWatch& watch(size_t unit) { return *watches_[unit]; }
  /// The run's folder is this job's.
  void begun() { has_begun_ = true; }
  /// It could not be started, and the job ends.
  void start_failed(size_t unit, Status why);
  void gone(size_t unit);
  /// How often people have asked to stop: at once 1 to finish and save, 2 to end.
  void interrupts(int times);

  /// What is to be done now. Is asked again and again.
  Step step(double now);
  /// Whether all ranks have, and what is left may end by itself.
  bool ended_well() const { return outcome_ && outcome_->ok(); }
  /// Of the job, once it is over and everything is gone.
  std::optional<Status> outcome() const;

 private:
  struct Loss {
    size_t unit;
    Verdict verdict;
  };
  bool alone(size_t unit) const { return role_of(unit).restart == Restart::alone; }
  void decide(double now);
  bool ranks_done(double now) const;
  void lose(const std::vector<Loss>& losses);
  void lose_alone(const Loss& loss);
  std::optional<std::string> restart_of(const Loss& loss);
  void end_for_restart(size_t unit, const std::string& restart);
  void finish(Status outcome);
  void end(size_t unit);
  void obey_interrupts();
  bool may_start(size_t unit) const;
  void start(size_t unit, double now);
  Status place(Unit& unit, bool again) const;
  void say_restart(size_t unit, int count_before);

  const std::vector<Role> roles_;
  const bool anywhere_;      // no hosts are named
  std::vector<Host> hosts_;  // that are left
  std::vector<Unit> units_;  // in the order of roles
  std::vector<std::optional<UnitWatch>> watches_;
  std::vector<int> restarts_;  // by role
  std::optional<Status> outcome_, loss_;
  bool has_begun_ = false;
  int interrupts_ = 0, obeyed_ = 0;
  Step step_;
};

}  // namespace recmill::server
