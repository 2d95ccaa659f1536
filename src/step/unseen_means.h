// SPDX-License-Identifier: Apache-2.0
// embedding.unseen = "mean": evaluation takes the mean of a table's rows for ids that have none.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "preprocess/dag/feature_graph.h"
#include "schema/table_spec.h"
#include "step/rank_batch.h"
#include "store/embedding_store.h"

namespace recmill::train {

/// During a pass of evaluation row 0 of each such table, that of ids without a row, is replaced by
/// the mean of rows 1 ... n, n being how many ids the dictionary had given a row when the pass
/// began; without any, by zeros. The sum is exact, its mean rounded to float32 and then to what the
/// rows are stored in: the same bits however rows are split among ranks. Training never sees it.
class UnseenMeans {
 public:
  /// Null where no table of `graph` is so. All but `graph` outlive the object.
  static std::unique_ptr<UnseenMeans> make(const preprocess::FeatureGraph& graph,
                                           const ModelSpec& spec, store::EmbeddingStore& store,
                                           Communicator& communicator);

  /// Before a batch is scored: with the first of a pass, reads the tables and replaces the rows. No
  /// snapshot of the store may be there. Collective.
  Status before(const RankBatch& batch);
  /// After it: with the last of a pass, the rows are again what they were.
  Status after(const RankBatch& batch);
  /// Whether rows are replaced now.
  bool are_in() const { return are_in_; }

 private:
  struct Table {
    int number = 0;         // of ModelSpec::tables
    size_t dictionary = 0;  // whose entries its rows are
    std::vector<float> row_0 = {};
  };
  UnseenMeans(std::vector<Table> tables, const ModelSpec& spec, store::EmbeddingStore& store,
              Communicator& communicator);
  Status replace(const preprocess::DictionaryVersions& entries);

  std::vector<Table> tables_;
  const ModelSpec& spec_;
  store::EmbeddingStore& store_;
  Communicator& communicator_;
  bool are_in_ = false;
};

}  // namespace recmill::train
