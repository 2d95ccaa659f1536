// SPDX-License-Identifier: Apache-2.0
// JobWatch with processes that come, are killed, stopped and cut off, end and are ended as seeds
// say.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>

#include "base/random.h"
#include "server/job_watch.h"

namespace recmill::server {
namespace {

constexpr double kStep = 0.25, kLongest = 600.0, kSilence = 5.0, kSettle = 2.0;

/// What a schedule holds besides losses.
struct Kind {
  bool ranks_only = false;  // that are lost
  bool errors = false;      // programs crash, and end with errors of their own
  bool hosts = false;       // are cut off
  bool interrupts = false;
  int restarts = 100;
};

class Simulation {
 public:
  Simulation(const Kind& kind, uint64_t seed)
      : kind_(kind),
        random_(seed, Purpose::test),
        job_(roles(), kind.hosts ? std::vector<Host>{{.name = "a", .slots = 2},
                                                     {.name = "b", .slots = 2},
                                                     {.name = "c", .slots = 2}}
                                 : std::vector<Host>()),
        processes_(job_.units().size()) {}

  void run();

 private:
  struct Process {
    bool alive = false, silent = false, was_stopped = false;
    bool told = false;  // its end
    double heard = 0.0;
    std::string host;
  };
  struct Loss {
    double told, at;  // when its guard tells it, and from when on it is one
    size_t unit;
    int start;  // of the unit
    std::string name;
  };

  double draw(double most) { return most * random_.uniform64(drawn_++); }
  size_t draw_below(size_t bound) { return random_.below(bound, drawn_++); }
  std::vector<Role> roles() {
    const auto role = [&](RoleKind kind, const char* name, size_t most, Restart restart) {
      return Role{.name = name,
                  .kind = kind,
                  .words = {"x"},
                  .count = 1 + static_cast<int>(draw_below(most)),
                  .restart = restart,
                  .restarts = kind_.restarts,
                  .limits = {.start_seconds = 10.0,
                             .silence_seconds = kSilence,
                             .stopped_seconds = draw_below(2) == 0 ? 0.0 : 1.0,
                             .settle_seconds = kSettle}};
    };
    return {role(RoleKind::servers, "server", 3, Restart::all),
            role(RoleKind::servers, "mate", 2, Restart::together),
            role(RoleKind::servers, "helper", 3, Restart::alone),
            role(RoleKind::ranks, "rank", 4, Restart::together)};
  }
  bool is_ranks(size_t unit) const { return job_.role_of(unit).kind == RoleKind::ranks; }
  bool alone(size_t unit) const { return job_.role_of(unit).restart == Restart::alone; }
  bool runs(size_t unit) const { return job_.units()[unit].state == Unit::State::runs; }
  std::string name(size_t unit, size_t index) const {
    return job_.role_of(unit).name + " " + std::to_string(job_.units()[unit].first + index);
  }

  void at(double time, std::function<void()> event) { events_.emplace(time, std::move(event)); }
  /// Of a process, while it is heard of.
  void at(double time, size_t unit, size_t index, std::function<void(UnitWatch&)> event) {
    at(time, [=, this, start = starts_[unit]] {
      if (starts_[unit] != start || !runs(unit) || processes_[unit][index].silent) return;
      processes_[unit][index].heard = now_;
      event(job_.watch(unit));
    });
  }
  void plan_attacks();
  void attack();
  void strike(size_t unit, size_t index, size_t how);
  void cut(const std::string& host);
  void lose(size_t unit, size_t index, double told, double at);
  void forget(size_t unit, size_t index, const std::function<bool(const Loss&)>& which) {
    std::erase_if(losses_, [&](const Loss& loss) {
      return loss.unit == unit && loss.name == name(unit, index) && which(loss);
    });
  }
  void silence(size_t unit, size_t index);
  void exit(size_t unit, size_t index, int status);
  void ranks_fail(double soonest);
  void beat();
  void start(size_t unit);
  void begin_process(size_t unit, size_t index, double work);
  void end(size_t unit);
  void check_lines(const Step& step);
  void check_ends(const Step& step);
  void check_start(size_t unit) const;
  bool explains(const Loss& loss, size_t unit) const;

  const Kind kind_;
  const Random random_;
  uint64_t drawn_ = 0;
  JobWatch job_;
  std::vector<std::vector<Process>> processes_;  // of the last start, by unit
  std::map<size_t, int> starts_;
  std::multimap<double, std::function<void()>> events_;
  std::vector<Loss> losses_;  // that nothing followed from yet
  std::map<size_t, bool> ends_for_good_;
  bool attacked_ = false;
  double now_ = 0.0;
};

void Simulation::plan_attacks() {
  for (size_t count = draw_below(7); count > 0; --count) at(draw(60.0), [this] { attack(); });
  if (!kind_.interrupts) return;
  const double first = draw(40.0);
  at(first, [this] {
    job_.interrupts(1);
    for (size_t u = 0; u < processes_.size(); ++u) {
      if (!is_ranks(u) || !runs(u)) continue;
      for (size_t i = 0; i < processes_[u].size(); ++i) {
        at(now_ + draw(3.0), u, i, [this, u, i](UnitWatch&) { exit(u, i, 0); });
      }
    }
  });
  if (draw_below(2) == 0) at(first + draw(10.0), [this] { job_.interrupts(2); });
}

void Simulation::attack() {
  const size_t unit = draw_below(processes_.size());
  if (!runs(unit) || (kind_.ranks_only && !is_ranks(unit)) || processes_[unit].empty()) return;
  const size_t index = draw_below(processes_[unit].size());
  Process& process = processes_[unit][index];
  if (!process.alive || process.silent || process.host.empty()) return;
  attacked_ = true;
  if (kind_.hosts && draw_below(3) == 0) return cut(process.host);
  strike(unit, index, draw_below(kind_.errors ? 5 : 3));
}

// The guard tells at once, but it may be a while under way.
void Simulation::strike(size_t unit, size_t index, size_t how) {
  Process& process = processes_[unit][index];
  const double known = now_ + draw(1.0);
  if (how == 2 && kind_.hosts) how = 0;
  if (how == 1) {  // stopped
    if (process.was_stopped) return;
    process.was_stopped = true;
    lose(unit, index, known, known + job_.role_of(unit).limits.stopped_seconds);
    return at(known, unit, index,
              [=, this](UnitWatch& watch) { watch.stopped(index, SIGSTOP, now_); });
  }
  if (how == 2) return silence(unit, index);
  process.alive = false;
  const bool leaves = how == 0 && !is_ranks(unit) && draw_below(2) == 0;
  if (how == 0) lose(unit, index, known, known);
  at(known, unit, index, [=, this](UnitWatch& watch) {
    processes_[unit][index].told = true;
    forget(unit, index, [](const Loss&) { return true; });  // that it was stopped
    if (how == 0) lose(unit, index, now_, now_);
    if (how == 4 || leaves) return watch.exited(index, leaves ? 0 : 1, now_);
    watch.killed(index, how == 0 ? SIGKILL : SIGSEGV, now_);
  });
  const bool missed = is_ranks(unit) || job_.role_of(unit).restart == Restart::all;
  if (missed && draw_below(2) == 0) ranks_fail(now_);
}

// Those that miss another one.
void Simulation::ranks_fail(double soonest) {
  for (size_t u = 0; u < processes_.size(); ++u) {
    if (!is_ranks(u) || !runs(u)) continue;
    for (size_t i = 0; i < processes_[u].size(); ++i) {
      at(soonest + draw(1.0), u, i, [this, u, i](UnitWatch&) { exit(u, i, 1); });
    }
  }
}

void Simulation::cut(const std::string& host) {
  for (size_t u = 0; u < processes_.size(); ++u) {
    for (size_t i = 0; i < processes_[u].size(); ++i) {
      if (processes_[u][i].host == host && !processes_[u][i].silent) silence(u, i);
    }
  }
}

// What its guard has not told yet stays untold.
void Simulation::silence(size_t unit, size_t index) {
  Process& process = processes_[unit][index];
  process.silent = true;
  forget(unit, index, [this](const Loss& loss) { return loss.told > now_; });
  const double at = process.heard + kSilence;
  if (!process.told && runs(unit)) lose(unit, index, at, at);
}

void Simulation::lose(size_t unit, size_t index, double told, double at) {
  losses_.push_back({told, at, unit, starts_[unit], name(unit, index)});
}

void Simulation::exit(size_t unit, size_t index, int status) {
  Process& process = processes_[unit][index];
  if (!process.alive || process.host.empty() || process.was_stopped) return;
  process.alive = false;
  process.told = true;
  job_.watch(unit).exited(static_cast<int>(index), status, now_);
}

void Simulation::beat() {
  for (size_t u = 0; u < processes_.size(); ++u) {
    for (size_t i = 0; i < processes_[u].size() && runs(u); ++i) {
      Process& process = processes_[u][i];
      if (process.silent || process.host.empty()) continue;
      job_.watch(u).heard(i, now_);
      process.heard = now_;
    }
  }
}

void Simulation::start(size_t unit) {
  check_start(unit);
  ++starts_[unit];
  processes_[unit].assign(job_.units()[unit].count, {});
  const double work = 3.0 + draw(20.0);
  for (size_t i = 0; i < processes_[unit].size(); ++i) begin_process(unit, i, work);
}

void Simulation::begin_process(size_t unit, size_t index, double work) {
  const std::string host = kind_.hosts
                               ? is_ranks(unit) ? job_.hosts()[0].name : job_.units()[unit].host
                               : "h" + std::to_string(index);
  processes_[unit][index].alive = true;
  const double came = now_ + draw(1.0);
  at(came, unit, index, [=, this](UnitWatch& watch) {
    Process& process = processes_[unit][index];
    process.host = host;
    process.heard = now_;
    watch.came(index, host, 1, now_);
  });
  if (!is_ranks(unit)) {
    at(came + draw(1.0), unit, index, [=, this](UnitWatch& watch) {
      if (processes_[unit][index].alive) watch.announced(index, "h:1", now_);
    });
    return;
  }
  at(came + work, unit, index, [=, this](UnitWatch&) { exit(unit, index, 0); });
}

void Simulation::end(size_t unit) {
  double last = now_;
  for (Process& process : processes_[unit]) {
    const double ends = now_ + draw(process.silent ? kSilence + 1.0 : 2.0);
    last = std::max(last, ends);
    if (process.alive) at(ends, [&process] { process.alive = false; });
  }
  at(last + 0.01, [=, this] {
    job_.gone(unit);
    EXPECT_TRUE(!ends_for_good_[unit] || job_.units()[unit].state == Unit::State::gone)
        << "unit " << unit << " was ended for no reason";
  });
}

/// Whether the loss ends the unit, by the rules as the header has them.
bool Simulation::explains(const Loss& loss, size_t unit) const {
  if (alone(loss.unit)) return loss.unit == unit;
  const size_t role = job_.units()[loss.unit].role;
  const bool all = job_.role_of(loss.unit).restart == Restart::all;
  return !alone(unit) && (all || job_.units()[unit].role == role);
}

// The earliest loss that is known is named, of processes that restart alone their own.
void Simulation::check_lines(const Step& step) {
  for (const std::string& line : step.lines) {
    const size_t end = line.find(" on ");
    if (end == std::string::npos || line.find("(process ") == std::string::npos) continue;
    const std::string named = line.substr(0, end);
    double of_named = kLongest, earliest = kLongest;
    for (const Loss& loss : losses_) {
      if (loss.at > now_ || starts_[loss.unit] != loss.start) continue;
      if (loss.name == named) of_named = std::min(of_named, loss.at);
      if (!alone(loss.unit) || loss.name == named) earliest = std::min(earliest, loss.at);
    }
    EXPECT_LT(of_named, kLongest) << line;
    EXPECT_TRUE(of_named == earliest || named.starts_with("helper")) << line;
  }
}

// What is ended without a loss that says so is ended for good. What a loss ends is ended.
void Simulation::check_ends(const Step& step) {
  for (const Order& order : step.orders) {
    if (order.what != Order::What::end) continue;
    ends_for_good_[order.unit] = std::ranges::none_of(losses_, [&](const Loss& loss) {
      return loss.at <= now_ && starts_[loss.unit] == loss.start && explains(loss, order.unit);
    });
  }
  for (const Loss& loss : losses_) {
    EXPECT_FALSE(loss.at < now_ && starts_[loss.unit] == loss.start && runs(loss.unit))
        << loss.name << " was lost at " << loss.at;
  }
  std::erase_if(losses_, [&](const Loss& loss) { return loss.at < now_ || !runs(loss.unit); });
}

void Simulation::check_start(size_t unit) const {
  for (size_t u = 0; u < processes_.size(); ++u) {
    for (const Process& process : processes_[u]) {
      const bool apart = u == unit || (!alone(u) && !alone(unit) && !runs(u));
      EXPECT_FALSE(apart && process.alive) << "unit " << unit << " starts beside unit " << u;
    }
  }
}

void Simulation::run() {
  plan_attacks();
  double beat_at = 0.0;
  for (double until = kStep * 0.37; !job_.outcome() && until < kLongest; until += kStep) {
    while (!events_.empty() && events_.begin()->first <= until) {
      now_ = events_.begin()->first;
      const auto event = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      event();
    }
    now_ = until;
    if (now_ >= beat_at) {
      beat();
      beat_at = now_ + 2 * kStep;
    }
    const Step step = job_.step(now_);
    check_lines(step);
    check_ends(step);
    for (const Order& order : step.orders) {
      if (order.what == Order::What::start) start(order.unit);
      if (order.what == Order::What::end) end(order.unit);
    }
  }
  ASSERT_TRUE(job_.outcome()) << "does not end";
  for (const auto& processes : processes_) {
    for (const Process& process : processes) EXPECT_FALSE(process.alive) << "outlives its job";
  }
  const bool losses_only =
      !kind_.errors && !kind_.hosts && !kind_.interrupts && kind_.restarts > 50;
  const bool ends_well = losses_only || (!attacked_ && !kind_.interrupts);
  EXPECT_TRUE(!ends_well || job_.outcome()->ok()) << job_.outcome()->message();
  for (size_t u = 0; u < processes_.size() && kind_.ranks_only; ++u) {
    EXPECT_TRUE(is_ranks(u) || starts_[u] == 1) << "a server did not outlive ranks";
  }
}

void simulate(const Kind& kind, uint64_t schedules) {
  std::printf("seeds 0 to %lu\n", schedules - 1);
  for (uint64_t seed = 0; seed < schedules; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Simulation(kind, seed).run();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(JobWatchSimulation, servers_outlive_lost_ranks) {
  simulate({.ranks_only = true}, 2000);
}

TEST(JobWatchSimulation, losses_end_what_their_rules_say_and_the_job_ends_well) {
  simulate({}, 4000);
}

TEST(JobWatchSimulation, a_role_has_no_more_restarts_than_it_may_have) {
  simulate({.restarts = 1}, 1000);
}

TEST(JobWatchSimulation, everything_ends_after_errors_hosts_cut_off_and_interrupts) {
  simulate({.errors = true}, 1000);
  simulate({.hosts = true}, 1000);
  simulate({.interrupts = true}, 1000);
  simulate({.errors = true, .hosts = true, .interrupts = true, .restarts = 3}, 1000);
}

}  // namespace
}  // namespace recmill::server
