// SPDX-License-Identifier: Apache-2.0
// Reads rows of a planted model: any row at once, nothing stored.
#pragma once

#include <memory>

#include "device/thread_pool.h"
#include "reader/data_options.h"
#include "reader/reader.h"
#include "reader/synthetic/planted_model.h"

namespace recmill::reader {

class SyntheticReader final : public Reader {
 public:
  /// Rows [begin, end) of the model: [0, rows) are the training rows, [rows, rows + eval_rows) the
  /// held-out ones. The order is that of the rows in every epoch (rows are independent of each
  /// other, or in order of time when popularity drifts). Works on the threads of `pool`, which must
  /// outlive it.
  SyntheticReader(std::shared_ptr<const PlantedModel> model, int64_t begin, int64_t end,
                  ThreadPool& pool);

  const DataSchema& schema() const override { return model_->schema(); }
  Result<int64_t> rows() override { return end_ - begin_; }
  Status read(int64_t epoch, int64_t first, int64_t count, ColumnBatch& batch) override;
  ReaderCounts counts() const override { return counts_; }

 private:
  void size_batch(int64_t first, int64_t count, ColumnBatch& batch) const;
  void make_column(size_t c, ColumnBatch& batch) const;
  void copy(const SyntheticRows& rows, int64_t at, ColumnBatch& batch) const;

  std::shared_ptr<const PlantedModel> model_;
  int64_t begin_, end_;
  ThreadPool& pool_;
  std::vector<SyntheticRows> blocks_;
  ReaderCounts counts_;
};

/// The rows of `options.synthetic` in `subset`, the first `options.rows` of them if that is not 0.
/// Its held-out rows are given, so that any other split is refused; a shuffle changes nothing.
Result<std::unique_ptr<Reader>> open_synthetic_reader(const DataOptions& options, Subset subset,
                                                      ThreadPool& pool);

}  // namespace recmill::reader
