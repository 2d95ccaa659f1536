// SPDX-License-Identifier: Apache-2.0
// `bench scaling`: the workload of `bench train` at a batch of 16,384 on 1, 2 and 4 ranks.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>

#include "base/clock.h"
#include "base/random.h"
#include "bench/benches.h"
#include "bench/start_together.h"
#include "bench/train/workload.h"
#include "kernels/dense_layer/dense_layer.h"

namespace recmill::bench {
namespace {

constexpr int64_t kSamples = 16384, kBatches = 4, kCheckedBatches = 3;

/// So many ranks, and what this process has of them: nothing where it is none of them.
struct Group {
  int ranks = 1;
  int threads = 1;       // of each
  bool overlap = false;  // dense gradients are summed while rows are updated
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<ThreadPool> pool;
  std::vector<train::RankBatch> batches;
  std::unique_ptr<TrainWorkload> workload;
  std::vector<double> seconds;                // a batch, by repetition
  double dense_waiting = 0.0, trained = 0.0;  // seconds in all

  std::string name() const {
    return fmt::format("kaggle_b{}_{}x{}{}", kSamples, ranks, threads, overlap ? "_overlap" : "");
  }
  double share_waiting() const { return dense_waiting / trained; }
};

/// The group stays where it is: its workload refers to it.
Status fill_group(Group& group, int ranks, bool overlap, const BenchOptions& options) {
  group.ranks = ranks;
  group.overlap = overlap;
  group.threads = std::max<int>(1, static_cast<int>(options.threads) / ranks);
  RECMILL_ASSIGN_OR_RETURN(group.communicator, options.world->communicator(ranks));
  if (group.communicator == nullptr) return {};
  group.pool = std::make_unique<ThreadPool>(group.threads);
  group.pool->set_thread_start([] { kernels::dense_layer::use_one_thread(); });
  const TrainShape shape{.name = "kaggle", .samples = kSamples, .batches = kBatches};
  group.batches = make_train_batches(shape, *group.pool, group.communicator->rank(), ranks);
  std::unique_ptr<train::GradientReduction> beside;
  if (overlap) {
    RECMILL_ASSIGN_OR_RETURN(beside, train::GradientReduction::create(
                                         *group.communicator, group.batches.front().cut.slices));
  }
  RECMILL_ASSIGN_OR_RETURN(
      group.workload, TrainWorkload::make(shape, group.batches, *group.communicator, *group.pool,
                                          std::move(beside)));
  return {};
}

/// The first batches of every group: losses and parameters are those of the first group, whose only
/// rank is here where any other's first one is.
Status check_answers(std::deque<Group>& groups) {
  std::vector<double> expected;
  for (Group& group : groups) {
    if (group.communicator == nullptr) continue;
    for (int64_t batch = 0; batch < kCheckedBatches; ++batch) {
      RECMILL_ASSIGN_OR_RETURN(const double loss, group.workload->train(batch));
      if (&group == &groups[0]) expected.push_back(loss);
      if (group.communicator->rank() == 0 && loss != expected[batch])
        return Status::Failed(fmt::format("{}: the loss of batch {} is {}, and {} with one rank",
                                          group.name(), batch, loss, expected[batch]));
    }
    if (group.communicator->rank() != 0) continue;
    const auto own = group.workload->parameters(), first = groups[0].workload->parameters();
    if (std::memcmp(own.data(), first.data(), own.size_bytes()) != 0)
      return Status::Failed(group.name() + ": parameters are not those of one rank");
  }
  return {};
}

/// All batches once, in this order; the others wait until they are done.
Status time_group(Group& group, const std::vector<int64_t>& order, bool counts) {
  if (group.communicator == nullptr) return {};
  RECMILL_RETURN_IF_ERROR(group.communicator->barrier());
  train::StageClock& clock = group.workload->clock();
  clock.restart();
  const Stopwatch watch;
  for (const int64_t batch : order) RECMILL_RETURN_IF_ERROR(group.workload->train(batch).status());
  RECMILL_RETURN_IF_ERROR(group.communicator->barrier());
  const double seconds = watch.seconds();
  if (!counts) return {};
  group.seconds.push_back(seconds / static_cast<double>(order.size()));
  group.trained += seconds;
  group.dense_waiting += clock.figures(train::Stage::dense_gradients).traffic.seconds;
  return {};
}

std::vector<int64_t> shuffled(int64_t count, uint64_t key) {
  std::vector<int64_t> order(count);
  for (int64_t i = 0; i < count; ++i) order[i] = i;
  const Random random(1, Purpose::test, key);
  for (int64_t i = count; i > 1; --i)
    std::swap(order[i - 1],
              order[random.below(static_cast<uint64_t>(i), static_cast<uint64_t>(i))]);
  return order;
}

/// Repetitions in another order of groups each; the first warms up. Returns the highest foreign
/// load.
Result<double> take_turns_of(std::deque<Group>& groups, Communicator& all, int64_t pairs) {
  RECMILL_ASSIGN_OR_RETURN(StartTogether together, StartTogether::make(all));
  for (int64_t pair = 0; pair <= pairs; ++pair) {
    for (const int64_t g : shuffled(std::ssize(groups), static_cast<uint64_t>(pair) * 2)) {
      RECMILL_RETURN_IF_ERROR(together.start(pair > 0));
      const auto order = shuffled(kBatches, static_cast<uint64_t>(pair) * 2 + 1);
      RECMILL_RETURN_IF_ERROR(time_group(groups[g], order, pair > 0));
      RECMILL_RETURN_IF_ERROR(all.barrier());
    }
  }
  return together.foreign_load();
}

BenchLine line_of(const Group& group, const char* metric, double value, const char* unit,
                  double load) {
  BenchLine line;
  line.bench = "scaling";
  line.name = group.name();
  line.metric = metric;
  line.value = value;
  line.unit = unit;
  line.foreign_load = load;
  return line;
}

/// `before`: the group that it is compared with; null: none.
void report(const Group& group, const Group* before, double load, const BenchSink& sink) {
  BenchLine line =
      line_of(group, "samples_per_second", static_cast<double>(kSamples) / median(group.seconds),
              "samples/s", load);
  if (before != nullptr) {
    line.rival = before->name();
    line.ratio = ratio_of({group.seconds, before->seconds, load});
  }
  sink(line);
}

/// `one_after_the_other`: the same ranks without overlap.
void report_waiting(const Group& group, const Group& one_after_the_other, double load,
                    const BenchSink& sink) {
  for (const Group* of : {&one_after_the_other, &group})
    sink(line_of(*of, "share_waiting_for_dense_gradients", of->share_waiting(), "of the time",
                 load));
  BenchLine hidden = line_of(group, "hidden_of_dense_gradients",
                             1.0 - group.share_waiting() / one_after_the_other.share_waiting(),
                             "of the wait", load);
  hidden.rival = one_after_the_other.name();
  hidden.ratio = ratio_of({group.seconds, one_after_the_other.seconds, load});
  sink(hidden);
}

}  // namespace

Status run_scaling_bench(const BenchOptions& options, const BenchSink& sink) {
  std::deque<Group> groups;
  std::unique_ptr<Communicator> all;
  for (const auto& [ranks, overlap] :
       {std::pair{1, false}, {2, false}, {2, true}, {4, false}, {4, true}}) {
    auto communicator = options.world->communicator(ranks);
    if (!communicator.ok()) break;
    all = *std::move(communicator);
    groups.emplace_back();
    RECMILL_RETURN_IF_ERROR(fill_group(groups.back(), ranks, overlap, options));
  }
  if (groups.size() < 2)
    return Status::BadRequest(
        "bench scaling: needs several processes: recmill launch --ranks 4 -- bench scaling");
  if (all == nullptr) return {};  // more processes than are needed
  RECMILL_RETURN_IF_ERROR(check_answers(groups));
  RECMILL_ASSIGN_OR_RETURN(const double load, take_turns_of(groups, *all, options.pairs));
  if (all->rank() != 0) return {};
  for (size_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    if (!options.wants(group.name())) continue;
    report(group, g == 0 ? nullptr : &groups[0], load, sink);
    if (group.overlap) report_waiting(group, groups[g - 1], load, sink);
  }
  return {};
}

}  // namespace recmill::bench
