// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "base/json/json.h"

namespace recmill::checkpoint {
namespace {

constexpr uint64_t kLengthBytes = 8;  // of the header's length, little-endian
constexpr uint64_t kMaxHeader = 100'000'000;
constexpr char kMetadata[] = "__metadata__";

constexpr std::pair<ElementType, std::string_view> kTypes[] = {
    {ElementType::float32, "F32"}, {ElementType::bfloat16, "BF16"}, {ElementType::float16, "F16"},
    {ElementType::float64, "F64"}, {ElementType::int64, "I64"},     {ElementType::uint64, "U64"},
    {ElementType::uint32, "U32"},  {ElementType::uint8, "U8"}};

Status wrong(const std::string& path, const std::string& name, const std::string& why) {
  return Status::Failed(path + ": tensor '" + name + "': " + why);
}

/// The non-negative integers of a JSON list.
std::optional<std::vector<int64_t>> integers(const Json& json) {
  std::vector<int64_t> numbers;
  if (!json.is_array()) return std::nullopt;
  for (const Json& item : json) {
    if (!item.is_number_integer() || item.get<int64_t>() < 0) return std::nullopt;
    numbers.push_back(item.get<int64_t>());
  }
  return numbers;
}

/// One tensor of the header; offsets count from the end of the header.
Result<TensorReader::Tensor> read_tensor(const std::string& path, const std::string& name,
                                         const Json& json) {
  TensorReader::Tensor tensor;
  tensor.spec.name = name;
  if (!json.is_object()) return wrong(path, name, "is no object");
  const Json type = json.value("dtype", Json());
  const auto known = std::ranges::find_if(
      kTypes, [&](const auto& candidate) { return type == std::string(candidate.second); });
  if (known == std::end(kTypes)) return wrong(path, name, "type " + type.dump() + " is not known");
  tensor.spec.type = known->first;
  const auto shape = integers(json.value("shape", Json()));
  const auto offsets = integers(json.value("data_offsets", Json()));
  if (!shape || !offsets || offsets->size() != 2 || (*offsets)[1] < (*offsets)[0]) {
    return wrong(path, name, "no shape or offsets: " + json.dump());
  }
  tensor.spec.shape = *shape;
  tensor.offset = (*offsets)[0];
  const int64_t bytes = (*offsets)[1] - (*offsets)[0];
  if (bytes == tensor_bytes(tensor.spec)) return tensor;
  return wrong(path, name,
               std::to_string(bytes) + " bytes where its shape needs " +
                   std::to_string(tensor_bytes(tensor.spec)));
}

}  // namespace

Result<std::unique_ptr<TensorWriter>> create_safetensors(
    Files& files, const std::string& path, const std::vector<EntrySpec>& tensors,
    const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  std::set<std::string> names{kMetadata};
  int64_t at = 0;
  for (const EntrySpec& tensor : tensors) {
    const int64_t bytes = tensor_bytes(tensor);
    RECMILL_CHECK(bytes >= 0 && names.insert(tensor.name).second, tensor.name);
    const auto type =
        std::ranges::find(kTypes, tensor.type, [](const auto& entry) { return entry.first; });
    header[tensor.name] = {
        {"dtype", type->second}, {"shape", tensor.shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the bytes begin at a multiple of 8
  const uint64_t length = text.size();
  RECMILL_ASSIGN_OR_RETURN(auto file, AtomicFile::create(files, path));
  RECMILL_RETURN_IF_ERROR(file->append(std::as_bytes(std::span(&length, 1))));
  RECMILL_RETURN_IF_ERROR(file->append(std::as_bytes(std::span(text))));
  return std::make_unique<TensorWriter>(path, std::move(file), at);
}

Result<std::unique_ptr<TensorReader>> open_safetensors(Files& files, const std::string& path) {
  RECMILL_ASSIGN_OR_RETURN(auto file, files.open(path));
  uint64_t length = 0;
  RECMILL_ASSIGN_OR_RETURN(const size_t got,
                           file->read(0, std::as_writable_bytes(std::span(&length, 1))));
  if (got != kLengthBytes || length > kMaxHeader || length > file->size() - kLengthBytes) {
    return Status::Failed(path + ": is not a .safetensors file, or ends inside its header");
  }
  std::string text(length, '\0');
  RECMILL_ASSIGN_OR_RETURN(const size_t header_bytes,
                           file->read(kLengthBytes, std::as_writable_bytes(std::span(text))));
  text.resize(header_bytes);
  const Json header = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return Status::Failed(path + ": its header is not a JSON object");
  std::vector<TensorReader::Tensor> tensors;
  for (const auto& [name, json] : header.items()) {
    if (name == kMetadata) continue;
    RECMILL_ASSIGN_OR_RETURN(auto tensor, read_tensor(path, name, json));
    tensors.push_back(std::move(tensor));
  }
  std::ranges::stable_sort(tensors, {}, &TensorReader::Tensor::offset);
  int64_t at = 0;
  for (TensorReader::Tensor& tensor : tensors) {
    if (tensor.offset != at && tensor_bytes(tensor.spec) > 0) {
      return wrong(path, tensor.spec.name,
                   "begins at byte " + std::to_string(tensor.offset) + ", the one before ends at " +
                       std::to_string(at));
    }
    at += tensor_bytes(tensor.spec);
    tensor.offset += static_cast<int64_t>(kLengthBytes + length);
  }
  const auto there = static_cast<int64_t>(file->size() - kLengthBytes - length);
  if (at == there) {
    return std::make_unique<TensorReader>(path, std::move(file), std::move(tensors));
  }
  return Status::Failed(path + ": " + std::to_string(there) + " bytes of tensors where its " +
                        "header says " + std::to_string(at));
}

}  // namespace recmill::checkpoint
