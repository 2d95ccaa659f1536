// SPDX-License-Identifier: Apache-2.0
// The one list of ways to sum a table's row gradients and apply its optimizer. All of them give the
// same bits.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kernels/row_update/row_sums.h"
#include "kernels/schedule/schedule.h"

namespace recmill::kernels {

struct RowUpdateTemplate {
  TemplateSpec spec;
  /// Makes a body. Empty: the template works on DistinctRows (gradient_sums.h).
  std::function<std::unique_ptr<RowSums>()> make_sums;

  bool needs_distinct_rows() const { return make_sums == nullptr; }
};

/// Recmill's templates, the one of big tables first.
std::span<const RowUpdateTemplate> row_update_templates();

/// A schedule, looked up: what table::TableUpdater runs.
struct RowUpdateKernel {
  const RowUpdateTemplate* of = nullptr;  // lives as long as the program
  std::vector<int64_t> values;            // of its parameters

  bool needs_distinct_rows() const { return of->needs_distinct_rows(); }
};

/// Fails, naming the schedule, on an unknown template or a value that it does not have.
Result<RowUpdateKernel> row_update_kernel(
    const Schedule& schedule,
    std::span<const RowUpdateTemplate> templates = row_update_templates());

/// What row_update_kernel() makes this kernel of.
Schedule schedule_of(const RowUpdateKernel& kernel);

/// What one batch asks of one table.
struct RowUpdateWork {
  int64_t rows = 0;  // of the table
  int64_t dim = 0;
  int64_t lookups = 0;
  int slices = 1;
};

/// The schedule where none was tuned. With at least half as many lookups as rows: "dense_sums"
/// where all folds fit a mebibyte, else "placed_sums" up to 2^16 rows, ordered by count up to 8
/// lookups a row. With fewer, down to a sixteenth, and rows of at most 8 floats: "placed_sums".
/// Else "distinct_rows".
const RowUpdateKernel& default_row_update(const RowUpdateWork& work);

/// Bodies that rest between batches, so that their memory is used again. Any thread.
class RowSumsStock {
 public:
  std::unique_ptr<RowSums> take(const RowUpdateTemplate& of);
  void give_back(const RowUpdateTemplate& of, std::unique_ptr<RowSums> sums);

 private:
  struct Resting {
    const RowUpdateTemplate* of;
    std::unique_ptr<RowSums> sums;
  };
  std::mutex mutex_;
  std::vector<Resting> resting_;  // guarded by mutex_
};

}  // namespace recmill::kernels
