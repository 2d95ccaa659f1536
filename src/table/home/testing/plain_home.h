// SPDX-License-Identifier: Apache-2.0
// The plain meaning of a home: initial rows, and a list of what was put.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "schema/table_spec.h"
#include "table/embedding_table.h"
#include "table/home/row_home.h"

namespace recmill::table::testing {

/// All rows of some tables, for one thread.
class PlainHome {
 public:
  /// Begins with the rows of `tables`, which are whole.
  PlainHome(const std::vector<EmbeddingTable>& tables, int writers,
            int64_t mark = RowHome::kNoFence);
  ~PlainHome();

  RowHome& writer(int number);

  using Key = std::pair<int, int64_t>;  // table, row
  using Record = std::vector<std::byte>;
  /// The initial rows, and over them what was put up to `step`, in the order of calls.
  std::map<Key, Record> as_after(int64_t step) const;

 private:
  class Writer;
  class Image;
  struct Put {
    int64_t step = 0;
    Key key;
    Record record;
  };
  struct Call {
    Writer* writer = nullptr;
    RowHome::Ticket ticket = 0;
    std::vector<FetchedRows> rows;  // of a fetch
    int64_t step = 0;               // its fence, or of a cut
    bool is_cut = false;
  };

  Status check(int table, std::span<const int64_t> rows) const;
  void replace(std::span<const PutRows> rows, int64_t step);
  void answer();

  std::vector<TableSpec> specs_;
  std::map<Key, Record> initial_, now_;
  std::vector<Put> puts_;
  std::vector<std::unique_ptr<Writer>> writers_;
  std::vector<Call> unanswered_;
};

}  // namespace recmill::table::testing
