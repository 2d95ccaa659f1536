// SPDX-License-Identifier: Apache-2.0
// How the columns of a row are held in registers, decided while source is generated: nothing of it
// is left to decide when the code runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/codegen/pool_source.h"
#include "kernels/codegen/source_writer.h"

namespace recmill::kernels::codegen {

/// One vector: `lanes` consecutive columns from `column` on, counted from the block's first.
struct ColumnVector {
  int64_t lanes = 0, column = 0;
};

/// Columns that are in registers together, and the same `repeats` times in a row.
struct ColumnBlock {
  int64_t first = 0, width = 0, repeats = 1;
  std::vector<ColumnVector> vectors;
};

/// Blocks of at most `held` vectors of at most `lanes` floats that cover [0, dim) in order.
std::vector<ColumnBlock> column_blocks(int64_t dim, int64_t lanes, int64_t held);

/// Writes the statements that are the same for all templates.
class BlockWriter {
 public:
  BlockWriter(SourceWriter& write, const PoolFunction& of, ColumnBlock block);

  /// Opens the block's scope, around a loop where it repeats: `rows` and `column` are then what the
  /// other statements use.
  void open();
  void close();
  /// Sums named SUM0, SUM1 ..., +0.
  void zeros(const std::string& sum);
  /// Adds the row of lookup `lookup` (weighted) to the sums.
  void add_row(const std::string& sum, const std::string& lookup);
  /// Copies the row (weighted) into the output at `out`.
  void copy_row(const std::string& lookup, const std::string& out);
  void add(const std::string& sum, const std::string& other);
  /// Divides for a mean over `count` lookups.
  void divide(const std::string& sum, const std::string& count);
  void store(const std::string& sum, const std::string& out);
  /// Past the caches; whether the block can be.
  void stream(const std::string& sum, const std::string& out);
  bool can_stream() const;
  /// Asks for the cache lines of the row of `lookup`.
  void fetch(const std::string& lookup);

 private:
  std::string address(const std::string& lookup) const;
  std::string loaded(const ColumnVector& vector) const;

  SourceWriter& write_;
  const PoolFunction& of_;
  const ColumnBlock block_;
  int64_t bytes_;  // of a weight
};

}  // namespace recmill::kernels::codegen
