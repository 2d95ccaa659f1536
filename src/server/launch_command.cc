// SPDX-License-Identifier: Apache-2.0
#include "server/launch_command.h"

#include <algorithm>
#include <sstream>

namespace recmill::server {
namespace {

using Words = std::vector<std::string>;

void append(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

/// "a:2,b:1" of the hosts that hold ranks.
std::string places(const LaunchPlan& plan) {
  std::vector<Host> hosts = plan.hosts;
  if (hosts.empty()) hosts.push_back({.name = "localhost", .slots = plan.ranks});
  const std::vector<int> placed = place_ranks(hosts, plan.ranks);
  std::string text;
  for (size_t h = 0; h < hosts.size(); ++h) {
    if (placed[h] == 0) continue;
    text += (text.empty() ? "" : ",") + hosts[h].name + ":" + std::to_string(placed[h]);
  }
  return text;
}

// Version 5 hands the placing of processes to PRRTE, which names its parameters anew.
Words open_mpi_words(const LaunchPlan& plan) {
  const bool newest = plan.kind == MpiKind::open_mpi_5;
  Words words{plan.mpirun, "--oversubscribe", "--bind-to", "none", "--map-by", "slot"};
  if (newest) words = {plan.mpirun, "--map-by", "slot:OVERSUBSCRIBE", "--bind-to", "none"};
  append(words, {"-n", std::to_string(plan.ranks), "--host", places(plan)});
  const auto set = [&](const std::string& name, const std::string& value) {
    append(words, {newest ? "--prtemca" : "--mca", name, value});
  };
  set(newest ? "prte_tmpdir_base" : "orte_tmpdir_base", plan.folder);
  if (!newest) {
    append(words, {"--quiet"});
    set("orte_leave_session_attached", "1");
    set("plm_rsh_no_tree_spawn", "1");
  }
  if (!plan.remote_shell.empty())
    set(newest ? "plm_ssh_agent" : "plm_rsh_agent", plan.remote_shell);
  for (const std::string& name : plan.inherited) append(words, {"-x", name});
  return words;
}

Words hydra_words(const LaunchPlan& plan) {
  Words words{plan.mpirun, "-n",  std::to_string(plan.ranks), "-hosts", places(plan),
              "-bind-to",  "none"};
  if (!plan.remote_shell.empty())
    append(words, {"-launcher", "ssh", "-launcher-exec", plan.remote_shell});
  return words;  // ranks inherit the whole environment
}

/// As a shell reads it back.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char each : word) text += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return text + "'";
}

}  // namespace

Result<MpiKind> mpi_kind(const std::string& version) {
  const auto has = [&](const char* text) { return version.find(text) != std::string::npos; };
  if (has("(Open MPI) 4.") || has("(OpenRTE) 4.")) return MpiKind::open_mpi_4;
  if (has("(Open MPI) 5.")) return MpiKind::open_mpi_5;
  if (has("HYDRA")) return MpiKind::hydra;
  return Status::BadRequest("is not a launcher of Open MPI or MPICH: it calls itself '" +
                            version.substr(0, version.find('\n')) + "'");
}

std::vector<std::string> launch_words(const LaunchPlan& plan) {
  Words words = plan.kind == MpiKind::hydra ? hydra_words(plan) : open_mpi_words(plan);
  append(words, plan.program);
  return words;
}

std::vector<std::string> remote_words(const RemoteCommand& command) {
  Words words;
  std::istringstream shell(command.remote_shell.empty() ? "ssh" : command.remote_shell);
  for (std::string word; shell >> word;) words.push_back(word);
  std::string line = "IFS= read -r " + command.secret + " && export " + command.secret;
  for (const auto& [name, value] : command.variables)
    line += " && export " + name + "=" + quoted(value);
  line += " && cd " + quoted(command.folder) + " && exec";
  for (const std::string& word : command.program) line += " " + quoted(word);
  append(words, {command.host, line});
  return words;
}

std::vector<std::string> restart_words(std::vector<std::string> words, bool had_begun,
                                       bool any_ranks) {
  if (had_begun && words.front() == "train") {
    std::erase(words, "--overwrite");
    if (std::ranges::find(words, "--resume") == words.end()) words.push_back("--resume");
  }
  if (any_ranks) append(words, {"--set", "train.ranks=0"});
  return words;
}

}  // namespace recmill::server
