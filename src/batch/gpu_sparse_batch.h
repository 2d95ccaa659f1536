// SPDX-License-Identifier: Apache-2.0
// Bags of a batch in a GPU's memory, where they were made and where its store reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "batch/sparse_batch.h"
#include "device/gpu/gpu.h"

namespace recmill {

/// One feature's bags, by addresses of the GPU. The host has their offsets too.
struct BagsOnGpu {
  bool are_there = false;            // false: the host alone has them
  const int64_t* offsets = nullptr;  // [samples + 1], from 0; may be null where one_each
  const int64_t* rows = nullptr;     // [lookups], each of its table
  const float* weights = nullptr;    // beside rows, or null: all 1
};

/// Those of all features. Whoever makes them has their memory, which serves batch after batch: who
/// reads them says so by read_by().
class GpuSparseBatch {
 public:
  /// All of one rank have the same GPU, which outlives this.
  explicit GpuSparseBatch(Gpu& gpu) : gpu_(gpu) {}
  virtual ~GpuSparseBatch() = default;
  GpuSparseBatch(const GpuSparseBatch&) = delete;
  GpuSparseBatch& operator=(const GpuSparseBatch&) = delete;

  Gpu& gpu() const { return gpu_; }
  std::vector<BagsOnGpu> features;  // as SparseBatch::features

  /// They are there once what is enqueued on `stream` so far has happened.
  Status made_by(GpuStream& stream);
  /// What is enqueued on `stream` from now on comes after that.
  Status wait(GpuStream& stream) const { return made_ ? stream.wait_for(*made_) : Status(); }
  /// What is enqueued on `stream` so far is the last there that reads them.
  Status read_by(GpuStream& stream);
  /// Returns when nobody reads them any more.
  Status finish();

  /// Copies rows and weights of some features to the host's ones, and waits for them.
  Status fetch(std::span<const size_t> features, SparseBatch& batch);

 private:
  struct Reader {
    GpuDriver::Stream stream = nullptr;
    GpuEvent last;
  };
  Gpu& gpu_;
  std::optional<GpuEvent> made_;
  std::vector<Reader> readers_;
  GpuStream copies_;  // to the host
  PinnedBuffer copied_;
};

/// The host has the rows of all features, and the batch has no memory of a GPU any more.
Status bring_to_host(SparseBatch& batch);
/// The rows of a feature's lookups, from offsets[0] on, wherever they are.
Result<std::vector<int64_t>> rows_of(const SparseBatch& batch, size_t feature);

}  // namespace recmill
