// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "batch/sparse_batch.h"
#include "device/buffer.h"
#include "model/model.h"
#include "store/embedding_store.h"

namespace recmill::train {

/// One batch on its way from rows to logits: everything that its forward pass writes. Of one caller
/// at a time; the next batch uses its memory again.
struct ForwardState {
  /// What the model takes at once: a slice, or a block of it.
  struct Block {
    int64_t begin = 0;  // sample of the rank's
    model::SliceInput input;
    std::vector<model::SliceInput::Sequence> sequences;
    std::vector<JaggedView> rows;
    std::span<float> logits;
  };
  struct Slice {
    std::unique_ptr<model::SliceState> activations;  // from the first forward to the last pass
    std::vector<Block> blocks;                       // none: no samples
    std::vector<float> sum;                          // what it adds at the end of a phase
  };

  // Results of predict(); of this rank:
  std::vector<float> logits;    // [samples]
  double lookup_seconds = 0.0;  // of it, fetching and pooling rows
  int64_t received = 0;         // bytes from other ranks, by the lookup

  // Layers on the CPU:
  bool training = false;  // backward follows
  // [samples][layout.stride], on huge pages: the store goes through them a feature at a time, so
  // that neighbouring accesses lie a sample apart.
  Buffer pooled;
  std::vector<std::vector<float>> sequences;  // [unpooled features][lookups][dim]
  std::vector<store::FeatureOutput> outputs;  // of all features, in these
  std::vector<Slice> slices;                  // [own slices]
  std::vector<std::vector<float>> totals;     // [phases][sum size]
};

}  // namespace recmill::train
