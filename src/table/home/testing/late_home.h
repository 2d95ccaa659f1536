// SPDX-License-Identifier: Apache-2.0
// A home that is as awkward as the seam allows: what passes with it works with homes elsewhere.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "table/home/row_home.h"

namespace recmill::table::testing {

/// Decorates a writer of a home. Calls travel for a while and so do answers, as many polls as a
/// seed says: fetches overtake each other, puts and cuts keep their order, answers come in any.
/// What was asked for is garbage until its answer is there, and puts are read as late as may be.
/// Time passes when poll() is called, so that the same calls have the same answers.
class LateHome final : public RowHome {
 public:
  /// `inner` outlives it.
  LateHome(RowHome& inner, uint64_t seed) : inner_(inner), random_(seed, Purpose::test) {}

  Ticket fetch(std::span<const FetchedRows> rows, int64_t fence) override;
  Ticket put(std::span<const PutRows> rows, int64_t step) override;
  Ticket cut(int64_t step, std::span<const PutRows> changed) override;
  void poll(std::vector<Answer>& answers) override;
  /// While answers are due, each poll wakes: there may be something new at the next one.
  void set_wake(std::function<void()> wake) override {
    wake_ = wake;
    inner_.set_wake(std::move(wake));
  }

 private:
  /// A fetch, and memory of its own in which it is answered.
  struct Fetch {
    Ticket ticket = 0;
    std::vector<FetchedRows> rows;  // of the caller
    int64_t fence = 0;
    std::vector<std::vector<std::byte>> records;  // [rows]
  };
  struct PutOrCut {
    Ticket ticket = 0;
    std::vector<PutRows> rows;
    int64_t step = 0;
    bool is_cut = false;
  };

  bool coin() { return random_.below(2, draws_++) == 0; }
  Ticket called();
  void send();
  void send(Fetch fetch);

  RowHome& inner_;
  const Random random_;
  uint64_t draws_ = 0;
  std::function<void()> wake_;
  Ticket tickets_ = 0;
  std::vector<Fetch> fetches_;        // on their way
  std::deque<PutOrCut> puts_;         // on their way
  std::map<Ticket, Ticket> sent_;     // by the inner one's ticket
  std::map<Ticket, Fetch> arriving_;  // fetches that were sent
  std::vector<Answer> answers_;       // on their way back
};

}  // namespace recmill::table::testing
