// SPDX-License-Identifier: Apache-2.0
#include "server/job_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/launch_command.h"

namespace recmill::server {
namespace {

std::vector<Unit> units_of(const std::vector<Role>& roles) {
  std::vector<Unit> units;
  for (size_t r = 0; r < roles.size(); ++r) {
    if (roles[r].kind == RoleKind::ranks) {
      units.push_back({.role = r, .count = roles[r].count});
      continue;
    }
    for (int i = 0; i < roles[r].count; ++i) units.push_back({.role = r, .first = i});
  }
  return units;
}

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
}

std::string port_of(const std::string& address) {
  return address.empty() ? "0" : address.substr(address.rfind(':') + 1);
}

}  // namespace

JobWatch::JobWatch(std::vector<Role> roles, std::vector<Host> hosts)
    : roles_(std::move(roles)),
      anywhere_(hosts.empty()),
      hosts_(std::move(hosts)),
      units_(units_of(roles_)),
      watches_(units_.size()),
      restarts_(roles_.size(), 0) {
  RECMILL_CHECK(std::ranges::find(roles_, RoleKind::ranks, &Role::kind) != roles_.end(),
                "a job without ranks");
}

std::vector<std::string> JobWatch::words(size_t unit) const {
  const Unit& of = units_[unit];
  const Role& role = roles_[of.role];
  const bool ranks = role.kind == RoleKind::ranks;
  auto words = ranks ? restart_words(role.words, has_begun_, of.count != role.count) : role.words;
  std::vector<std::string> addresses(of.role), quoted(of.role);
  for (const Unit& other : units_) {
    if (other.role >= of.role) continue;
    const std::string comma = other.first > 0 ? "," : "";
    addresses[other.role] += comma + other.address;
    quoted[other.role] += comma + '"' + other.address + '"';
  }
  for (std::string& word : words) {
    for (size_t r = 0; r < of.role; ++r) {
      if (roles_[r].kind != RoleKind::servers) continue;
      replace_all(word, "{" + roles_[r].name + "}", addresses[r]);
      replace_all(word, "{\"" + roles_[r].name + "\"}", quoted[r]);
    }
    if (ranks) continue;
    replace_all(word, "{index}", std::to_string(of.first));
    replace_all(word, "{port}", port_of(of.address));
  }
  return words;
}

void JobWatch::start_failed(size_t unit, Status why) {
  units_[unit].state = Unit::State::gone;
  finish(std::move(why));
}

void JobWatch::gone(size_t unit) {
  units_[unit].state = outcome_ ? Unit::State::gone : Unit::State::waiting;
}

void JobWatch::interrupts(int times) {
  interrupts_ = times;
}

std::optional<Status> JobWatch::outcome() const {
  const bool all_gone =
      std::ranges::all_of(units_, [](const Unit& unit) { return unit.state == Unit::State::gone; });
  return all_gone ? outcome_ : std::nullopt;
}

Step JobWatch::step(double now) {
  for (size_t u = 0; u < units_.size(); ++u) {
    const bool serves = role_of(u).kind == RoleKind::servers;
    if (units_[u].state == Unit::State::runs && serves && !watches_[u]->address(0).empty())
      units_[u].address = watches_[u]->address(0);
  }
  if (!outcome_) decide(now);
  if (!outcome_) obey_interrupts();
  for (size_t u = 0; u < units_.size() && !outcome_; ++u) {
    if (may_start(u)) start(u, now);
  }
  return std::exchange(step_, {});
}

void JobWatch::decide(double now) {
  if (ranks_done(now)) return finish({});
  // Another role's loss may explain an error, and be heard of later.
  const bool others = std::ranges::any_of(roles_, [](const Role& role) {
    return role.kind == RoleKind::servers && role.restart != Restart::alone;
  });
  std::vector<Loss> losses;
  std::optional<Loss> failure;
  for (size_t u = 0; u < units_.size(); ++u) {
    if (units_[u].state != Unit::State::runs) continue;
    Loss found{u, watches_[u]->judge(now)};
    Verdict& verdict = found.verdict;
    if (verdict.state == UnitState::failed) {
      verdict.since += others ? role_of(u).limits.settle_seconds : 0.0;
      if (verdict.since > now) continue;
      if (!failure || verdict.since < failure->verdict.since) failure = found;
    } else if (verdict.state == UnitState::lost && alone(u)) {
      lose_alone(found);
      if (outcome_) return;
    } else if (verdict.state == UnitState::lost) {
      losses.push_back(found);
    }
  }
  std::ranges::stable_sort(losses, {}, [](const Loss& loss) { return loss.verdict.since; });
  if (failure && (losses.empty() || failure->verdict.since < losses.front().verdict.since))
    return finish(failure->verdict.why);
  if (!losses.empty()) lose(losses);
}

bool JobWatch::ranks_done(double now) const {
  for (size_t u = 0; u < units_.size(); ++u) {
    if (role_of(u).kind != RoleKind::ranks) continue;
    if (units_[u].state != Unit::State::runs || watches_[u]->judge(now).state != UnitState::done)
      return false;
  }
  return true;
}

/// What its next start is said to be; none: there is no further one.
std::optional<std::string> JobWatch::restart_of(const Loss& loss) {
  const size_t r = units_[loss.unit].role;
  step_.lines.push_back(loss.verdict.why.message());
  if (!loss.verdict.lost_host.empty()) hosts_ = without_host(hosts_, loss.verdict.lost_host);
  if (restarts_[r] == roles_[r].restarts) return std::nullopt;
  ++restarts_[r];
  return fmt::format(", restart {} of {}", restarts_[r], roles_[r].restarts);
}

void JobWatch::lose_alone(const Loss& loss) {
  const auto restart = restart_of(loss);
  if (!restart) return finish(loss.verdict.why);
  end_for_restart(loss.unit, *restart);
}

// Those lost at once share a restart, in which each ends what its rule says.
void JobWatch::lose(const std::vector<Loss>& losses) {
  const auto restart = restart_of(losses.front());
  if (!restart || interrupts_ > 0) return finish(losses.front().verdict.why);
  loss_ = losses.front().verdict.why;
  for (const Loss& loss : losses) {
    if (!loss.verdict.lost_host.empty()) hosts_ = without_host(hosts_, loss.verdict.lost_host);
    const bool all = role_of(loss.unit).restart == Restart::all;
    for (size_t u = 0; u < units_.size(); ++u) {
      if (!alone(u) && (all || units_[u].role == units_[loss.unit].role))
        end_for_restart(u, *restart);
    }
  }
}

void JobWatch::end_for_restart(size_t unit, const std::string& restart) {
  if (!watches_[unit]) return;  // its first start is still to come
  units_[unit].restart = restart;
  end(unit);
}

void JobWatch::finish(Status outcome) {
  outcome_ = std::move(outcome);
  for (size_t u = 0; u < units_.size(); ++u) {
    if (units_[u].state == Unit::State::waiting) units_[u].state = Unit::State::gone;
    end(u);
  }
}

void JobWatch::end(size_t unit) {
  if (units_[unit].state != Unit::State::runs) return;
  units_[unit].state = Unit::State::ending;
  step_.orders.push_back({Order::What::end, unit});
}

// Ranks that do not run have nothing to save.
void JobWatch::obey_interrupts() {
  if (interrupts_ == obeyed_) return;
  const bool first = std::exchange(obeyed_, interrupts_) == 0;
  bool runs = false;
  for (size_t u = 0; u < units_.size(); ++u) {
    if (role_of(u).kind != RoleKind::ranks || units_[u].state != Unit::State::runs) continue;
    runs = true;
    if (first) step_.orders.push_back({Order::What::interrupt, u});
  }
  if (interrupts_ > 1 || !runs)
    finish(loss_ && !runs ? *loss_ : Status::Failed("interrupted: the job was ended"));
}

bool JobWatch::may_start(size_t unit) const {
  if (units_[unit].state != Unit::State::waiting) return false;
  for (size_t u = 0; u < units_.size(); ++u) {
    const bool runs = units_[u].state == Unit::State::runs;
    if (units_[u].role < units_[unit].role && (!runs || !watches_[u]->ready())) return false;
    if (units_[u].state == Unit::State::ending && !alone(u) && !alone(unit)) return false;
  }
  return true;
}

void JobWatch::start(size_t unit, double now) {
  Unit& of = units_[unit];
  const int before = of.count;
  if (Status placed = place(of, !of.restart.empty()); !placed.ok())
    return finish(std::move(placed));
  if (!of.restart.empty()) say_restart(unit, before);
  of.state = Unit::State::runs;
  watches_[unit].emplace(roles_[of.role], of.first, of.count, now);
  step_.orders.push_back({Order::What::start, unit});
}

/// Where it runs, and how many ranks. A server that keeps its host keeps its port too.
Status JobWatch::place(Unit& unit, bool again) const {
  const Role& role = roles_[unit.role];
  if (role.kind == RoleKind::ranks) {
    const int wanted = again && role.resume_count > 0 ? role.resume_count : unit.count;
    const int most = anywhere_ ? wanted : room(hosts_);
    if (most < wanted && (role.resume_count > 0 || most == 0))
      return Status::Failed(
          fmt::format("the hosts that are left hold {} ranks, {} are wanted", most, wanted));
    unit.count = std::min(most, wanted);
    return {};
  }
  if (anywhere_ || std::ranges::find(hosts_, unit.host, &Host::name) != hosts_.end()) return {};
  if (hosts_.empty()) return Status::Failed("no host is left for " + role.name);
  unit.host = hosts_[unit.first % hosts_.size()].name;
  unit.address.clear();
  return {};
}

void JobWatch::say_restart(size_t unit, int count_before) {
  Unit& of = units_[unit];
  const Role& role = roles_[of.role];
  std::string line;
  if (role.kind == RoleKind::ranks) {
    line = fmt::format("{} with {} rank{}{}",
                       has_begun_ ? "goes on from what was saved last," : "starts again", of.count,
                       of.count == 1 ? "" : "s",
                       of.count == count_before ? "" : fmt::format(" instead of {}", count_before));
  } else if (role.restart == Restart::alone || role.count == 1) {
    line = fmt::format("{} {} starts again", role.name, of.first);
  } else {
    line = fmt::format("every {} starts again", role.name);
  }
  step_.lines.push_back(line + std::exchange(of.restart, ""));
  if (role.restart == Restart::alone) return;
  for (Unit& other : units_) {
    if (other.role == of.role) other.restart.clear();  // it is said once
  }
}

}  // namespace recmill::server
