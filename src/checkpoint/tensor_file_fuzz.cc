// SPDX-License-Identifier: Apache-2.0
// The first byte chooses .npy or .safetensors, the others are the file: each tensor of a file that
// opens can be read to its end.
#include "base/testing/faulty_files.h"
#include "base/testing/fuzz.h"
#include "checkpoint/npy.h"
#include "checkpoint/safetensors.h"

namespace recmill {
namespace {

using checkpoint::ElementType;
using checkpoint::EntrySpec;
using checkpoint::TensorWriter;

std::string written(FaultyFiles& files, Result<std::unique_ptr<TensorWriter>> writer,
                    const std::vector<EntrySpec>& tensors) {
  for (const EntrySpec& tensor : tensors) {
    const std::vector<std::byte> bytes(tensor_bytes(tensor), std::byte{5});
    RECMILL_CHECK((*writer)->append(bytes).ok());
  }
  RECMILL_CHECK((*writer)->close().ok());
  return files.content("tensors");
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  FaultyFiles files;
  const EntrySpec rows{"rows", ElementType::float32, {3, 2}};
  const EntrySpec scalar{"scalar", ElementType::bfloat16, {}};
  const std::vector<EntrySpec> both{rows, scalar};
  std::vector<std::string> seeds;
  for (const EntrySpec& tensor : both) {
    seeds.push_back('\0' +
                    written(files, checkpoint::create_npy(files, "tensors", tensor), {tensor}));
  }
  seeds.push_back(
      '\1' +
      written(files, checkpoint::create_safetensors(files, "tensors", both, {{"a", "b"}}), both));
  return seeds;
}

void fuzz::feed(const std::string& bytes) {
  if (bytes.empty()) return;
  FaultyFiles files;
  RECMILL_CHECK(write_atomically(files, "tensors", bytes.substr(1)).ok());
  const auto reader = (bytes[0] & 1) == 0 ? checkpoint::open_npy(files, "tensors", "name")
                                          : checkpoint::open_safetensors(files, "tensors");
  if (!reader.ok()) return;
  for (size_t i = 0; i < (*reader)->tensors().size(); ++i) {
    const auto& tensor = (*reader)->tensors()[i];
    const int64_t size = tensor_bytes(tensor.spec);
    RECMILL_CHECK(size >= 0 && static_cast<size_t>(size) <= bytes.size());
    std::vector<std::byte> content(size);
    RECMILL_CHECK((*reader)->read(i, 0, content).ok());
    RECMILL_CHECK((*reader)->find(tensor.spec.name) >= 0);
  }
}

}  // namespace recmill
