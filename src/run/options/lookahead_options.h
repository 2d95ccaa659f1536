// SPDX-License-Identifier: Apache-2.0
// The section [lookahead].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lookahead/oracle.h"
#include "lookahead_plan/cache_design.h"
#include "schema/options.h"
#include "schema/size_range.h"

namespace recmill::train {

/// Of embedding.store = "cached".
struct LookaheadOptions {
  std::optional<int64_t> batches;
  int64_t prefetch = 4;
  std::optional<int64_t> cache;
  CacheDesign design = CacheDesign::forward;
  CacheHome home = CacheHome::embedded;
  // Of home = "remote":
  std::vector<std::string> servers;
  std::string token_file, tls_ca;
  bool insecure = false;
  double deadline = 60.0;  // seconds
  // Of home = "disk":
  std::string disk_path;
  int64_t disk_memory = int64_t{256} << 20;  // bytes
  // Of both:
  int64_t commit_every = 200;
};
template <typename Visitor>
void describe(Visitor& v, LookaheadOptions& o) {
  v("batches", o.batches,
    "batches after each one whose rows are known before it is trained: a row that they use "
    "stays in the cache; by default the largest number up to 200 whose batches and rows fit in "
    "memory",
    between(0, static_cast<double>(lookahead::kMostLookahead)));
  v("prefetch", o.prefetch,
    "batches whose rows are fetched ahead of training, at most lookahead.batches", at_least(0));
  v("cache", o.cache,
    "bytes of the cache's rows with their state, at each rank, of a GPU's memory where device is "
    "one; by default as many as all rows take, or what the rest of the run leaves free",
    size_range());
  v("design", o.design,
    "which of several ranks have a row in their cache: all; all, but for rows that one rank uses "
    "alone (lrpp); the one that a hash names (partitioned); or one that uses the row, which goes "
    "on "
    "to another when that no longer does (forward)");
  v("home", o.home,
    "where rows are stored that are in no cache: in the memory of the ranks (embedded) or of "
    "embedding servers (remote), or on a disk of each rank's machine (disk)");
  v("servers", o.servers,
    "HOST:PORT of each embedding server, the same ones in the same order for a whole run");
  v("token_file", o.token_file, "file with the token that the servers ask for");
  v("tls_ca", o.tls_ca,
    "file with the certificates, in PEM, that servers' certificates go back to; empty: no TLS");
  v("insecure", o.insecure,
    "true: servers beyond this machine may be reached without a token or TLS");
  v("deadline", o.deadline, "seconds for which a silent server is waited for; then it is lost",
    above_up_to(0, 86400));
  v("disk_path", o.disk_path,
    "folder of the rows that are on a disk, in a database for each rank; one for each run");
  v("disk_memory", o.disk_memory, "bytes of memory for a rank's database, its cache among them",
    at_least(1 << 20));
  v("commit_every", o.commit_every,
    "iterations after which servers or disks are told to keep all rows as they are, and with them "
    "what else the ranks need to go on from there when one of them is lost; 0: after checkpoints "
    "alone",
    at_least(0));
}

}  // namespace recmill::train
