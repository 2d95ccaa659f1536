// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "lookahead/oracle.h"
#include "lookahead/step_uses.h"

namespace recmill::lookahead {

/// The rank that decides for a row, and is its home.
using DeciderOf = std::function<int32_t(int64_t row)>;

/// The uses of the rows that each rank decides for [ranks].
std::vector<StepUses> split_uses(const StepUses& uses, const DeciderOf& decider_of, int ranks);

/// Of `slots` at each rank those for rows that all ranks have, by the rows of the first window; at
/// least one, and one is left.
int64_t copied_part(std::span<const StepUses> window, int ranks, int64_t slots);

/// The oracles of all ranks of a cache, side by side: each decides for its rows, and has its share
/// of the slots of every rank, floor(slots / ranks).
class SharedOracle {
 public:
  /// `options.slots` are those of a rank: none, or as many as ranks, of `lrpp` twice as many.
  SharedOracle(const OracleOptions& options, DeciderOf decider_of);

  void see(StepUses uses);
  void end();
  bool ready() const { return !oracles_.empty() && oracles_[0].ready(); }
  /// As Oracle::decide(); an error names a share of the slots.
  Result<LookaheadStep> decide();

 private:
  void begin();
  RowInSlot of_all(RowInSlot row, size_t decider) const;

  const OracleOptions options_;  // of all
  const DeciderOf decider_of_;
  std::vector<StepUses> window_;  // the first one, until it is known
  std::vector<Oracle> oracles_;   // [ranks], then
};

}  // namespace recmill::lookahead
