// SPDX-License-Identifier: Apache-2.0
// Sources of kernels for GPUs compiled: by NVRTC into binaries for an architecture, or by the
// system's compiler into libraries for the emulator; each once.
//
//   FOLDER/NAME.cu, NAME.cubin     NAME: digest of the source, the architecture and
//                                  Nvrtc::identity()
//
// A binary begins with a line "recmill cubin CHECKSUM BYTES", the checksum of what follows: so many
// bytes of what the compiler said, then the binary itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "device/gpu/gpu_properties.h"
#include "device/gpu/kernel_code.h"
#include "device/gpu/nvrtc.h"
#include "device/thread_pool.h"
#include "kernels/codegen/gpu/gpu_source.h"
#include "kernels/codegen/library_cache.h"

namespace recmill::kernels::codegen {

struct GpuCode {
  KernelCode code;  // good while `owner` lives
  std::shared_ptr<const void> owner;
  KernelResources resources;  // of binaries
  // Bytes of a thread that ptxas stores beside its registers. Where functions are called by
  // pointers, with those in which the one that needs most saves the registers of its caller.
  int64_t spilled = 0;
};

class CubinCache {
 public:
  /// Loads NVRTC, and fails as that.
  static Result<CubinCache> open(const std::string& folder, Files& files);

  /// The sources' binaries for an architecture such as "sm_90"; those that are not there yet are
  /// compiled, as many at a time as the pool has threads. Fails in one line, naming the file, where
  /// one does not compile, where the folder cannot be written, and where a binary is not what was
  /// written.
  Result<std::vector<GpuCode>> load(std::span<const GpuSource> sources,
                                    const std::string& architecture, ThreadPool& pool);

  /// Sources that had to be compiled so far.
  int64_t compilations() const { return compilations_; }

 private:
  CubinCache(std::string folder, Files& files, std::shared_ptr<const Nvrtc> nvrtc)
      : folder_(std::move(folder)), files_(files), nvrtc_(std::move(nvrtc)) {}
  std::string path_of(const GpuSource& source, const std::string& architecture) const;
  Status compile(const GpuSource& source, const std::string& architecture);
  Result<GpuCode> read(const GpuSource& source, const std::string& path) const;

  std::string folder_;
  Files& files_;
  std::shared_ptr<const Nvrtc> nvrtc_;
  int64_t compilations_ = 0;
};

/// Compiles and loads code for some GPU.
using CompileForGpu =
    std::function<Result<std::vector<GpuCode>>(std::span<const GpuSource> sources)>;

/// The same for the emulator. Fails as LibraryCache::load.
Result<std::vector<GpuCode>> emulated_code(std::span<const GpuSource> sources, LibraryCache& cache);

}  // namespace recmill::kernels::codegen
