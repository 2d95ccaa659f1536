// SPDX-License-Identifier: Apache-2.0
#include "store/row_message.h"

#include <algorithm>
#include <string>

namespace recmill::store {
namespace {

constexpr size_t kMessageUnit = 8;  // words: a message ends where another may begin

// Words of a message; at least its counts.
size_t message_words(std::span<const int64_t> counts, std::span<const int64_t> widths) {
  int64_t rows = 0, values = 0;
  for (size_t g = 0; g < counts.size(); ++g) {
    rows += counts[g];
    values += counts[g] * widths[g];
  }
  const size_t words = counts.size() + rows + (values + 1) / 2;
  return (words + kMessageUnit - 1) / kMessageUnit * kMessageUnit;
}

}  // namespace

void RowMessage::reset(std::span<const int64_t> counts, std::span<const int64_t> widths) {
  words_.resize(message_words(counts, widths));
  std::fill(words_.end() - kMessageUnit, words_.end(), 0);  // what the values leave of it
  std::copy(counts.begin(), counts.end(), words_.begin());
  point_into(words_.data(), widths);
}

Result<RowMessage> RowMessage::parse(std::span<const std::byte> bytes,
                                     std::span<const int64_t> widths) {
  const size_t words = bytes.size() / sizeof(int64_t);
  // Nobody writes through the pointers of a parsed message: its accessors are const.
  auto* data = reinterpret_cast<int64_t*>(const_cast<std::byte*>(bytes.data()));
  if (words < widths.size() || words != message_words({data, widths.size()}, widths)) {
    return Status::Failed("a message of rows has another size: " + std::to_string(bytes.size()) +
                          " bytes");
  }
  RowMessage message;
  message.point_into(data, widths);
  return message;
}

void RowMessage::point_into(int64_t* words, std::span<const int64_t> widths) {
  const size_t groups = widths.size();
  counts_.assign(words, words + groups);
  rows_.resize(groups);
  values_.resize(groups);
  words += groups;
  for (size_t g = 0; g < groups; ++g) {
    rows_[g] = words;
    words += counts_[g];
  }
  auto* floats = reinterpret_cast<float*>(words);
  for (size_t g = 0; g < groups; ++g) {
    values_[g] = floats;
    floats += counts_[g] * widths[g];
  }
}

}  // namespace recmill::store
