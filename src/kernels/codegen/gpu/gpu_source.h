// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace recmill::kernels::codegen {

/// A kernel for GPUs: a text that includes nothing that is not in it, and the name of its entry. A
/// text may have several kernels, which are sources that follow each other.
struct GpuSource {
  std::string text;
  std::string entry;
  bool operator==(const GpuSource&) const = default;
};

}  // namespace recmill::kernels::codegen
