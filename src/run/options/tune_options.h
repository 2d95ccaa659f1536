// SPDX-License-Identifier: Apache-2.0
// The section [tune].
#pragma once

#include <cstdint>
#include <vector>

#include "schema/options.h"

namespace recmill::train {

struct TuneOptions {
  std::vector<int64_t> batch_sizes;
};
template <typename Visitor>
void describe(Visitor& v, TuneOptions& o) {
  v("batch_sizes", o.batch_sizes,
    "samples of the batches that tuning and `bench kernels` see: of eight one from each eighth of "
    "this list in ascending order, drawn evenly by seed; empty: train.batch_size",
    between(1, 1 << 24));
}

}  // namespace recmill::train
