// SPDX-License-Identifier: Apache-2.0
// From checkpoints to the tensor files of other programs, and back.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "checkpoint/reader.h"
#include "checkpoint/tensor_file.h"
#include "checkpoint/writer.h"

namespace recmill::checkpoint {

/// The name of an entry's tensor outside: that of the PyTorch state_dict for a dense parameter
/// ("dense/top.0.weight": "top.0.weight"), "embeddings.T.weight" for table T. Empty: the entry
/// (optimizer state, dictionary, metric) means nothing to other programs.
std::string tensor_name(const std::string& entry);

/// Writes all weights into one .safetensors file, in order of entry names; the step is kept as
/// metadata. Dictionaries go along as "dictionaries.T", so that rows can be found by id.
Status export_safetensors(Files& files, Reader& reader, const std::string& path);

/// The same as one file NAME.npy a tensor ('/' in a name is '_' in the file's) in `folder`, which
/// is there when all of them are; it takes the place of an earlier export, and of nothing else
/// (ExportFolder). Returns the number of files.
Result<int64_t> export_npy(Files& files, Reader& reader, const std::string& folder);

/// The tensor of `base` that export_npy() writes into the file STEM.npy; STEM when there is none.
std::string tensor_of_npy(const Reader& base, const std::string& stem);

/// Opens every .npy file of a folder as the tensor of `base` that its name stands for. A folder
/// with none, or with another file, is a bad request.
Result<std::vector<std::unique_ptr<TensorReader>>> open_npy_folder(Files& files, const Reader& base,
                                                                   const std::string& folder);

/// Writes a checkpoint into `folder` that is `base` with some of its tensors replaced by those of
/// `sources`, by their outside names. Optimizer state is that of `base`. A tensor that `base` has
/// not, one of another type or shape, and one that is given twice are bad requests that name it;
/// values that are not finite, of either, are an error that names file and table or layer. Then
/// no checkpoint is written.
Status import_tensors(Files& files, Reader& base,
                      std::span<const std::unique_ptr<TensorReader>> sources,
                      const std::string& folder,
                      ExistingCheckpoint existing = ExistingCheckpoint::keep);

}  // namespace recmill::checkpoint
