// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace recmill::store {

/// The bytes of one message: rows by group (of a table each, say), and so many
/// floats for each as its group is wide.
///   int64 [groups]                 counts
///   int64 [sum of counts]          rows, group after group
///   float32 [sum of count * width] values, group after group; then zeros up to 64 bytes
class RowMessage {
 public:
  RowMessage() = default;
  RowMessage(RowMessage&&) = default;
  RowMessage& operator=(RowMessage&&) = default;
  RowMessage(const RowMessage&) = delete;  // it points into itself
  RowMessage& operator=(const RowMessage&) = delete;

  /// A message to be filled in; keeps its memory.
  void reset(std::span<const int64_t> counts, std::span<const int64_t> widths);
  /// Fails when the bytes are no message of these widths. Refers to `bytes`.
  static Result<RowMessage> parse(std::span<const std::byte> bytes,
                                  std::span<const int64_t> widths);

  size_t groups() const { return counts_.size(); }
  int64_t count(size_t group) const { return counts_[group]; }
  std::span<int64_t> rows(size_t group) { return {rows_[group], size_t(counts_[group])}; }
  std::span<const int64_t> rows(size_t group) const {
    return {rows_[group], size_t(counts_[group])};
  }
  float* values(size_t group) { return values_[group]; }
  const float* values(size_t group) const { return values_[group]; }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(words_)); }

 private:
  void point_into(int64_t* words, std::span<const int64_t> widths);

  std::vector<int64_t> words_;  // empty in a parsed message
  std::vector<int64_t> counts_;
  std::vector<int64_t*> rows_;
  std::vector<float*> values_;
};

}  // namespace recmill::store
