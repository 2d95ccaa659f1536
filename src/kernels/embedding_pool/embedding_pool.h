// SPDX-License-Identifier: Apache-2.0
// Looks rows up and pools them, all features of a batch in one call.
//
//   for feature, for sample:
//     total = 0                                  (each element by itself, float32)
//     for run of 64 lookups of the bag, in order:
//       sum = 0
//       for lookup in run: sum = sum + weight * row        (no fma; without weights: sum + row)
//       total = total + sum
//     if mean and the bag is not empty: total = total / lookups
//     out[sample] = total
//   unpooled: out[lookup] = weight * row         (without weights: row)
#pragma once

#include <span>

#include "batch/sparse_batch.h"
#include "device/thread_pool.h"
#include "kernels/row_storage.h"
#include "schema/table_spec.h"

namespace recmill::kernels {

/// The bags of one feature, the rows they name (as slots of `rows`) and where the result goes.
struct PoolTask {
  JaggedView bags;
  RowStorage rows;
  Pooling pooling = Pooling::sum;
  float* out = nullptr;  // pooled: sample i at out + i * stride; unpooled: lookup j (counted from
                         // the view's first) at out + j * stride; dim floats each
  int64_t stride = 0;    // floats, at least dim
};

constexpr int64_t kPoolRun = 64;  // lookups folded before they join the bag's total

/// Outputs must not overlap. An empty bag gives +0. The same bits at any number of threads and on
/// any instruction set. Pooling::none with one flat view gathers rows as float32.
void embedding_pool(std::span<const PoolTask> tasks, ThreadPool& pool);

/// The plain meaning of the above.
void embedding_pool_reference(const PoolTask& task);

}  // namespace recmill::kernels
