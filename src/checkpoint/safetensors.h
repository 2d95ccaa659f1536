// SPDX-License-Identifier: Apache-2.0
// .safetensors files: named tensors behind a JSON header (docs/formats/export.md).
#pragma once

#include <map>

#include "checkpoint/tensor_file.h"

namespace recmill::checkpoint {

/// Begins the file `path`; the bytes of `tensors`, whose names differ, follow in this order.
/// `metadata` is kept as "__metadata__".
Result<std::unique_ptr<TensorWriter>> create_safetensors(
    Files& files, const std::string& path, const std::vector<EntrySpec>& tensors,
    const std::map<std::string, std::string>& metadata = {});

/// Opens a file; its tensors are in the order of their bytes. Refused, with the reason: headers
/// that are no JSON or beyond 100 MB, unknown types, and tensors that overlap, leave holes, or do
/// not fill the file.
Result<std::unique_ptr<TensorReader>> open_safetensors(Files& files, const std::string& path);

}  // namespace recmill::checkpoint
