// SPDX-License-Identifier: Apache-2.0
// A data path that is as small as the seams allow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "preprocess/run/preprocessor.h"
#include "reader/reader.h"

namespace recmill::train {

/// A label, a dense value and an id that follow from epoch and row. One row in three is positive.
class SmallReader final : public reader::Reader {
 public:
  explicit SmallReader(int64_t rows) : rows_(rows) {}
  const DataSchema& schema() const override { return schema_; }
  Result<int64_t> rows() override { return rows_; }
  Status read(int64_t epoch, int64_t first, int64_t count, ColumnBatch& batch) override {
    clear_samples(batch);
    batch.first = first;
    batch.dense.resize(1);
    batch.ids.resize(1);
    batch.ids[0].offsets.assign(1, 0);
    for (int64_t row = first; row < std::min(first + count, rows_); ++row) {
      const int64_t number = (row * 37 + epoch * 11) % rows_;
      batch.labels.push_back(number % 3 == 0 ? 1.0f : 0.0f);
      batch.dense[0].push_back(static_cast<float>(number));
      batch.ids[0].ids.push_back(static_cast<uint64_t>(number * number % 41));
      batch.ids[0].offsets.push_back(std::ssize(batch.ids[0].ids));
      ++batch.samples;
    }
    return {};
  }
  reader::ReaderCounts counts() const override { return {}; }

 private:
  const int64_t rows_;
  const DataSchema schema_;
};

/// One dictionary: an id's row is its place in the order of training; 0 before. Without `grows`
/// rows are ids, and there is no state.
class SmallPreprocessor final : public preprocess::Preprocessor {
 public:
  explicit SmallPreprocessor(bool grows) : grows_(grows) {}
  Status train(const ColumnBatch& batch, DenseBatch& dense, SparseBatch& sparse) override {
    for (const uint64_t id : batch.ids[0].ids) {
      if (grows_ && rows_.emplace(id, std::ssize(ids_) + 1).second) ids_.push_back(id);
    }
    return fill(batch, std::ssize(ids_), dense, sparse);
  }
  Status evaluate(const ColumnBatch& batch, const preprocess::DictionaryVersions& as_of,
                  DenseBatch& dense, SparseBatch& sparse) override {
    return fill(batch, as_of.empty() ? 0 : as_of[0], dense, sparse);
  }
  void stop_counting() override {}
  preprocess::DictionaryVersions versions() const override {
    return grows_ ? preprocess::DictionaryVersions{std::ssize(ids_)}
                  : preprocess::DictionaryVersions();
  }
  void read_dictionary(int, int64_t first, std::span<uint64_t> ids) const override {
    std::copy_n(ids_.begin() + first, ids.size(), ids.begin());
  }
  Status restore_dictionary(int, std::span<const uint64_t> ids) override {
    ids_.assign(ids.begin(), ids.end());
    rows_.clear();
    for (size_t i = 0; i < ids.size(); ++i) rows_.emplace(ids[i], static_cast<int64_t>(i) + 1);
    return {};
  }
  std::vector<preprocess::FeatureCounts> counts() const override { return {}; }
  std::vector<preprocess::FlattenedCounts> flattened() const override { return {}; }

 private:
  Status fill(const ColumnBatch& batch, int64_t as_of, DenseBatch& dense, SparseBatch& sparse) {
    dense.first = sparse.first = batch.first;
    dense.samples = sparse.samples = batch.samples;
    dense.columns = 1;
    dense.values = batch.dense.empty() ? std::vector<float>() : batch.dense[0];
    dense.labels = batch.labels;
    sparse.features.resize(1);
    sparse.features[0].offsets = batch.ids[0].offsets;
    sparse.features[0].rows.clear();
    for (const uint64_t id : batch.ids[0].ids) {
      const auto found = rows_.find(id);
      const bool known = found != rows_.end() && found->second <= as_of;
      sparse.features[0].rows.push_back(!grows_ ? static_cast<int64_t>(id)
                                        : known ? found->second
                                                : 0);
    }
    return {};
  }

  const bool grows_;
  std::vector<uint64_t> ids_;
  std::map<uint64_t, int64_t> rows_;
};

}  // namespace recmill::train
