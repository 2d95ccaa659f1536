// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/tensor_file.h"

namespace recmill::checkpoint {

int64_t tensor_bytes(const EntrySpec& tensor) {
  int64_t bytes = size_of(tensor.type);
  for (const int64_t extent : tensor.shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes)) return -1;
  }
  return bytes;
}

Status TensorWriter::append(std::span<const std::byte> bytes) {
  RECMILL_CHECK(static_cast<int64_t>(bytes.size()) <= left_, path_);
  left_ -= static_cast<int64_t>(bytes.size());
  return file_->append(bytes);
}

Status TensorWriter::close() {
  RECMILL_CHECK(left_ == 0, path_ + ": " + std::to_string(left_) + " bytes are missing");
  return file_->close();
}

int TensorReader::find(const std::string& name) const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].spec.name == name) return static_cast<int>(i);
  }
  return -1;
}

Status TensorReader::read(size_t tensor, int64_t first, std::span<std::byte> bytes) const {
  const Tensor& what = tensors_[tensor];
  const auto size = static_cast<int64_t>(bytes.size());
  RECMILL_CHECK(first >= 0 && first + size <= tensor_bytes(what.spec), path_);
  RECMILL_ASSIGN_OR_RETURN(const size_t got,
                           file_->read(static_cast<uint64_t>(what.offset + first), bytes));
  if (got == bytes.size()) return {};
  return Status::Failed(path_ + ": ends inside tensor '" + what.spec.name + "'");
}

}  // namespace recmill::checkpoint
