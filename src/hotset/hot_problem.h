// SPDX-License-Identifier: Apache-2.0
// What is decided from: tables, where their hot rows are stored, and what may be taken for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace recmill::hotset {

/// Tables with less than so many bytes of float32 weights are always hot (FAE, section III-A).
inline constexpr int64_t kAlwaysHotBytes = int64_t{1} << 20;

struct HotProblemTable {
  std::string name;
  int64_t rows = 0;
  int64_t row_bytes = 0;    // of a row near, with its state
  bool always_hot = false;  // every row is
  int device = -1;          // that its hot rows are stored on; -1: each has a copy
};

struct HotProblem {
  std::vector<HotProblemTable> tables;  // in the order of ModelSpec::tables
  int devices = 1;
  int64_t bytes = 0;       // that hot rows may take of each device
  double threshold = 0.0;  // of inputs, above 0; 0: as many rows as `bytes` allow
  /// Fill `bytes` with the hottest rows, one by one; else rows of equal counts are in or out
  /// together.
  bool fill = false;
};

}  // namespace recmill::hotset
