// SPDX-License-Identifier: Apache-2.0
#include "kernels/distinct_rows/distinct_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace recmill::kernels {
namespace {

/// Index of a row among those seen so far, by open addressing at a load of at most two thirds. A
/// table no longer than the slots is addressed directly.
class RowIndex {
 public:
  enum class Kind { direct, narrow, wide };  // wide: rows do not fit 32 bits

  void reset(int64_t table_rows, int64_t lookups) {
    const auto slots = std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(3 * lookups / 2, 16)));
    const bool direct = table_rows <= static_cast<int64_t>(slots);
    kind_ = direct ? Kind::direct : table_rows <= int64_t{1} << 32 ? Kind::narrow : Kind::wide;
    mask_ = slots - 1;
    shift_ = 64 - std::countr_zero(slots);
    const size_t used = direct ? static_cast<size_t>(table_rows) : slots;
    if (slots_.size() < used) slots_.resize(used);
    std::fill_n(slots_.begin(), used, kEmpty);
  }
  Kind kind() const { return kind_; }

  struct Found {
    int64_t index;
    int64_t added;  // -1 when the row was not there, else 0
  };
  /// The index of `row` in `rows`; `next`, and kept, when it was not there. Nothing branches on
  /// that, which cannot be predicted.
  template <Kind kKind>
  Found find_or_add(int64_t row, const int64_t* rows, int64_t next) {
    const uint64_t tag = static_cast<uint32_t>(row);
    // Fibonacci hashing: neighbours fall far apart.
    uint64_t slot = kKind == Kind::direct
                        ? static_cast<uint64_t>(row)
                        : (static_cast<uint64_t>(row) * 0x9E3779B97F4A7C15ull) >> shift_;
    uint64_t kept = slots_[slot];
    if constexpr (kKind != Kind::direct) {
      while (std::min(differs<kKind>(kept, tag, row, rows), kept - kEmpty) != 0) [[unlikely]] {
          slot = (slot + 1) & mask_;
          kept = slots_[slot];
        }
    }
    const int64_t added = -static_cast<int64_t>(kept == kEmpty);
    const int64_t index = (next & added) | (static_cast<uint32_t>(kept) & ~added);
    slots_[slot] = tag << 32 | static_cast<uint64_t>(index);
    return {index, added};
  }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};  // no row has this index

  /// 0 when a used slot holds `row`.
  template <Kind kKind>
  static uint64_t differs(uint64_t kept, uint64_t tag, int64_t row, const int64_t* rows) {
    uint64_t difference = kept >> 32 ^ tag;
    if constexpr (kKind == Kind::wide) {
      if (difference == 0 && kept != kEmpty) difference = rows[kept & 0xFFFFFFFF] != row;
    }
    return difference;
  }

  std::vector<uint64_t> slots_;  // low half of a row, then, in the lower 32 bits, its index
  uint64_t mask_ = 0;
  int shift_ = 0;
  Kind kind_ = Kind::direct;
};

/// What finding the rows of one table needs besides its output.
struct TableScratch {
  RowIndex index;
  std::vector<int64_t> rows;     // [1 + lookups], of which `distinct` are used
  std::vector<int32_t> cursors;  // [lookups]: lookups of the row, then where its next one goes
};

/// Gives every row an index in the order of first lookup, and counts its lookups. What a row that
/// was seen before writes behind the last row is overwritten.
template <RowIndex::Kind kKind>
int64_t number_rows(const TableLookups& table, const LocalSlices& slices, TableScratch& scratch,
                    DistinctRows& out) {
  int64_t* const seen = scratch.rows.data();
  int32_t* const counts = scratch.cursors.data();
  RowIndex index = std::move(scratch.index);
  int64_t distinct = 0;
  for (int slice = 0; slice < slices.count(); ++slice) {
    for (size_t f = 0; f < table.features.size(); ++f) {
      const JaggedView& bags = table.features[f].bags;
      if (bags.samples == 0) continue;  // an empty batch may have no offsets
      int64_t* const positions = out.positions.data() + out.feature_begins[f] - bags.offsets[0];
      const int64_t* const rows = bags.rows;
      const int64_t end = bags.offsets[slices.begins[slice + 1]];
      for (int64_t j = bags.offsets[slices.begins[slice]]; j < end; ++j) {
        const auto [at, added] = index.find_or_add<kKind>(rows[j], seen, distinct);
        seen[distinct] = rows[j];
        counts[at] = (counts[at] & static_cast<int32_t>(~added)) + 1;
        positions[j] = at;
        distinct -= added;
      }
    }
  }
  scratch.index = std::move(index);
  return distinct;
}

/// Puts the lookups of one feature and slice behind those that their rows already have.
template <bool kScaled>
void place_lookups(const FeatureBags& feature, size_t number, int slice, int64_t first_sample,
                   int64_t end_sample, std::vector<int32_t>& cursors, DistinctRows& out) {
  const JaggedView& bags = feature.bags;
  if (bags.samples == 0) return;
  const int64_t* const positions =
      out.positions.data() + out.feature_begins[number] - bags.offsets[0];
  const bool pooled = feature.pooling != Pooling::none;
  LookupSource* const sources = out.sources.data();
  int32_t* const next = cursors.data();
  LookupSource source{0, static_cast<uint16_t>(number), static_cast<uint16_t>(slice)};
  for (int64_t i = first_sample; i < end_sample; ++i) {
    const int64_t begin = bags.offsets[i], end = bags.offsets[i + 1];
    for (int64_t j = begin; j < end; ++j) {
      const int64_t at = next[positions[j]]++;
      source.gradient_row = static_cast<uint32_t>(pooled ? i : j - bags.offsets[0]);
      std::memcpy(sources + at, &source, sizeof source);  // one store, not three
      if constexpr (kScaled) {
        if (!out.weights.empty())
          out.weights[at] = bags.weights != nullptr ? bags.weights[j] : 1.0f;
        if (!out.counts.empty())
          out.counts[at] =
              feature.pooling == Pooling::mean ? static_cast<float>(end - begin) : 1.0f;
      }
    }
  }
}

int64_t number_rows(const TableLookups& table, const LocalSlices& slices, TableScratch& scratch,
                    DistinctRows& out) {
  switch (scratch.index.kind()) {
    case RowIndex::Kind::direct:
      return number_rows<RowIndex::Kind::direct>(table, slices, scratch, out);
    case RowIndex::Kind::narrow:
      return number_rows<RowIndex::Kind::narrow>(table, slices, scratch, out);
    case RowIndex::Kind::wide:
      return number_rows<RowIndex::Kind::wide>(table, slices, scratch, out);
  }
  RECMILL_CHECK(false, "row index of unknown kind");
}

void find_in_table(const TableLookups& table, const LocalSlices& slices, TableScratch& scratch,
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
  if (lookups == 0) {
    out.begins.assign(1, 0);
    for (auto* list : {&out.rows, &out.positions}) list->clear();
    for (auto* list : {&out.weights, &out.counts}) list->clear();
    return out.sources.clear();
  }
  out.positions.resize(lookups);
  out.sources.resize(lookups);
  out.weights.resize(weighted ? lookups : 0);
  out.counts.resize(mean ? lookups : 0);
  if (static_cast<int64_t>(scratch.rows.size()) < lookups + 1) {
    scratch.rows.resize(lookups + 1);
    scratch.cursors.resize(lookups + 1);
  }
  scratch.index.reset(table.rows, lookups);
  const int64_t distinct = number_rows(table, slices, scratch, out);
  out.rows.assign(scratch.rows.begin(), scratch.rows.begin() + distinct);
  out.begins.resize(distinct + 1);
  int32_t begin = 0;
  for (int64_t i = 0; i < distinct; ++i) {
    out.begins[i] = begin;
    begin += std::exchange(scratch.cursors[i], begin);
  }
  out.begins[distinct] = begin;
  const auto place = weighted || mean ? place_lookups<true> : place_lookups<false>;
  for (int slice = 0; slice < slices.count(); ++slice) {
    for (size_t f = 0; f < table.features.size(); ++f)
      place(table.features[f], f, slices.first + slice, slices.begins[slice],
            slices.begins[slice + 1], scratch.cursors, out);
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

void DistinctRowsFinder::find(std::span<const TableLookups> tables, const LocalSlices& slices,
                              std::span<DistinctRows> out, ThreadPool& pool) {
  RECMILL_CHECK(tables.size() == out.size());
  pool.run(static_cast<int64_t>(tables.size()), [&](int64_t t) {
    auto scratch = scratch_->take();
    find_in_table(tables[t], slices, *scratch, out[t]);
    scratch_->give_back(std::move(scratch));
  });
}

}  // namespace recmill::kernels
