// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace recmill::kernels::codegen {

/// The folder of compiled kernels that all tests of a build share: a kernel that several of them
/// run is compiled once. Tests of what is compiled when have folders of their own.
inline std::string kernel_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().string() + "/kernels";
}

}  // namespace recmill::kernels::codegen
