// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/npy.h"

#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

namespace recmill::checkpoint {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;  // of the first element in the file

constexpr std::pair<ElementType, std::string_view> kDescriptions[] = {
    {ElementType::float32, "<f4"}, {ElementType::bfloat16, "<V2"}, {ElementType::float16, "<f2"},
    {ElementType::float64, "<f8"}, {ElementType::int64, "<i8"},    {ElementType::uint64, "<u8"},
    {ElementType::uint32, "<u4"},  {ElementType::uint8, "|u1"}};

std::string header_of(const EntrySpec& tensor) {
  std::string text = "{'descr': '";
  for (const auto& [type, description] : kDescriptions) {
    if (type == tensor.type) text += description;
  }
  text += "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    text += (i > 0 ? " " : "") + std::to_string(tensor.shape[i]);
    if (i + 1 < tensor.shape.size() || i == 0) text += ',';
  }
  text += "), }";
  // Version 1.0: magic, two bytes of version, two of length.
  const size_t before = kMagic.size() + 4;
  const size_t size = (before + text.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  text.resize(size - before - 1, ' ');
  text += '\n';
  std::string header(kMagic);
  header +=
      {'\x01', '\x00', static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)};
  return header + text;
}

/// What is behind 'key': in the header's dictionary, spaces passed over; nothing without it.
std::optional<std::string_view> value_of(std::string_view header, std::string_view key) {
  const std::string quoted = "'" + std::string(key) + "':";
  const size_t at = header.find(quoted);
  if (at == std::string_view::npos) return std::nullopt;
  header.remove_prefix(at + quoted.size());
  header.remove_prefix(std::min(header.size(), header.find_first_not_of(' ')));
  return header;
}

std::optional<ElementType> type_of(std::string_view header) {
  const auto value = value_of(header, "descr");
  if (!value) return std::nullopt;
  for (const auto& [type, description] : kDescriptions) {
    if (value->starts_with("'" + std::string(description) + "'")) return type;
  }
  return value->starts_with("'|V2'") ? std::optional(ElementType::bfloat16) : std::nullopt;
}

/// The numbers of "(3, 4)" or "(3,)" or "()".
std::optional<std::vector<int64_t>> shape_of(std::string_view header) {
  const auto value = value_of(header, "shape");
  if (!value || !value->starts_with('(')) return std::nullopt;
  const size_t end = value->find(')');
  if (end == std::string_view::npos) return std::nullopt;
  std::vector<int64_t> shape;
  const char* at = value->data() + 1;
  const char* const last = value->data() + end;
  while (true) {
    while (at < last && (*at == ' ' || *at == ',')) ++at;
    if (at == last) return shape;
    int64_t extent = 0;
    const auto [next, error] = std::from_chars(at, last, extent);
    if (error != std::errc() || extent < 0) return std::nullopt;
    shape.push_back(extent);
    at = next;
  }
}

Result<std::string> read_exactly(const ReadableFile& file, uint64_t offset, size_t size,
                                 const std::string& path) {
  std::string text(size, '\0');
  RECMILL_ASSIGN_OR_RETURN(const size_t got,
                           file.read(offset, std::as_writable_bytes(std::span(text))));
  if (got != size) return Status::Failed(path + ": ends inside its header");
  return text;
}

}  // namespace

Result<std::unique_ptr<TensorWriter>> create_npy(Files& files, const std::string& path,
                                                 const EntrySpec& tensor) {
  RECMILL_CHECK(tensor_bytes(tensor) >= 0, path);
  RECMILL_ASSIGN_OR_RETURN(auto file, AtomicFile::create(files, path));
  const std::string header = header_of(tensor);
  RECMILL_RETURN_IF_ERROR(file->append(std::as_bytes(std::span(header))));
  return std::make_unique<TensorWriter>(path, std::move(file), tensor_bytes(tensor));
}

Result<std::unique_ptr<TensorReader>> open_npy(Files& files, const std::string& path,
                                               const std::string& name) {
  RECMILL_ASSIGN_OR_RETURN(auto file, files.open(path));
  RECMILL_ASSIGN_OR_RETURN(const std::string start,
                           read_exactly(*file, 0, kMagic.size() + 2, path));
  if (!start.starts_with(kMagic)) return Status::Failed(path + ": is not a .npy file");
  const auto version = static_cast<unsigned char>(start[kMagic.size()]);
  if (version < 1 || version > 3) {
    return Status::Failed(path + ": .npy version " + std::to_string(version) + ", not 1 to 3");
  }
  const size_t width = version == 1 ? 2 : 4;  // bytes of the header's length, little-endian
  RECMILL_ASSIGN_OR_RETURN(const std::string length,
                           read_exactly(*file, start.size(), width, path));
  uint32_t size = 0;
  std::memcpy(&size, length.data(), width);
  if (size > file->size()) return Status::Failed(path + ": ends inside its header");
  RECMILL_ASSIGN_OR_RETURN(const std::string header,
                           read_exactly(*file, start.size() + width, size, path));
  const auto type = type_of(header);
  const auto shape = shape_of(header);
  const auto order = value_of(header, "fortran_order");
  if (!type || !shape || !order) {
    return Status::Failed(path +
                          ": its header is not understood: " + header.substr(0, header.find('\n')));
  }
  if (!order->starts_with("False")) {
    return Status::Failed(path + ": is in Fortran order; save it as numpy.ascontiguousarray()");
  }
  TensorReader::Tensor tensor{{name, *type, *shape},
                              static_cast<int64_t>(start.size() + width + size)};
  const int64_t bytes = tensor_bytes(tensor.spec);
  const auto there = static_cast<int64_t>(file->size()) - tensor.offset;
  if (bytes != there) {
    return Status::Failed(path + ": " + std::to_string(there) + " bytes of elements where its " +
                          "shape needs " + std::to_string(bytes));
  }
  return std::make_unique<TensorReader>(path, std::move(file),
                                        std::vector<TensorReader::Tensor>{std::move(tensor)});
}

}  // namespace recmill::checkpoint
