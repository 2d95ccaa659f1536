// SPDX-License-Identifier: Apache-2.0
// An operator of everything that compiled ones can do, and calls of it with what the reference
// makes of them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/embedding_pool/gpu_templates.h"
#include "kernels/testing/random_bags.h"
#include "pool_op/pool_op.h"
#include "pool_op/pool_op_source.h"

namespace recmill::kernels::codegen {

inline Schedule schedule(const std::string& text) {
  return *parse_schedule(text);
}
inline PoolKernel kernel(const std::string& text) {
  return *find_pool_kernel(schedule(text));
}

/// Every precision, pooling and kind of schedule.
inline PoolOp mixed_op() {
  PoolOp op;
  op.name = "mixed";
  op.made_by = "a test";
  op.tables = {{"plain", 16, RowPrecision::float32},
               {"quote \" and \\ slash", 100, RowPrecision::bfloat16},
               {"odd", 5, RowPrecision::float16}};
  const auto by_default = [&](int32_t table) {
    return default_gpu_pool_schedule(Pooling::sum, rows_of(op.tables[table]));
  };
  op.features = {
      {"by default", 0, Pooling::sum, false, {}, by_default(0)},
      {"one each", 0, Pooling::sum, false, kernel("one_each fetch=64 store=2 stage=0 ids=512"),
       schedule("one_each unroll=4")},
      {"staged", 1, Pooling::mean, true, kernel("bags fetch=16 held=2 store=1 stage=1 ids=0"),
       schedule("blocks_per_sample lanes=4 at_once=2 threads=8")},
      {"interleaved", 2, Pooling::mean, false,
       kernel("bags_interleaved ways=2 fetch=0 stage=0 ids=0"), by_default(2)},
      {"weighted", 2, Pooling::sum, true, kernel("runs_interleaved ways=2 fetch=16 stage=0 ids=0"),
       by_default(2)},
      {"rows", 1, Pooling::none, true, kernel("rows_copied fetch=16"),
       default_gpu_pool_schedule(Pooling::none, rows_of(op.tables[1]))}};
  return op;
}

/// A call's tables and bags, and what the reference makes of them.
class OpBatch {
 public:
  static constexpr int64_t kRows = 61;  // of a table

  OpBatch(const PoolOp& op, int64_t samples, int64_t longest) {
    for (const PoolOpTable& table : op.tables) {
      auto& halves = tables_.emplace_back(kRows * table.dim * bytes_of(table.precision) / 2);
      for (size_t i = 0; i < halves.size(); ++i)  // small numbers in every precision
        halves[i] = static_cast<uint16_t>(0x3800 + i * 2654435761u % 0x400);
      rows.push_back({halves.data(), kRows});
    }
    for (size_t f = 0; f < op.features.size(); ++f) {
      const PoolOpFeature& of = op.features[f];
      bags_.push_back(random_bags({samples, longest, kRows, of.weighted}, f + 1));
      JaggedView view = bags_.back().view(samples);
      view.one_each = false;  // it is to find out
      const int64_t dim = op.tables[of.table].dim;
      expected.emplace_back((of.pooling == Pooling::none ? view.lookups() : samples) * dim);
      found.emplace_back(expected.back().size(), -1.0f);
      RowStorage storage = rows_of(op.tables[of.table]);
      storage.data = reinterpret_cast<std::byte*>(tables_[of.table].data());
      storage.count = kRows;
      embedding_pool_reference({view, storage, of.pooling, expected.back().data(), dim});
    }
    for (size_t f = 0; f < op.features.size(); ++f) {
      bags.push_back(bags_[f].view(samples));
      bags.back().one_each = false;
      outputs.push_back(found[f].data());
    }
  }
  pool_op::Inputs inputs() const { return {rows, bags, outputs}; }

  std::vector<pool_op::Rows> rows;
  std::vector<JaggedView> bags;
  std::vector<float*> outputs;
  std::vector<std::vector<float>> expected, found;

 private:
  std::vector<std::vector<uint16_t>> tables_;
  std::vector<SparseFeature> bags_;
};

/// The first feature that differs from the reference in a bit; empty: none.
inline std::string difference(const PoolOp& op, const OpBatch& batch) {
  for (size_t f = 0; f < op.features.size(); ++f) {
    const auto &a = batch.expected[f], &b = batch.found[f];
    if (std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) != 0) return op.features[f].name;
  }
  return "";
}

}  // namespace recmill::kernels::codegen
