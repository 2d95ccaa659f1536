// SPDX-License-Identifier: Apache-2.0
// A whole job over embedding servers in one thread: ranks that train, movers, commits, checkpoints,
// crashes and restarts, in an order that a seed draws.
#pragma once

#include <cstdint>
#include <string>

#include "remote/row_server.h"
#include "store/cached/mover.h"

namespace recmill::store::testing {

struct ServiceSimulation {
  uint64_t seed = 0;
  bool crashes = true;  // of ranks and servers
  bool breaks = true;   // of connections
  // What is waited for; tests take one after the other away:
  remote::ServerChecks checks = {};
  MoverWaits mover = {};
  bool lookups_wait = true;   // for the rows of their step
  bool fences = true;         // fetches name those of their plan
  bool cut_in_order = true;   // a commit's cut comes before puts of later steps
  bool record_waits = true;   // for the cuts at all servers
  bool release_waits = true;  // an image is kept until a newer commit is recorded
};

struct ServiceOutcome {
  std::string wrong;  // what went wrong first, or ""
  int restarts = 0;   // of the ranks: those that went on from a commit,
  int anew = 0;       // and those from a checkpoint, or from nothing
  int commits = 0, checkpoints = 0;
  int64_t broken = 0;  // connections
};

/// A row's value is a function of the steps that have updated it, so that each lookup is compared
/// with what synchronous training has there.
ServiceOutcome simulate_service(const ServiceSimulation& of);

}  // namespace recmill::store::testing
