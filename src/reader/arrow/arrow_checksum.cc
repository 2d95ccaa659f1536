// SPDX-License-Identifier: Apache-2.0
#include "reader/arrow/arrow_checksum.h"

#include <arrow/type.h>

#include <sstream>
#include <vector>

#include "base/hash.h"

namespace recmill::reader {
namespace {

template <typename T>
uint32_t add(uint32_t crc, const T* values, int64_t count) {
  return crc32c(std::as_bytes(std::span(values, static_cast<size_t>(count))), crc);
}

/// Continues `crc` by length, validity and values.
uint32_t add_array(uint32_t crc, const arrow::Array& array) {
  const int64_t header[] = {array.length(), array.null_count()};
  crc = add(crc, header, 2);
  if (array.null_count() > 0) {
    std::vector<uint8_t> present(static_cast<size_t>(array.length()));
    for (int64_t i = 0; i < array.length(); ++i) present[static_cast<size_t>(i)] = array.IsValid(i);
    crc = add(crc, present.data(), array.length());
  }
  if (array.type_id() == arrow::Type::LIST) {
    const auto& lists = static_cast<const arrow::ListArray&>(array);
    if (array.length() > 0) crc = add(crc, lists.raw_value_offsets(), array.length() + 1);
    return add_array(crc, *lists.values());
  }
  const int width = array.type()->byte_width();
  const auto& values = array.data()->buffers[1];
  if (width <= 0 || values == nullptr) return crc;
  return add(crc, values->data() + array.offset() * width, array.length() * width);
}

}  // namespace

std::string crc_of_fields(const arrow::RecordBatch& batch) {
  std::string text;
  for (int field = 0; field < batch.num_columns(); ++field) {
    text += std::to_string(add_array(0, *batch.column(field))) + ' ';
  }
  return text;
}

bool crc_is(const arrow::Array& array, const std::string& crc_of_fields, int field) {
  std::istringstream words(crc_of_fields);
  std::string word;
  for (int i = 0; i <= field; ++i) words >> word;
  return words && word == std::to_string(add_array(0, array));
}

}  // namespace recmill::reader
