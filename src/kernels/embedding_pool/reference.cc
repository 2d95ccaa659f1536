// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/embedding_pool/embedding_pool.h"
#include "kernels/row_values.h"

namespace recmill::kernels {
namespace {

float weighted_value(const PoolTask& task, int64_t lookup, int64_t element) {
  const float value = weight_value(task.rows, task.bags.rows[lookup], element);
  return task.bags.weights == nullptr ? value : task.bags.weights[lookup] * value;
}

float pooled_value(const PoolTask& task, int64_t begin, int64_t end, int64_t element) {
  float total = 0.0f;
  for (int64_t run = begin; run < end; run += kPoolRun) {
    float sum = 0.0f;
    for (int64_t j = run; j < std::min(run + kPoolRun, end); ++j)
      sum = sum + weighted_value(task, j, element);
    total = total + sum;
  }
  if (task.pooling == Pooling::mean && begin < end) total = total / static_cast<float>(end - begin);
  return total;
}

}  // namespace

void embedding_pool_reference(const PoolTask& task) {
  const JaggedView& bags = task.bags;
  for (int64_t i = 0; i < bags.samples; ++i) {
    const int64_t begin = bags.offsets[i], end = bags.offsets[i + 1];
    for (int64_t element = 0; element < task.rows.dim; ++element) {
      if (task.pooling != Pooling::none) {
        task.out[i * task.stride + element] = pooled_value(task, begin, end, element);
        continue;
      }
      for (int64_t j = begin; j < end; ++j)
        task.out[(j - bags.offsets[0]) * task.stride + element] = weighted_value(task, j, element);
    }
  }
}

}  // namespace recmill::kernels
