// SPDX-License-Identifier: Apache-2.0
// The columns of one batch on their way to a GPU, and what chains of ops make of them there. Rows
// stay there for whoever reads them on the GPU, or go to the host.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "batch/gpu_sparse_batch.h"
#include "device/gpu/staged_arrays.h"
#include "preprocess/run/gpu_chain_arguments.h"
#include "preprocess/run/stateless_ops.h"

namespace recmill::preprocess {

/// Memory that batches use one after the other.
struct GpuBatchMemory {
  StagedArrays inputs, results;
};

/// Bags that chains make on a GPU, and their memory.
class MadeBags final : public GpuSparseBatch {
 public:
  using GpuSparseBatch::GpuSparseBatch;
  StagedArrays offsets;
  StagedArrays rows;  // with weights; the host's half is there where they go there
};

/// Whether the host finishes a feature's rows in every batch: where it divides weights, and where
/// the last op may make rows that the table does not have, of which the first is named.
bool host_finishes(const CompiledGraph& graph, int feature);

class GpuBatch {
 public:
  /// `chains`: those of the subset, dense ones first, with their ops. The call, the chains and the
  /// memory outlive it. `to_host`: whether all rows go there.
  GpuBatch(PreprocessCall& call, const ChainSubset& subset, std::span<const GpuChain> chains,
           GpuBatchMemory& memory, MadeBags& bags, bool to_host);

  /// Enqueues the copy of each raw column that a chain reads. Fails where memory is short.
  Status send(Gpu& gpu, ThreadPool& pool, GpuStream& stream);
  /// One for each chain and so many samples.
  int64_t blocks() const { return tiles_.count; }
  /// Good once it is sent.
  ChainArguments arguments() const;
  /// Enqueues the copy of dense values, counts, and where they go to the host rows.
  Status fetch(GpuStream& stream);
  /// Puts it, once it is there, into the call's outputs and counts, and says where the bags are.
  /// The host gets those that it has to finish. Fails as the GPU.
  Status take(ThreadPool& pool);

 private:
  struct IdArrays {  // of a raw column
    StagedArray<i64> offsets;
    StagedArray<u64> ids;
    StagedArray<float> weights;
  };
  struct FeatureArrays {
    StagedArray<float> values;  // of a feature from dense values
    IdArrays in;                // of one from ids
    StagedArray<i64> offsets;
    StagedArray<u64> rows;
    StagedArray<float> weights;
  };
  struct Copy {
    const void* from;
    void* to;
    size_t bytes;
  };
  struct Input {
    const void* from;
    StagedArray<std::byte> to;  // bytes
    StagedArrays* of;
  };

  template <class T>
  StagedArray<T> add_input(std::span<const T> from, StagedArrays& to);
  StagedArray<float> add_dense_column(int column);
  IdArrays add_id_column(int column);
  FeatureArrays add_feature(int feature);
  std::vector<GpuChain> located_chains() const;
  static void copy(std::span<const Copy> copies, ThreadPool& pool);
  void place_bags();
  std::vector<size_t> unfinished() const;

  PreprocessCall& call_;
  const ChainSubset& subset_;
  const std::span<const GpuChain> chains_;
  GpuBatchMemory& memory_;
  MadeBags& bags_;
  const bool to_host_;
  std::vector<Input> inputs_;
  std::map<int, StagedArray<float>> dense_columns_;  // raw ones, each once
  std::map<int, IdArrays> id_columns_;
  std::vector<StagedArray<float>> dense_inputs_;  // [dense chains]
  std::vector<FeatureArrays> features_;           // [features of the subset]
  StagedArray<GpuChain> sent_chains_;
  StagedArray<ChainTile> tiles_;
  StagedArray<float> dense_;                // [samples][dense chains]
  StagedArray<IdCounts> counts_;            // [features of the subset]
  StagedArray<FlattenedCounts> flattened_;  // [ops of dense columns], where they are counted
};

}  // namespace recmill::preprocess
