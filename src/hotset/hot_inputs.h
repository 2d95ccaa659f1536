// SPDX-License-Identifier: Apache-2.0
// Which inputs are hot: all of whose lookups are of hot rows; an input without lookups is (FAE,
// section III-B).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "batch/sparse_batch.h"
#include "device/thread_pool.h"
#include "hotset/hot_curve.h"
#include "hotset/hot_problem.h"
#include "hotset_plan/hot_set.h"
#include "schema/table_spec.h"
#include "stats/access_counter.h"

namespace recmill::hotset {

/// Counts them, for every cutoff at once and for one set. What was counted does not depend on
/// batches or threads.
class HotInputs {
 public:
  /// What the inputs have whose lookups are all of tables that are always hot.
  static constexpr int64_t kAlways = std::numeric_limits<int64_t>::max();

  /// All but the model outlive it. `counts` are of all inputs, or of others than those that are
  /// added here; then `judges`, for far_lookups().
  HotInputs(const HotProblem& problem, const ModelSpec& model, const stats::AccessCounter& counts,
            const HotSet& set, bool judges = false);

  /// Counts the batch; `is_hot` [samples] becomes whether each input is, by the set.
  void add(const SparseBatch& batch, ThreadPool& pool);
  const std::vector<uint8_t>& is_hot() const { return is_hot_; }

  int64_t inputs() const { return inputs_; }
  int64_t lookups() const { return lookups_; }
  /// HotCurve::at().
  const std::map<int64_t, int64_t>& by_least() const { return by_least_; }
  /// Of rows that are not hot at a cutoff, where the inputs are not those that were counted.
  int64_t far_lookups(int64_t cutoff) const;
  /// By the set, with its rows and bytes.
  HotFigures figures() const;
  /// [tables]: inputs that would be hot were all rows of this table.
  const std::vector<int64_t>& cold_by_one_table() const { return cold_by_table_; }
  /// [tables]: far lookups.
  const std::vector<int64_t>& far_by_table() const { return far_by_table_; }

 private:
  struct Part;
  void count_input(const SparseBatch& batch, int64_t sample, Part& part);

  const HotProblem& problem_;
  std::vector<size_t> table_of_feature_;
  const stats::AccessCounter& counts_;
  const HotSet& set_;
  const HotRows rows_;
  const bool judges_;
  std::vector<uint8_t> is_hot_;
  int64_t inputs_ = 0, lookups_ = 0, hot_inputs_ = 0, far_lookups_ = 0;
  std::map<int64_t, int64_t> by_least_, lookups_by_count_;
  std::vector<int64_t> cold_by_table_, far_by_table_;
};

}  // namespace recmill::hotset
