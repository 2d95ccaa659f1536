// SPDX-License-Identifier: Apache-2.0
#include "lookahead/batch_rows.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "base/split_mix.h"

namespace recmill::lookahead {
namespace {

/// Rows of a table for each of its lookups up to which a bit a row costs less than hashing: then a
/// lookup pays for one word of words at most.
constexpr int64_t kRowsOfALookup = 64 * 64;

bool takes_bits(int64_t rows, int64_t lookups) {
  return rows / kRowsOfALookup <= lookups;
}

/// Calls `use` with each row that the features look up in samples [begin, end).
template <typename Use>
void for_each_lookup(const SparseBatch& batch, std::span<const size_t> features, int64_t begin,
                     int64_t end, const Use& use) {
  for (const size_t f : features) {
    const SparseFeature& feature = batch.features[f];
    for (int64_t i = feature.offsets[begin]; i < feature.offsets[end]; ++i) use(feature.rows[i]);
  }
}

/// Calls `use` with the place of each bit that is set, ascending, and clears all.
template <typename Use>
void take_bits(uint64_t& bits, const Use& use) {
  for (uint64_t left = std::exchange(bits, 0); left != 0; left &= left - 1)
    use(static_cast<size_t>(std::countr_zero(left)));
}

}  // namespace

BatchRows::BatchRows(const ModelSpec& model) : tables_(model.tables.size()) {
  const SlotTables numbers(model);
  for (size_t t = 0; t < tables_.size(); ++t) {
    tables_[t].begin = numbers.begin(static_cast<int>(t));
    tables_[t].rows = model.tables[t].rows;
  }
  for (size_t f = 0; f < model.features.size(); ++f)
    tables_[model.features[f].table].features.push_back(f);
}

int64_t BatchRows::most_bytes(const ModelSpec& model, std::span<const int64_t> lookups) {
  int64_t bytes = 0;
  for (size_t t = 0; t < model.tables.size(); ++t) {
    const int64_t rows = model.tables[t].rows;
    const int64_t places = takes_bits(rows, lookups[t]) ? rows / 8 + rows / 512 : 32 * lookups[t];
    bytes += places + 16 * std::min(lookups[t], rows);  // and a list of twice those that it has
  }
  return bytes;
}

void BatchRows::find_by_bits(const SparseBatch& batch, int64_t begin, int64_t end, OfTable& table) {
  table.bits.resize(static_cast<size_t>((table.rows + 63) / 64));
  table.words.resize((table.bits.size() + 63) / 64);
  for_each_lookup(batch, table.features, begin, end, [&](int64_t row) {
    const auto word = static_cast<size_t>(row) / 64;
    table.bits[word] |= uint64_t{1} << (row % 64);
    table.words[word / 64] |= uint64_t{1} << (word % 64);
  });
  for (size_t at = 0; at < table.words.size(); ++at) {
    take_bits(table.words[at], [&](size_t word) {
      const size_t first = (at * 64 + word) * 64;
      take_bits(table.bits[at * 64 + word], [&](size_t bit) {
        table.distinct.push_back(table.begin + static_cast<int64_t>(first + bit));
      });
    });
  }
}

void BatchRows::find_by_hash(const SparseBatch& batch, int64_t begin, int64_t end, int64_t lookups,
                             OfTable& table) {
  table.places.assign(std::bit_ceil(static_cast<size_t>(2 * lookups)), -1);
  const size_t mask = table.places.size() - 1;
  for_each_lookup(batch, table.features, begin, end, [&](int64_t row) {
    size_t place = split_mix(static_cast<uint64_t>(row)) & mask;
    while (table.places[place] != -1 && table.places[place] != row) place = (place + 1) & mask;
    if (table.places[place] == row) return;
    table.places[place] = row;
    table.distinct.push_back(table.begin + row);
  });
  std::ranges::sort(table.distinct);
}

void BatchRows::find(const SparseBatch& batch, int64_t begin, int64_t end, OfTable& table) {
  int64_t lookups = 0;
  for (const size_t f : table.features)
    lookups += batch.features[f].offsets[end] - batch.features[f].offsets[begin];
  table.distinct.clear();
  if (lookups == 0) return;
  if (takes_bits(table.rows, lookups)) {
    find_by_bits(batch, begin, end, table);
  } else {
    find_by_hash(batch, begin, end, lookups, table);
  }
}

void BatchRows::find(const SparseBatch& batch, int64_t begin, int64_t end, ThreadPool& pool,
                     std::vector<int64_t>& rows) {
  pool.run(std::ssize(tables_), [&](int64_t t) { find(batch, begin, end, tables_[t]); });
  rows.clear();
  for (const OfTable& table : tables_)
    rows.insert(rows.end(), table.distinct.begin(), table.distinct.end());
}

}  // namespace recmill::lookahead
