// SPDX-License-Identifier: Apache-2.0
#include "run/lookahead/row_commits.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "comm/gather_values.h"
#include "run/checkpoint/saved_state.h"
#include "run/lookahead/run_cache.h"
#include "step/metrics/sample_window.h"

namespace recmill::train {
namespace {

// Of a proposal:
constexpr int64_t kEnds = 1, kBegins = 2, kNeedsRoom = 4;

template <typename Future>
bool is_ready(const Future& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

std::unique_ptr<RowCommits> RowCommits::make(const ResolvedRun& run, Rank& rank,
                                             Communicator& communicator) {
  auto* const cuts = dynamic_cast<store::HomeCuts*>(rank.store.get());
  if (rank.home.home == nullptr || cuts == nullptr) return nullptr;
  return std::unique_ptr<RowCommits>(new RowCommits(run, rank, communicator, *cuts));
}

RowCommits::RowCommits(const ResolvedRun& run, Rank& rank, Communicator& communicator,
                       store::HomeCuts& cuts)
    : run_(run),
      rank_(rank),
      communicator_(communicator),
      cuts_(cuts),
      recorded_(std::move(rank.home.image)) {}

RowCommits::~RowCommits() {
  rank_.home.home->keep(std::move(recorded_));
}

void RowCommits::need(const ResolvedRun& run, int rank, int64_t parameters, int64_t states,
                      MemoryLedger& ledger) {
  if (!has_rows_elsewhere(run) || rank != 0) return;
  const int64_t sample =
      metrics::SampleWindow::sample_bytes(run.schema.has_sample_weight, run.schema.has_group);
  // Copied, and then once more as the bytes that travel.
  ledger.items.push_back({"layers and metrics of a commit", rank,
                          2 * (parameters * (1 + states) * 4 + run.options.train.window * sample),
                          /*certain=*/false});
}

int64_t RowCommits::propose(int64_t iteration) {
  const int64_t every = run_.options.lookahead.commit_every;
  const bool is_whole = rank_.home.is_apart ? all_are_whole_ : coming_.valid() && is_ready(coming_);
  if (packed_.valid() && is_ready(packed_) && is_whole) record();
  const table::HomeRoom room = rank_.home.home->room();
  const bool needs_room = room == table::HomeRoom::none;
  const bool ends = (recording_.valid() && is_ready(recording_)) || (needs_room && is_under_way());
  const bool is_due = every > 0 && iteration / every > iteration_ / every;
  const bool is_asked = room != table::HomeRoom::enough && iteration > iteration_;
  const bool begins = (is_due || is_asked) && (ends || !is_under_way());
  return (ends ? kEnds : 0) | (begins ? kBegins : 0) | (needs_room ? kNeedsRoom : 0);
}

bool RowCommits::needs_room(int64_t proposal) {
  return (proposal & kNeedsRoom) != 0;
}

Status RowCommits::adopt(int64_t proposal, const std::function<LoopState()>& state) {
  RECMILL_RETURN_IF_ERROR(see_whether_all_are_whole());
  if ((proposal & kEnds) != 0) RECMILL_RETURN_IF_ERROR(end());
  return (proposal & kBegins) != 0 ? begin(state()) : Status();
}

/// At servers an image comes once all ranks have cut; at homes of ranks each says so.
Status RowCommits::see_whether_all_are_whole() {
  if (!rank_.home.is_apart || !is_under_way() || all_are_whole_) return {};
  const bool own = is_first() ? is_ready(coming_) : is_ready(recording_);
  RECMILL_ASSIGN_OR_RETURN(const auto flags, gather_values(int64_t{own}, communicator_));
  all_are_whole_ = std::ranges::count(flags, 0) == 0;
  return {};
}

Status RowCommits::commit(const LoopState& state) {
  if (iteration_ == state.position.iteration) return {};
  RECMILL_RETURN_IF_ERROR(wait());
  return begin(state);
}

Status RowCommits::wait() {
  return is_under_way() ? end() : Status();
}

Status RowCommits::begin(LoopState state) {
  iteration_ = state.position.iteration;
  RECMILL_RETURN_IF_ERROR(rank_.trainer->settle());
  RECMILL_ASSIGN_OR_RETURN(coming_, cuts_.cut());
  all_are_whole_ = false;
  if (!is_first()) {
    if (rank_.home.is_apart) record();
    return {};
  }
  packed_ = std::async(std::launch::async, [this, of = take_state(rank_, std::move(state))] {
    return pack_state(run_, rank_, of);
  });
  return {};
}

/// Once all ranks have called their cuts: only then is it sure that the image comes. A rank with a
/// home of its own records that its rows are there, before rank 0 records the commit.
void RowCommits::record() {
  recording_ = std::async(std::launch::async,
                          [this, image = coming_, packed = std::move(packed_)]() mutable -> Status {
                            std::vector<std::byte> bytes;
                            if (packed.valid()) {
                              RECMILL_ASSIGN_OR_RETURN(bytes, packed.get());
                            }
                            const auto& whole = image.get();
                            if (!whole.ok()) return whole.status();
                            return rank_.home.home->record(whole->step, bytes);
                          });
}

Status RowCommits::end_recording() {
  const Status recorded = recording_.get();
  if (!recorded.ok()) communicator_.abort(recorded);
  return recorded;
}

/// The image of the commit before is let go once all ranks know that the newer one is recorded.
Status RowCommits::end() {
  RECMILL_RETURN_IF_ERROR(communicator_.barrier());
  if (rank_.home.is_apart && !is_first()) RECMILL_RETURN_IF_ERROR(end_recording());
  RECMILL_RETURN_IF_ERROR(communicator_.barrier());
  if (is_first()) {
    if (!recording_.valid()) record();
    RECMILL_RETURN_IF_ERROR(end_recording());
  }
  RECMILL_RETURN_IF_ERROR(communicator_.barrier());
  const store::ComingImage coming = std::exchange(coming_, {});
  const auto& image = coming.get();
  if (!image.ok()) return image.status();
  recorded_ = image->rows;
  return {};
}

}  // namespace recmill::train
