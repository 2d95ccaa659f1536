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
  /// What a message takes, a multiple of 64.
  static int64_t bytes_of(std::span<const int64_t> counts, std::span<const int64_t> widths);
  /// Begins a message to be filled in at `memory` [bytes_of()], which is aligned to 8 bytes.
  void begin(std::byte* memory, std::span<const int64_t> counts, std::span<const int64_t> widths);
  /// Fails when the bytes are no message of these widths. Refers to `bytes`, and is not filled in.
  static Result<RowMessage> parse(std::span<const std::byte> bytes,
                                  std::span<const int64_t> widths);
  /// Copies the message to other memory, where it goes on.
  void move_to(std::byte* memory);

  size_t groups() const { return counts_.size(); }
  int64_t count(size_t group) const { return counts_[group]; }
  std::span<int64_t> rows(size_t group) { return {rows_[group], size_t(counts_[group])}; }
  std::span<const int64_t> rows(size_t group) const {
    return {rows_[group], size_t(counts_[group])};
  }
  float* values(size_t group) { return values_[group]; }
  const float* values(size_t group) const { return values_[group]; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void point_into(std::byte* memory, std::span<const int64_t> widths);

  std::span<std::byte> bytes_;
  std::vector<int64_t> counts_;
  std::vector<int64_t*> rows_;
  std::vector<float*> values_;
};

}  // namespace recmill::store
