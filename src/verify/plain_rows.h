// SPDX-License-Identifier: Apache-2.0
// Rows as a plain run left them, which rank 0 holds and the others ask for.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "device/buffer.h"
#include "schema/table_spec.h"
#include "store/embedding_store.h"

namespace recmill::train {

/// All rows of all tables: [tables]; weights [rows][dim], state a column [rows][width].
class PlainRows {
 public:
  /// Zeros; fails where the memory is not there.
  static Result<PlainRows> blank(const ModelSpec& spec);

  void keep(const store::RowBlock& block);
  /// Those of a table: some columns of its weights, then of each column of state by element; state
  /// by row goes with column 0.
  void append(int table, std::span<const int64_t> rows, ColumnRange columns,
              std::vector<float>& to) const;

 private:
  struct Column {
    int64_t width;
    Buffer values;
  };
  std::vector<std::vector<Column>> tables_;
};

/// One rank's comparison of what a store has with the rows of rank 0. Every rank calls compare()
/// for each of its blocks, then finish(), which answers those that are not through yet.
class RowComparison {
 public:
  /// `plain`: rank 0's; null elsewhere.
  RowComparison(const ModelSpec& spec, const PlainRows* plain, Communicator& communicator);

  /// Names the first difference: table, row and element.
  Status compare(const store::RowBlock& block);
  /// Fails unless all ranks together compared as many weights as there are.
  Status finish();

 private:
  struct Answer {
    bool some_asked = false;  // any rank
    std::vector<float> values;
  };
  Result<Answer> ask(std::span<const int64_t> request);
  std::vector<std::vector<float>> answers(const Received& requests) const;

  const ModelSpec& spec_;
  const PlainRows* const plain_;
  Communicator& communicator_;
  int64_t compared_ = 0;  // weights
};

}  // namespace recmill::train
