// SPDX-License-Identifier: Apache-2.0
#include "cli/measure_cluster.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "comm/gather_values.h"
#include "comm/measure_links.h"
#include "device/buffer.h"
#include "device/thread_pool.h"
#include "kernels/embedding_pool/embedding_pool.h"
#include "run/memory.h"
#include "run/resolved_run.h"

namespace recmill::cli {
namespace {

constexpr int64_t kDim = 64, kRows = int64_t{1} << 18, kLookups = int64_t{1} << 17;  // 64 MiB
constexpr int kTries = 5;

/// Seconds a byte of rows that are looked up one by one, anywhere in more than a cache holds.
Result<double> measure_lookups(ThreadPool& pool) {
  RECMILL_ASSIGN_OR_RETURN(const Buffer table, Buffer::allocate(kRows * kDim * sizeof(float)));
  RECMILL_ASSIGN_OR_RETURN(const Buffer out, Buffer::allocate(kLookups * kDim * sizeof(float)));
  std::vector<int64_t> offsets(kLookups + 1), rows(kLookups);
  std::iota(offsets.begin(), offsets.end(), 0);
  const Random random(1, Purpose::tuning);
  for (int64_t i = 0; i < kLookups; ++i)
    rows[i] = static_cast<int64_t>(random.bits64(i) % static_cast<uint64_t>(kRows));
  const kernels::PoolTask task{{offsets.data(), rows.data(), nullptr, kLookups, true},
                               kernels::RowStorage::of(table.as<float>().data(), kRows, kDim),
                               Pooling::sum,
                               out.as<float>().data(),
                               kDim};
  std::vector<double> seconds;
  for (int i = 0; i < kTries; ++i) {
    const Stopwatch watch;
    kernels::embedding_pool({&task, 1}, pool);
    seconds.push_back(watch.seconds());
  }
  std::ranges::sort(seconds);
  return seconds[kTries / 2] / static_cast<double>(kLookups * kDim * sizeof(float));
}

}  // namespace

Result<ClusterSpec> measure_cluster(Communicator& communicator, const World& world) {
  struct Own {
    double lookup;
    int64_t memory;
  };
  ClusterSpec cluster;
  RECMILL_ASSIGN_OR_RETURN(cluster.links, measure_links(communicator));
  ThreadPool pool(std::max(1, train::machine_cores() / world.neighbours()));
  RECMILL_RETURN_IF_ERROR(communicator.barrier());
  RECMILL_ASSIGN_OR_RETURN(const double lookup, measure_lookups(pool));
  const Own own{lookup, train::available_bytes() / world.neighbours()};
  RECMILL_ASSIGN_OR_RETURN(const auto all, gather_values(own, communicator));
  for (int rank = 0; rank < communicator.ranks(); ++rank) {
    DeviceSpec device;
    device.name = communicator.name(rank);
    device.memory_bytes = all[rank].memory;
    cluster.devices.push_back(device);
    cluster.links[static_cast<size_t>(rank) * communicator.ranks() + rank].byte_seconds =
        all[rank].lookup;
  }
  return cluster;
}

}  // namespace recmill::cli
