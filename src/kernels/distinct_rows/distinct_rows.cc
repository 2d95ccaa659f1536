// SPDX-License-Identifier: Apache-2.0
#include "kernels/distinct_rows/distinct_rows.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace recmill::kernels {
namespace {

constexpr int32_t kEmpty = -1;

/// Index of a row among those seen so far, by open addressing at a load of at most one half. A
/// table no longer than the slots is addressed directly.
class RowIndex {
 public:
  void reset(int64_t table_rows, int64_t lookups) {
    const auto slots = std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(2 * lookups, 16)));
    direct_ = table_rows <= static_cast<int64_t>(slots);
    mask_ = slots - 1;
    shift_ = 64 - std::countr_zero(slots);
    const size_t used = direct_ ? static_cast<size_t>(table_rows) : slots;
    if (slots_.size() < used) slots_.resize(used);
    std::fill_n(slots_.begin(), used, kEmpty);
  }
  bool direct() const { return direct_; }

  /// The slot that holds the index of `row` in `rows`, or is empty and its place.
  template <bool kDirect>
  int32_t& find(int64_t row, const int64_t* rows) {
    if constexpr (kDirect) return slots_[row];
    // Fibonacci hashing: neighbours fall far apart.
    uint64_t slot = (static_cast<uint64_t>(row) * 0x9E3779B97F4A7C15ull) >> shift_;
    // One branch for "empty or the row", which is nearly always so: rows[kEmpty] may be read.
    while (!((slots_[slot] == kEmpty) | (rows[slots_[slot]] == row))) slot = (slot + 1) & mask_;
    return slots_[slot];
  }

 private:
  std::vector<int32_t> slots_;  // [slots]: index into rows, or kEmpty
  uint64_t mask_ = 0;
  int shift_ = 0;
  bool direct_ = false;
};

/// What finding the rows of one table needs besides its output.
struct TableScratch {
  RowIndex index;
  std::vector<int64_t> rows;     // [1 + lookups], from 1 on, of which `distinct` are used
  std::vector<int64_t> cursors;  // [lookups]: lookups of the row, then where its next one goes
};

/// Gives every row an index in the order of first lookup, and counts its lookups. Whether a row is
/// new cannot be predicted, so both ways are one: what a known row writes is overwritten.
template <bool kDirect>
int64_t number_rows(const TableLookups& table, const LocalShards& shards, TableScratch& scratch,
                    DistinctRows& out) {
  int64_t* seen = scratch.rows.data() + 1;
  int64_t* counts = scratch.cursors.data();
  int64_t distinct = 0;
  for (int shard = 0; shard < shards.count(); ++shard) {
    for (size_t f = 0; f < table.features.size(); ++f) {
      const JaggedView& bags = table.features[f].bags;
      if (bags.samples == 0) continue;  // an empty batch may have no offsets
      int64_t* positions = out.positions.data() + out.feature_begins[f] - bags.offsets[0];
      const int64_t end = bags.offsets[shards.begins[shard + 1]];
      for (int64_t j = bags.offsets[shards.begins[shard]]; j < end; ++j) {
        const int64_t row = bags.rows[j];
        int32_t& slot = scratch.index.find<kDirect>(row, seen);
        const bool is_new = slot == kEmpty;
        const int64_t index = is_new ? distinct : slot;
        slot = static_cast<int32_t>(index);
        seen[distinct] = row;
        distinct += is_new;
        ++counts[index];
        positions[j] = index;
      }
    }
  }
  return distinct;
}

/// Puts the lookups of one feature and shard behind those that their rows already have.
void place_lookups(const FeatureBags& feature, size_t number, int shard, int64_t first_sample,
                   int64_t end_sample, std::vector<int64_t>& cursors, DistinctRows& out) {
  const JaggedView& bags = feature.bags;
  if (bags.samples == 0) return;
  const int64_t* positions = out.positions.data() + out.feature_begins[number] - bags.offsets[0];
  const bool pooled = feature.pooling != Pooling::none;
  LookupSource source{0, static_cast<uint16_t>(number), static_cast<uint16_t>(shard)};
  for (int64_t i = first_sample; i < end_sample; ++i) {
    const int64_t begin = bags.offsets[i], end = bags.offsets[i + 1];
    for (int64_t j = begin; j < end; ++j) {
      const int64_t at = cursors[positions[j]]++;
      source.gradient_row = static_cast<uint32_t>(pooled ? i : j - bags.offsets[0]);
      out.sources[at] = source;
      if (!out.weights.empty()) out.weights[at] = bags.weights != nullptr ? bags.weights[j] : 1.0f;
      if (!out.counts.empty())
        out.counts[at] = feature.pooling == Pooling::mean ? static_cast<float>(end - begin) : 1.0f;
    }
  }
}

void find_in_table(const TableLookups& table, const LocalShards& shards, TableScratch& scratch,
                   DistinctRows& out) {
  RECMILL_CHECK(table.features.size() <= std::numeric_limits<uint16_t>::max());
  bool weighted = false, mean = false;
  int64_t lookups = 0;
  out.feature_begins.assign(1, 0);
  for (const auto& feature : table.features) {
    weighted |= feature.bags.weights != nullptr;
    mean |= feature.pooling == Pooling::mean;
    lookups += feature.bags.lookups();
    out.feature_begins.push_back(lookups);
  }
  RECMILL_CHECK(lookups <= std::numeric_limits<int32_t>::max(), std::to_string(lookups));
  out.positions.resize(lookups);
  out.sources.resize(lookups);
  out.weights.resize(weighted ? lookups : 0);
  out.counts.resize(mean ? lookups : 0);
  if (static_cast<int64_t>(scratch.rows.size()) < lookups + 1) {
    scratch.rows.resize(lookups + 1);
    scratch.cursors.resize(lookups + 1);
  }
  std::fill_n(scratch.cursors.begin(), lookups, 0);
  scratch.index.reset(table.rows, lookups);
  const int64_t distinct = scratch.index.direct() ? number_rows<true>(table, shards, scratch, out)
                                                  : number_rows<false>(table, shards, scratch, out);
  out.rows.assign(scratch.rows.begin() + 1, scratch.rows.begin() + 1 + distinct);
  out.begins.resize(distinct + 1);
  int64_t begin = 0;
  for (int64_t i = 0; i < distinct; ++i) {
    out.begins[i] = begin;
    begin += std::exchange(scratch.cursors[i], begin);
  }
  out.begins[distinct] = begin;
  for (int shard = 0; shard < shards.count(); ++shard) {
    for (size_t f = 0; f < table.features.size(); ++f)
      place_lookups(table.features[f], f, shards.first + shard, shards.begins[shard],
                    shards.begins[shard + 1], scratch.cursors, out);
  }
}

}  // namespace

/// Scratch is handed from table to table, so that it stays in a core's cache.
struct DistinctRowsFinder::Scratch {
  std::mutex mutex;
  std::vector<std::unique_ptr<TableScratch>> idle;  // guarded by mutex

  std::unique_ptr<TableScratch> take() {
    std::lock_guard lock(mutex);
    if (idle.empty()) return std::make_unique<TableScratch>();
    auto scratch = std::move(idle.back());
    idle.pop_back();
    return scratch;
  }
  void give_back(std::unique_ptr<TableScratch> scratch) {
    std::lock_guard lock(mutex);
    idle.push_back(std::move(scratch));
  }
};

DistinctRowsFinder::DistinctRowsFinder() : scratch_(std::make_unique<Scratch>()) {}
DistinctRowsFinder::~DistinctRowsFinder() = default;
DistinctRowsFinder::DistinctRowsFinder(DistinctRowsFinder&&) noexcept = default;
DistinctRowsFinder& DistinctRowsFinder::operator=(DistinctRowsFinder&&) noexcept = default;

void DistinctRowsFinder::find(std::span<const TableLookups> tables, const LocalShards& shards,
                              std::span<DistinctRows> out, Pool& pool) {
  RECMILL_CHECK(tables.size() == out.size());
  pool.run(static_cast<int64_t>(tables.size()), [&](int64_t t) {
    auto scratch = scratch_->take();
    find_in_table(tables[t], shards, *scratch, out[t]);
    scratch_->give_back(std::move(scratch));
  });
}

}  // namespace recmill::kernels
