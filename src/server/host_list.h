// SPDX-License-Identifier: Apache-2.0
// The hosts of a job, as a file names them.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace recmill::server {

struct Host {
  std::string name = {};
  int slots = 1;  // ranks that it may hold
  int line = 0;   // of the file
};

/// One host a line: "NAME" or "NAME slots=N", as MPI launchers read it; # starts a comment. A bad
/// request names `path` and the line.
Result<std::vector<Host>> parse_hosts(const std::string& text, const std::string& path);

/// How many ranks each host holds: the first hosts are filled first. `ranks` are at most room().
std::vector<int> place_ranks(const std::vector<Host>& hosts, int ranks);
int room(const std::vector<Host>& hosts);

/// Whether a host that calls itself `own` is the one that a file calls `listed`.
bool same_host(const std::string& listed, const std::string& own);
/// The others, where `own` is what a host calls itself.
std::vector<Host> without_host(std::vector<Host> hosts, const std::string& own);

}  // namespace recmill::server
