// SPDX-License-Identifier: Apache-2.0
#include "server/supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/json/json.h"
#include "server/child_process.h"

namespace recmill::server {
namespace {

constexpr int kLookMilliseconds = 100, kEndMilliseconds = 20;
constexpr double kBeatSeconds = 0.5;
/// Guards hear the supervisor as often as it hears them, and may take a little longer.
constexpr double kLeaseBeyondSilence = 1.0;

std::string new_token() {
  uint64_t words[2] = {};
  RECMILL_CHECK(getrandom(words, sizeof(words), 0) == sizeof(words));
  return fmt::format("{:016x}{:016x}", words[0], words[1]);
}

bool is_here(const std::string& host) {
  char own[256] = {};
  gethostname(own, sizeof(own) - 1);
  return host.empty() || host == "localhost" || same_host(host, own);
}

}  // namespace

Status Supervisor::run() {
  RECMILL_ASSIGN_OR_RETURN(MessageListener listener, MessageListener::open());
  listener_.push_back(std::move(listener));
  while (true) {
    watch_.interrupts(setting_.interrupts());
    const Step step = watch_.step(clock_.seconds());
    for (const std::string& line : step.lines) setting_.say(line);
    for (const Order& order : step.orders) obey(order);
    const bool ending = end_units();
    if (const auto outcome = watch_.outcome()) return *outcome;
    wait_for_messages(ending ? kEndMilliseconds : kLookMilliseconds);
    take_newcomers();
    hear();
    reap();
    beat();
  }
}

void Supervisor::wait_for_messages(int milliseconds) {
  std::vector<int> descriptors{listener_[0].descriptor()};
  for (const MessageLine& line : newcomers_) descriptors.push_back(line.descriptor());
  for (const auto& start : starts_) {
    if (start) start->append_descriptors(descriptors);
  }
  std::vector<pollfd> waits;
  waits.reserve(descriptors.size());
  for (const int descriptor : descriptors) waits.push_back({descriptor, POLLIN, 0});
  poll(waits.data(), waits.size(), milliseconds);
}

void Supervisor::take_newcomers() {
  while (auto line = listener_[0].accept()) newcomers_.push_back(*std::move(line));
  for (MessageLine& line : newcomers_) {
    std::vector<Json> messages = line.receive();
    if (!messages.empty()) take(std::move(line), std::move(messages));
  }
  std::erase_if(newcomers_, [](const MessageLine& line) { return !line.open(); });
}

// What is not of this job, or of an older start, is not listened to: its line is closed.
void Supervisor::take(MessageLine line, std::vector<Json> messages) {
  if (messages.front().value("what", "") != "came") return;
  const std::string token = messages.front().value("token", "");
  for (size_t u = 0; u < starts_.size(); ++u) {
    if (starts_[u] && watch_.units()[u].state == Unit::State::runs && starts_[u]->token() == token)
      return starts_[u]->take(std::move(line), std::move(messages), watch_.watch(u),
                              clock_.seconds());
  }
}

void Supervisor::hear() {
  for (size_t u = 0; u < starts_.size(); ++u) {
    if (watch_.units()[u].state != Unit::State::runs || !starts_[u]) continue;
    if (starts_[u]->hear(watch_.watch(u), clock_.seconds())) watch_.begun();
  }
}

// Orphans of the job are this process's children too.
void Supervisor::reap() {
  int status = 0;
  for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (size_t u = 0; u < starts_.size(); ++u) {
      if (!starts_[u] || starts_[u]->launcher() != ended) continue;
      starts_[u]->launcher_ended(status);
      watch_.watch(u).launcher_ended(starts_[u]->launcher_end(), clock_.seconds());
    }
  }
}

void Supervisor::beat() {
  if (since_beat_.seconds() < kBeatSeconds) return;
  since_beat_.lap();
  for (auto& start : starts_) {
    if (start) start->tell("alive");
  }
}

void Supervisor::obey(const Order& order) {
  auto& start = starts_[order.unit];
  switch (order.what) {
    case Order::What::end:
      if (start) start->end(clock_.seconds());
      return;
    case Order::What::interrupt:
      if (start) start->interrupt();
      return;
    case Order::What::start:
      auto begun = UnitStart::begin(start_plan(order.unit));
      if (!begun.ok()) return watch_.start_failed(order.unit, begun.status());
      start.emplace(*std::move(begun));
  }
}

StartPlan Supervisor::start_plan(size_t unit) const {
  const Unit& of = watch_.units()[unit];
  const Role& role = watch_.role_of(unit);
  const double silence = role.limits.silence_seconds;
  StartPlan plan{.words = setting_.guard,
                 .options = {},
                 .token = new_token(),
                 .name = {},
                 .host = of.host.empty() ? "localhost" : of.host,
                 .first = of.first,
                 .count = of.count,
                 .lease_seconds = silence + 2 * kLeaseBeyondSilence,
                 .grace_seconds = role.grace_seconds};
  plan.options.variables = {
      {setting_.variables.addresses, listener_[0].addresses()},
      {setting_.variables.lease_seconds, fmt::format("{:g}", silence + kLeaseBeyondSilence)}};
  if (role.kind == RoleKind::ranks) {
    plan_ranks(unit, plan);
  } else {
    plan_server(unit, plan);
  }
  return plan;
}

void Supervisor::plan_ranks(size_t unit, StartPlan& start) const {
  LaunchPlan plan = setting_.plan;
  plan.hosts = watch_.hosts();
  plan.ranks = start.count;
  plan.program = setting_.guard;
  plan.program.emplace_back("--");
  for (std::string& word : watch_.words(unit)) plan.program.push_back(std::move(word));
  start.words = launch_words(plan);
  start.name = plan.mpirun;
  start.options.variables.emplace_back(setting_.variables.token, start.token);
  start.options.dies_with_parent = true;
}

// A guard on this host hears when its supervisor has gone, and ends its process in order.
void Supervisor::plan_server(size_t unit, StartPlan& start) const {
  const Unit& of = watch_.units()[unit];
  const Role& role = watch_.role_of(unit);
  for (const std::string& word :
       {std::string("--role"), role.name, std::string("--index"), std::to_string(of.first),
        std::string("--grace-seconds"), fmt::format("{:g}", role.grace_seconds), std::string("--")})
    start.words.push_back(word);
  for (std::string& word : watch_.words(unit)) start.words.push_back(std::move(word));
  start.name = fmt::format("what started {} {}", role.name, of.first);
  if (is_here(of.host)) {
    start.options.variables.emplace_back(setting_.variables.token, start.token);
    return;
  }
  start.words = remote_words({.remote_shell = setting_.plan.remote_shell,
                              .host = of.host,
                              .folder = std::filesystem::current_path().string(),
                              .secret = setting_.variables.token,
                              .variables = start.options.variables,
                              .program = start.words});
  start.options = {.variables = {}, .dies_with_parent = true, .input = start.token + "\n"};
}

/// Whether there are some that end.
bool Supervisor::end_units() {
  bool ending = false;
  for (size_t u = 0; u < starts_.size(); ++u) {
    if (watch_.units()[u].state != Unit::State::ending) continue;
    if (starts_[u]->is_gone(clock_.seconds(), launchers_but(u), watch_.ended_well())) {
      starts_[u].reset();
      watch_.gone(u);
    }
    ending = true;
  }
  return ending;
}

std::vector<pid_t> Supervisor::launchers_but(size_t unit) const {
  std::vector<pid_t> launchers;
  for (size_t u = 0; u < starts_.size(); ++u) {
    if (u == unit || !starts_[u]) continue;
    if (const auto launcher = starts_[u]->launcher()) launchers.push_back(*launcher);
  }
  return launchers;
}

}  // namespace recmill::server
