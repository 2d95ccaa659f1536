// SPDX-License-Identifier: Apache-2.0
// `bench comm`: sums over ranks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/random.h"
#include "bench/benches.h"
#include "bench/comm/wire.h"
#include "bench/start_together.h"
#include "comm/ordered_reduce.h"
#include "device/buffer.h"
#include "program/open_world.h"

namespace recmill::bench {
namespace {

constexpr int64_t kElements = int64_t{4} << 20;  // 16 MiB
constexpr double kLeastSeconds = 0.4;            // of a repetition

enum class Way { ours, library, limit };
constexpr std::array kWays{Way::ours, Way::library, Way::limit};

/// So many ranks, and what this process has of them: nothing where it is none of them.
struct Group {
  int ranks = 2;
  std::unique_ptr<Communicator> communicator;
  program::AllReduce library;
  std::optional<Wire> wire;  // between hosts
  ThreadPool pool{1};
  std::unique_ptr<OrderedReduce<float>> reduce;
  Buffer own, total;
  int64_t passes = 1;                            // in a repetition
  std::array<std::vector<double>, 3> seconds{};  // a reduction, by way and repetition

  std::string name() const {
    return fmt::format("ordered_reduce_16mib_{}{}", ranks,
                       communicator->shares_memory() ? "_one_host" : "_hosts");
  }
  /// What a rank sends, and receives.
  size_t bytes() const { return 2 * kElements * sizeof(float) * (ranks - 1) / ranks; }
};

/// Of very different sizes, so that another order of summation gives other bits.
void fill(int rank, std::span<float> sums) {
  const Random random(29, Purpose::test, static_cast<uint64_t>(rank));
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto words = random.block(i);
    sums[i] = static_cast<float>(
        std::ldexp(Random::unit(words[0]) - 0.5, static_cast<int>(words[1] % 30)));
  }
}

/// The group stays where it is: the reduction refers to it.
Status fill_group(Group& group, int ranks, const World& world) {
  group.ranks = ranks;
  RECMILL_ASSIGN_OR_RETURN(group.communicator, world.communicator(ranks));
  RECMILL_ASSIGN_OR_RETURN(group.library, program::library_all_reduce(world, ranks));
  if (group.communicator == nullptr) return {};
  group.reduce = std::make_unique<OrderedReduce<float>>(*group.communicator, ranks, group.pool);
  RECMILL_ASSIGN_OR_RETURN(group.own, Buffer::allocate(kElements * sizeof(float)));
  RECMILL_ASSIGN_OR_RETURN(group.total, Buffer::allocate(kElements * sizeof(float)));
  fill(group.communicator->rank(), group.own.as<float>());
  if (group.communicator->shares_memory()) return {};
  RECMILL_ASSIGN_OR_RETURN(group.wire, Wire::make(*group.communicator));
  return {};
}

Status reduce(Group& group) {
  const int rank = group.communicator->rank();
  const SlicePart<float> part{{rank, rank + 1}, group.own.as<float>().data()};
  return (*group.reduce)(std::span(&part, 1), group.total.as<float>());
}

/// Every rank compares: ours bitwise with the tree's sum, the library's to a millionth of the sum
/// of magnitudes.
Status check_answers(Group& group) {
  std::vector<std::vector<float>> sums(group.ranks);
  std::vector<SlicePart<float>> parts;
  for (int rank = 0; rank < group.ranks; ++rank) {
    sums[rank].resize(kElements);
    fill(rank, sums[rank]);
    parts.push_back({{rank, rank + 1}, sums[rank].data()});
  }
  std::vector<float> expected(kElements);
  tree_sum<float>({0, group.ranks}, parts, expected, group.pool);
  const auto total = group.total.as<float>();
  RECMILL_RETURN_IF_ERROR(reduce(group));
  if (std::memcmp(total.data(), expected.data(), total.size_bytes()) != 0)
    return Status::Failed(group.name() + ": is not the sum that the tree gives");
  RECMILL_RETURN_IF_ERROR(group.library(group.own.as<float>(), total));
  for (int64_t i = 0; i < kElements; ++i) {
    double magnitude = 0.0;
    for (const auto& of_rank : sums) magnitude += std::fabs(of_rank[i]);
    if (!(std::fabs(total[i] - expected[i]) <= 1e-6 * magnitude))
      return Status::Failed(fmt::format("{}: element {} of the library's sum is {}, not {}",
                                        group.name(), i, total[i], expected[i]));
  }
  return {};
}

/// Once. Inside a host the limit is a copy of the bytes by each rank.
Status go(Group& group, Way way) {
  if (way == Way::ours) return reduce(group);
  if (way == Way::library) return group.library(group.own.as<float>(), group.total.as<float>());
  if (group.wire) return group.wire->shift(group.bytes());
  for (size_t left = group.bytes(); left > 0;) {
    const size_t count = std::min(left, group.own.size());
    std::memcpy(group.total.data(), group.own.data(), count);
    left -= count;
  }
  return {};
}

/// Seconds of one, over so many, from when all begin until all are done.
Result<double> time_way(Group& group, Way way, int64_t passes) {
  RECMILL_RETURN_IF_ERROR(group.communicator->barrier());
  const Stopwatch watch;
  for (int64_t pass = 0; pass < passes; ++pass) RECMILL_RETURN_IF_ERROR(go(group, way));
  RECMILL_RETURN_IF_ERROR(group.communicator->barrier());
  return watch.seconds() / static_cast<double>(passes);
}

/// So many that a repetition takes a while, as the first rank finds.
Status choose_passes(Group& group) {
  RECMILL_ASSIGN_OR_RETURN(const double seconds, time_way(group, Way::limit, 1));
  group.passes = std::clamp<int64_t>(std::llround(kLeastSeconds / seconds), 1, 100);
  return group.communicator->broadcast(std::as_writable_bytes(std::span(&group.passes, 1)), 0);
}

/// The ways in another order each repetition; the first repetition warms up.
Status take_turns_of(std::deque<Group>& groups, Communicator& all, StartTogether& together,
                     int64_t pairs) {
  for (int64_t pair = 0; pair <= pairs; ++pair) {
    for (Group& group : groups) {
      for (size_t turn = 0; turn < kWays.size(); ++turn) {
        const Way way = kWays[(turn + pair) % kWays.size()];
        RECMILL_RETURN_IF_ERROR(together.start(pair > 0));
        if (group.communicator != nullptr) {
          RECMILL_ASSIGN_OR_RETURN(const double seconds, time_way(group, way, group.passes));
          if (pair > 0) group.seconds[static_cast<size_t>(way)].push_back(seconds);
        }
        RECMILL_RETURN_IF_ERROR(all.barrier());
      }
    }
  }
  return {};
}

void report(const Group& group, double load, const BenchSink& sink) {
  const auto& ours = group.seconds[static_cast<size_t>(Way::ours)];
  BenchLine line;
  line.bench = "comm";
  line.name = group.name();
  line.metric = "time_per_reduction";
  line.value = 1e3 * median(ours);
  line.unit = "ms";
  line.rival = "MPI_Allreduce";
  line.ratio = ratio_of({ours, group.seconds[static_cast<size_t>(Way::library)], load});
  line.limit = 1e3 * median(group.seconds[static_cast<size_t>(Way::limit)]);
  line.of_limit = line.limit / line.value;
  line.foreign_load = load;
  sink(line);
}

}  // namespace

Status run_comm_bench(const BenchOptions& options, const BenchSink& sink) {
  std::deque<Group> groups;
  std::unique_ptr<Communicator> all;
  for (const int ranks : {2, 4}) {
    auto communicator = options.world->communicator(ranks);
    if (!communicator.ok()) break;
    all = *std::move(communicator);
    RECMILL_RETURN_IF_ERROR(fill_group(groups.emplace_back(), ranks, *options.world));
  }
  if (groups.empty())
    return Status::BadRequest(
        "bench comm: needs several processes: recmill launch --ranks 2 -- bench comm");
  if (all == nullptr) return {};  // more processes than are needed
  for (Group& group : groups) {
    if (group.communicator == nullptr) continue;
    RECMILL_RETURN_IF_ERROR(check_answers(group));
    RECMILL_RETURN_IF_ERROR(choose_passes(group));
  }
  RECMILL_ASSIGN_OR_RETURN(StartTogether together, StartTogether::make(*all));
  RECMILL_RETURN_IF_ERROR(take_turns_of(groups, *all, together, options.pairs));
  if (all->rank() != 0) return {};
  for (const Group& group : groups) {
    if (options.wants(group.name())) report(group, together.foreign_load(), sink);
  }
  return {};
}

}  // namespace recmill::bench
