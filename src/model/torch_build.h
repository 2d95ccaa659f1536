// SPDX-License-Identifier: Apache-2.0
// What a program and its librecmill_torch.so have to be alike in (cmake/write_torch_build.cmake).
#pragma once

namespace recmill::model {

/// A hash of the compiler, its options, and all headers whose types go between the two.
const char* torch_build();

/// Of the LibTorch that was compiled against: "2.11.0".
const char* torch_version();

}  // namespace recmill::model
