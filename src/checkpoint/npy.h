// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files (NEP 1): one tensor. bfloat16, which NumPy has not, is "<V2", as the ml_dtypes
// package writes it.
#pragma once

#include "checkpoint/tensor_file.h"

namespace recmill::checkpoint {

/// Begins the file `path`; the name of `tensor` is not stored.
Result<std::unique_ptr<TensorWriter>> create_npy(Files& files, const std::string& path,
                                                 const EntrySpec& tensor);

/// Opens a file of version 1, 2 or 3 in C order with little-endian elements; its one tensor is
/// named by `name`. Errors name the file and what is wrong with it.
Result<std::unique_ptr<TensorReader>> open_npy(Files& files, const std::string& path,
                                               const std::string& name);

}  // namespace recmill::checkpoint
