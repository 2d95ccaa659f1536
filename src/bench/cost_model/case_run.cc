// SPDX-License-Identifier: Apache-2.0
#include "bench/cost_model/case_run.h"

#include <algorithm>
#include <memory>
#include <span>

#include "base/clock.h"
#include "base/hash.h"
#include "bench/cost_model/interface_counters.h"
#include "bench/looked_up_rows.h"
#include "bench/placed/placed_shape.h"
#include "comm/gather_values.h"
#include "store/placed/placed_store.h"

namespace recmill::bench {
namespace {

constexpr int64_t kBatches = 2;

struct Repetition {
  double sent = 0, communication = 0, seconds = 0;
};

class CaseRun {
 public:
  CaseRun(const CostModelCase& of, Communicator& all, ThreadPool& pool, const RunOptions& options)
      : of_(of),
        all_(all),
        pool_(pool),
        options_(options),
        shape_(small_shape(of.work.shape, of.work.dim, options.most_rows)),
        model_(small_model(shape_)) {
    while (slices_ < all.ranks()) slices_ *= 2;
  }

  Status place(const PlacementPlan& plan) {
    RECMILL_ASSIGN_OR_RETURN(auto placed,
                             table::PlacedTables::create(plan, model_.tables, all_.ranks()));
    store::ShardedOptions options;
    options.dedup_fetch = of_.dedup;
    options.share_rows = false;           // messages are what is predicted
    options.reduce = CopyReduce::sparse;  // as placement::Problem has it
    RECMILL_ASSIGN_OR_RETURN(
        store_, store::PlacedStore::create(model_, 1, all_, pool_, std::move(placed), options));
    const ShapeDraw draw(shape_, of_.work.zipf, of_.work.seed);
    batches_.resize(kBatches);
    for (int64_t b = 0; b < kBatches; ++b)
      draw.draw((b * all_.ranks() + all_.rank()) * of_.work.samples, of_.work.samples, batches_[b],
                pool_);
    RECMILL_ASSIGN_OR_RETURN(
        rows_, LookedUpRows::make(of_.work.samples, std::ssize(model_.features), of_.work.dim));
    return {};
  }

  /// All batches, one after the other. Rows looked up are the gradient as well.
  Result<Repetition> repeat() {
    std::vector<std::unique_ptr<store::Prepared>> prepared;
    for (int64_t b = 0; b < kBatches; ++b) {
      RECMILL_ASSIGN_OR_RETURN(prepared.emplace_back(), store_->prepare(batch(b)));
    }
    RECMILL_RETURN_IF_ERROR(all_.barrier());
    const uint64_t sent = sent_so_far();
    const double communication = all_.traffic().seconds;
    const Stopwatch watch;
    for (auto& of_batch : prepared) RECMILL_RETURN_IF_ERROR(iterate(*of_batch));
    Repetition took;
    took.communication = (all_.traffic().seconds - communication) / kBatches;
    RECMILL_RETURN_IF_ERROR(all_.barrier());
    took.seconds = watch.seconds() / kBatches;
    took.sent = static_cast<double>(sent_so_far() - sent) / kBatches;
    return took;
  }

  uint32_t looked_up() const { return rows_.checksum(); }

 private:
  store::Batch batch(int64_t index) const {
    return part_of_batch(batches_[index], all_.rank(), all_.ranks(), slices_, iteration_ + index,
                         of_.work.training ? store::Purpose::train : store::Purpose::serve);
  }

  Status iterate(store::Prepared& prepared) {
    Stream stream(pool_);
    RECMILL_RETURN_IF_ERROR(store_->lookup(prepared, rows_.output(), stream));
    if (!of_.work.training) return {};
    const store::Update update{&prepared, rows_.gradient()};
    return store_->update({&update, 1}, {iteration_++, 1.0}, stream);
  }

  uint64_t sent_so_far() const {
    return options_.count_on_wire ? sent_on_the_wire().value_or(0) : all_.traffic().sent;
  }

  const CostModelCase& of_;
  Communicator& all_;
  ThreadPool& pool_;
  const RunOptions& options_;
  const FrozenShape shape_;
  const ModelSpec model_;
  int slices_ = 8;
  std::unique_ptr<store::PlacedStore> store_;
  std::vector<SparseBatch> batches_;
  LookedUpRows rows_;
  int64_t iteration_ = 0;
};

/// Of what the slowest rank took, the least over repetitions. `of_ranks`: [ranks][repetitions].
CaseTook summary_of(const std::vector<std::vector<Repetition>>& of_ranks) {
  CaseTook took;
  for (const auto& repetitions : of_ranks) {
    double sent = 0;
    for (const Repetition& one : repetitions) sent += one.sent;
    took.sent.push_back(sent / static_cast<double>(repetitions.size()));
  }
  std::vector<double> communication(of_ranks[0].size()), seconds(of_ranks[0].size());
  for (const auto& repetitions : of_ranks) {
    for (size_t i = 0; i < repetitions.size(); ++i) {
      communication[i] = std::max(communication[i], repetitions[i].communication);
      seconds[i] = std::max(seconds[i], repetitions[i].seconds);
    }
  }
  took.communication = std::ranges::min(communication);
  took.seconds = std::ranges::min(seconds);
  return took;
}

}  // namespace

Result<CaseTook> run_case(const CostModelCase& of, const PlacementPlan& plan, Communicator& all,
                          ThreadPool& pool, StartTogether& together, const RunOptions& options) {
  CaseRun run(of, all, pool, options);
  RECMILL_RETURN_IF_ERROR(run.place(plan));
  RECMILL_RETURN_IF_ERROR(run.repeat().status());
  RECMILL_ASSIGN_OR_RETURN(const auto digests, gather_values(run.looked_up(), all));
  std::vector<Repetition> own;
  for (int64_t i = 0; i < options.repetitions; ++i) {
    RECMILL_RETURN_IF_ERROR(together.start(true));
    RECMILL_ASSIGN_OR_RETURN(own.emplace_back(), run.repeat());
  }
  RECMILL_ASSIGN_OR_RETURN(const auto of_ranks,
                           gather_lists(std::span<const Repetition>(own), all));
  CaseTook took = summary_of(of_ranks);
  took.looked_up = crc32c(std::as_bytes(std::span(digests)));
  return took;
}

}  // namespace recmill::bench
