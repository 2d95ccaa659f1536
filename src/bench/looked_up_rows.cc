// SPDX-License-Identifier: Apache-2.0
#include "bench/looked_up_rows.h"

#include "base/hash.h"

namespace recmill::bench {

Result<LookedUpRows> LookedUpRows::make(int64_t samples, int64_t features, int64_t dim) {
  LookedUpRows rows;
  const int64_t width = features * dim;
  RECMILL_ASSIGN_OR_RETURN(rows.values_, Buffer::allocate(samples * width * sizeof(float)));
  for (int64_t f = 0; f < features; ++f) {
    float* const data = rows.values_.as<float>().data() + f * dim;
    rows.output_.push_back({data, width});
    rows.gradient_.push_back({data, width});
  }
  return rows;
}

uint32_t LookedUpRows::checksum() const {
  return crc32c(std::as_bytes(values()));
}

store::Batch part_of_batch(const SparseBatch& samples, int rank, int ranks, int slices,
                           int64_t iteration, store::Purpose purpose) {
  store::Batch batch;
  batch.iteration = iteration;
  batch.purpose = purpose;
  batch.cut = {samples.samples * ranks, slices};
  batch.first_slice = rank * slices / ranks;
  batch.end_slice = (rank + 1) * slices / ranks;
  batch.sparse = &samples;
  if (purpose == store::Purpose::train)
    batch.plan = std::make_shared<const StepPlan>(StepPlan{iteration, iteration});
  return batch;
}

}  // namespace recmill::bench
