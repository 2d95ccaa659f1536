// SPDX-License-Identifier: Apache-2.0
// What .npy and .safetensors files share: tensors as one run of bytes, little-endian, the last axis
// fastest.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "checkpoint/format.h"

namespace recmill::checkpoint {

/// Bytes of a whole tensor (an empty shape: one element); -1 when that is no 64-bit number.
int64_t tensor_bytes(const EntrySpec& tensor);

/// The tensors of a file in the order of their bytes. They are written front to back and read from
/// anywhere, so that neither side holds a tensor in memory.
class TensorWriter {
 public:
  TensorWriter(std::string path, std::unique_ptr<WritableFile> file, int64_t bytes)
      : path_(std::move(path)), file_(std::move(file)), left_(bytes) {}

  /// Appends elements of the current tensor, whatever their number; after its last one the next
  /// tensor begins.
  Status append(std::span<const std::byte> bytes);
  /// The file is there after this and not before. Fewer bytes than the tensors have are a CHECK.
  Status close();

 private:
  const std::string path_;
  const std::unique_ptr<WritableFile> file_;
  int64_t left_;  // bytes to come
};

class TensorReader {
 public:
  struct Tensor {
    EntrySpec spec;
    int64_t offset = 0;  // bytes into the file
  };

  TensorReader(std::string path, std::unique_ptr<ReadableFile> file, std::vector<Tensor> tensors)
      : path_(std::move(path)), file_(std::move(file)), tensors_(std::move(tensors)) {}

  const std::string& path() const { return path_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  /// Index of the tensor `name`; -1: none.
  int find(const std::string& name) const;
  /// Fills `bytes` from byte `first` of the tensor on. Safe from several threads.
  Status read(size_t tensor, int64_t first, std::span<std::byte> bytes) const;

 private:
  const std::string path_;
  const std::unique_ptr<ReadableFile> file_;
  const std::vector<Tensor> tensors_;
};

}  // namespace recmill::checkpoint
