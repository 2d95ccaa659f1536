// SPDX-License-Identifier: Apache-2.0
// A compiled operator: embedding_pool of one model's features as a shared library that works by
// itself. This header and the sources beside it go into the library as text (pool_op_source.h),
// with generated ones: the fused kernels, and the tables and features that they were made for. It
// knows no PyTorch; torch_registration.cc, the one source that does, calls what is here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "batch/sparse_batch.h"
#include "device/gpu/embedded_kernel.h"
#include "kernels/codegen/pool_prelude.h"
#include "kernels/embedding_pool/gpu_blocks.h"

namespace recmill::pool_op {

/// How a table's weights are stored; rows follow each other without a gap.
enum class Weights { float32, bfloat16, float16 };

struct Table {
  const char* name;
  Weights weights;
  int64_t dim;
};

/// Function `schedule` of fused kernel `kernel`.
struct Place {
  int32_t kernel, schedule;
};

/// Functions of a feature on the CPU.
struct CpuFeature {
  Place chosen;
  bool only_one_each;             // `chosen` is right for bags of exactly one lookup alone
  bool stages;                    // `chosen` reads the table first: for bags that together cover it
  Place one_each, bags;           // otherwise, by what the bags are like
  double per_lookup, per_sample;  // cost
  int64_t row_bytes, lookup_bytes;  // of a row; of the cache lines that a lookup asks for
};

/// Functions of a feature on a GPU.
struct GpuPlace {
  Place of;
  kernels::GpuParts parts;
};
struct GpuFeature {
  GpuPlace chosen;
  bool only_one_each;
  GpuPlace otherwise;
  int64_t alignment;  // of the table, bytes
};

struct Feature {
  const char* name;
  int32_t table;
  bool pooled;  // false: a row for each lookup
  bool weighted;
};

/// What the library was made for; its generated source defines `model`.
struct Model {
  const char* name;         // of the operator
  const char* schema;       // of it, in PyTorch's terms
  const char* description;  // tables and features, as JSON
  const char* description_name;
  const char* description_schema;
  std::span<const Table> tables;
  std::span<const Feature> features;
  std::span<const CpuFeature> cpu;                  // [features]
  std::span<const recmill_generated::Run> kernels;  // of the CPU
  int64_t tile;                                     // samples of a piece, at most
  std::span<const GpuFeature> gpu;                  // [features], or empty: not for GPUs
  std::span<const EmbeddedKernel> gpu_kernels;
  const char* gpu_driver;  // library
  int64_t dim_of(size_t feature) const { return tables[features[feature].table].dim; }
};
extern const Model model;

/// A table at a call; of the device.
struct Rows {
  const void* data;
  int64_t count;
};

struct Inputs {
  std::span<const Rows> tables;
  std::span<const JaggedView> bags;  // [features]; offsets of the host, rows and weights of the
                                     // device; one_each need not be told
  std::span<float* const> outputs;   // [features], of the device: pooled [samples][dim], else
                                     // [lookups][dim]
};

/// What is wrong with a feature's offsets, which must go from 0 up to `lookups`; empty: nothing.
std::string problem_of_offsets(size_t feature, const JaggedView& bags, int64_t lookups);

/// Calls work(of, i) for i in [0, count), several at once where it can.
using Parallel = void (*)(int64_t count, void (*work)(void* of, int64_t i), void* of);

/// Pools all features: bitwise embedding_pool_reference(), at any number of threads. Returns what
/// is wrong with a lookup, of which no row was read then; empty: nothing. Offsets are right.
std::string pool_on_cpu(const Inputs& inputs, int threads, Parallel parallel);

/// Memory of a call on a GPU: the caller's, until its kernels are done.
class CallMemory {
 public:
  /// Bytes of the host, and as many of the GPU that send() copies them to.
  struct Staged {
    std::byte *host, *device;
  };
  virtual ~CallMemory() = default;
  virtual Staged stage(int64_t bytes) = 0;
  virtual void send() = 0;
  /// Of the GPU.
  virtual std::byte* scratch(int64_t bytes) = 0;
  virtual std::byte* zeros(int64_t bytes) = 0;
};

/// Enqueues the same on a stream of the GPU `gpu`, which is the current one. Returns what went
/// wrong; empty: nothing. Offsets are right; rows are not looked at.
std::string pool_on_gpu(const Inputs& inputs, CallMemory& memory, int gpu, void* stream);

/// Whether each bag has exactly one lookup.
bool has_one_each(const JaggedView& bags);

/// What the library exports as recmill_pool_op(), for who calls it without PyTorch.
struct Entries {
  const Model* model;
  decltype(&problem_of_offsets) offsets;
  decltype(&pool_on_cpu) on_cpu;
  decltype(&pool_on_gpu) on_gpu;
};

}  // namespace recmill::pool_op
