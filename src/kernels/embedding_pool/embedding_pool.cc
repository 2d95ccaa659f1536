// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding_pool/embedding_pool.h"

#include <vector>

#include "kernels/embedding_pool/fused_pool.h"

namespace recmill::kernels {

void embedding_pool(std::span<const PoolTask> tasks, ThreadPool& pool) {
  FusedPool fused(std::vector<PoolKernel>(tasks.size()));
  TaskMap map;
  fused.map(tasks, pool.threads(), map);
  fused.run(tasks, map, pool);
}

}  // namespace recmill::kernels
