// SPDX-License-Identifier: Apache-2.0
// NVRTC, the compiler of kernels at run time. It needs neither a GPU nor a driver, and is loaded
// when it is asked for: without it everything else works.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace recmill {

struct CompiledKernels {
  std::vector<std::byte> cubin;
  std::string said;  // warnings, and what ptxas says of registers
};

class Nvrtc {
 public:
  /// Looks where the system's loader does, then into CUDA's toolkit. Fails, naming the library and
  /// what to install, where it is not there or too old.
  static Result<std::shared_ptr<const Nvrtc>> load(const std::string& library = "libnvrtc.so.13");
  ~Nvrtc();
  Nvrtc(const Nvrtc&) = delete;
  Nvrtc& operator=(const Nvrtc&) = delete;

  /// What makes a binary another one beside its text and architecture: the compiler's build, which
  /// is the same on all machines that have this release of it, and options.
  const std::string& identity() const { return identity_; }

  /// Compiles a text that includes nothing, for an architecture such as "sm_90", without
  /// contraction of products and sums. Fails with the compiler's first error in one line and all of
  /// them behind.
  Result<CompiledKernels> compile(const std::string& text, const std::string& name,
                                  const std::string& architecture) const;

 private:
  struct Functions;
  Nvrtc() = default;
  Result<std::string> build() const;
  Status check_architecture(const std::string& architecture) const;
  void* handle_ = nullptr;
  std::unique_ptr<Functions> functions_;
  std::string version_;  // "13.0"
  std::string identity_;
};

}  // namespace recmill
