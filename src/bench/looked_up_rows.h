// SPDX-License-Identifier: Apache-2.0
// What benches of stores give a rank: its part of a global batch, and memory for what it looks up.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "device/buffer.h"
#include "store/embedding_store.h"

namespace recmill::bench {

/// Rows of a rank's samples, [samples][features][dim], which are their own gradient as well.
class LookedUpRows {
 public:
  LookedUpRows() = default;
  static Result<LookedUpRows> make(int64_t samples, int64_t features, int64_t dim);

  std::span<const float> values() const { return values_.as<float>(); }
  store::Output output() const { return output_; }
  store::Gradient gradient() const { return gradient_; }
  uint32_t checksum() const;

 private:
  Buffer values_;
  std::vector<store::FeatureOutput> output_;
  std::vector<store::FeatureGradient> gradient_;
};

/// `rank`'s part of a batch of `slices`, to which all ranks give as many samples.
store::Batch part_of_batch(const SparseBatch& samples, int rank, int ranks, int slices,
                           int64_t iteration, store::Purpose purpose);

}  // namespace recmill::bench
