// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"

namespace recmill::kernels::codegen {

/// An installed PyTorch, against which an operator is compiled.
struct TorchPackage {
  std::string folder;  // site-packages/torch
  std::string version;

  /// What a source that sees it is compiled and linked with. Libraries keep to the interface of
  /// version 2.10, whatever the version here, and so work with all from there on.
  std::vector<std::string> flags() const;
};

/// The one that this Python would import. Fails, naming it: no such program, no PyTorch there, or
/// one before 2.10.
Result<TorchPackage> find_torch(const std::string& python, Files& files);

}  // namespace recmill::kernels::codegen
