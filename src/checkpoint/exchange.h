// SPDX-License-Identifier: Apache-2.0
// From checkpoints to the tensor files of other programs, and back.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "checkpoint/reader.h"
#include "checkpoint/tensor_file.h"

namespace recmill::checkpoint {

/// The name of an entry's tensor outside: that of the PyTorch state_dict for a dense parameter
/// ("dense/top.0.weight": "top.0.weight"), "embeddings.T.weight" for table T. Empty: the entry
/// (optimizer state, dictionary, metric) means nothing to other programs.
std::string tensor_name(const std::string& entry);

/// Writes all weights into one .safetensors file, in order of entry names; the step is kept as
/// metadata. Dictionaries go along as "dictionaries.T", so that rows can be found by id.
Status export_safetensors(Files& files, Reader& reader, const std::string& path);

/// The same as one file NAME.npy a tensor in `folder`, which is made. Returns the paths.
Result<std::vector<std::string>> export_npy(Files& files, Reader& reader,
                                            const std::string& folder);

/// Writes a checkpoint into `folder` that is `base` with some of its tensors replaced by those of
/// `tensors`, by their outside names (a .npy file's only tensor has the name it was opened with).
/// Optimizer state is that of `base`. A tensor that `base` has not,
/// or of another type or shape, is a bad request that names both.
Status import_tensors(Files& files, Reader& base, const TensorReader& tensors,
                      const std::string& folder);

}  // namespace recmill::checkpoint
