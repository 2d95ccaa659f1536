// SPDX-License-Identifier: Apache-2.0
#include "store/exchange/row_message.h"

#include <algorithm>
#include <cstring>
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

int64_t RowMessage::bytes_of(std::span<const int64_t> counts, std::span<const int64_t> widths) {
  return static_cast<int64_t>(message_words(counts, widths) * sizeof(int64_t));
}

void RowMessage::begin(std::byte* memory, std::span<const int64_t> counts,
                       std::span<const int64_t> widths) {
  const size_t words = message_words(counts, widths);
  bytes_ = {memory, words * sizeof(int64_t)};
  auto* const first = reinterpret_cast<int64_t*>(memory);
  std::fill_n(first + words - kMessageUnit, kMessageUnit, 0);  // what the values leave of it
  std::ranges::copy(counts, first);
  point_into(memory, widths);
}

Result<RowMessage> RowMessage::parse(std::span<const std::byte> bytes,
                                     std::span<const int64_t> widths) {
  const size_t words = bytes.size() / sizeof(int64_t);
  // Nobody writes through the pointers of a parsed message.
  auto* const memory = const_cast<std::byte*>(bytes.data());
  if (words < widths.size() ||
      words != message_words({reinterpret_cast<int64_t*>(memory), widths.size()}, widths)) {
    return Status::Failed("a message of rows has another size: " + std::to_string(bytes.size()) +
                          " bytes");
  }
  RowMessage message;
  message.bytes_ = {memory, bytes.size()};
  message.point_into(memory, widths);
  return message;
}

void RowMessage::move_to(std::byte* memory) {
  const auto moved = [&](auto* pointer) {
    const auto at = reinterpret_cast<std::byte*>(pointer) - bytes_.data();
    return reinterpret_cast<decltype(pointer)>(memory + at);
  };
  std::memcpy(memory, bytes_.data(), bytes_.size());
  for (int64_t*& rows : rows_) rows = moved(rows);
  for (float*& values : values_) values = moved(values);
  bytes_ = {memory, bytes_.size()};
}

void RowMessage::point_into(std::byte* memory, std::span<const int64_t> widths) {
  const size_t groups = widths.size();
  auto* words = reinterpret_cast<int64_t*>(memory);
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
