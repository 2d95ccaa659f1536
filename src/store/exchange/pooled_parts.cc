// SPDX-License-Identifier: Apache-2.0
#include "store/exchange/pooled_parts.h"

#include <algorithm>
#include <cstring>

#include "table/row_map.h"

namespace recmill::store {
namespace {

/// Two floats a word; an odd last one beside a zero.
void append_floats(std::span<const float> floats, std::vector<int64_t>& words) {
  const size_t first = words.size();
  words.resize(first + (floats.size() + 1) / 2, 0);
  if (!floats.empty()) std::memcpy(words.data() + first, floats.data(), floats.size_bytes());
}

constexpr int kCopied = -1, kColumns = -2;

/// The rank that pools each lookup, or why it is not one rank.
std::vector<int> owners_of(const JaggedView& bags, const table::EmbeddingTable& table) {
  const int64_t lookups = bags.lookups();
  if (table.column_split().is_split()) return std::vector<int>(lookups, kColumns);
  if (lookups == 0) return {};
  const std::span<const int64_t> rows(bags.rows + bags.offsets[0], lookups);
  std::vector<int> owners;
  owners.reserve(lookups);
  const table::RowMap* map = table.share().map();
  if (map == nullptr) {
    for (const int64_t row : rows) owners.push_back(table.share().owner(row));
    return owners;
  }
  std::vector<table::RowPlace> places(lookups);
  map->places(rows, places.data());
  for (const table::RowPlace place : places)
    owners.push_back(map->is_copied(place) ? kCopied : map->home(place).device);
  return owners;
}

std::vector<int> ranks_of_columns(const table::EmbeddingTable& table) {
  std::vector<int> ranks;
  for (int piece = 0; piece < table.column_split().pieces(); ++piece)
    ranks.push_back(table.column_split().rank_of(piece));
  return ranks;
}

void add_lookup(const JaggedView& bags, int64_t sample, int64_t lookup, WantedParts::Part& part) {
  const bool first = part.samples.empty() || part.samples.back() != sample;
  if (first) part.samples.push_back(sample);
  part.lookups.push_back(2 * bags.rows[lookup] + (first ? 1 : 0));
  if (bags.weights != nullptr) part.weights.push_back(bags.weights[lookup]);
}

void add_fetched(const JaggedView& bags, int64_t lookup, SparseFeature& fetched) {
  fetched.rows.push_back(bags.rows[lookup]);
  if (bags.weights != nullptr) fetched.weights.push_back(bags.weights[lookup]);
}

}  // namespace

void WantedParts::set(size_t feature, const JaggedView& bags, const table::EmbeddingTable& table) {
  auto& [fetched, parts] = features[feature];
  fetched.rows.clear();
  fetched.weights.clear();
  fetched.offsets.assign(1, 0);
  parts.resize(table.share().ranks());
  for (Part& part : parts) {
    part.samples.clear();
    part.lookups.clear();
    part.weights.clear();
  }
  const std::vector<int> owners = owners_of(bags, table);
  const std::vector<int> columns = ranks_of_columns(table);
  for (int64_t sample = 0; sample < bags.samples; ++sample) {
    for (int64_t i = bags.offsets[sample]; i < bags.offsets[sample + 1]; ++i) {
      const int owner = owners[i - bags.offsets[0]];
      if (owner == kCopied) {
        add_fetched(bags, i, fetched);
      } else if (owner == kColumns) {
        for (const int rank : columns) add_lookup(bags, sample, i, parts[rank]);
      } else {
        add_lookup(bags, sample, i, parts[owner]);
      }
    }
    fetched.offsets.push_back(static_cast<int64_t>(fetched.rows.size()));
  }
}

void WantedParts::address(std::span<const int64_t> begins) {
  for (size_t rank = 0; rank < to_ask.size(); ++rank) {
    auto& [ends, ids] = to_ask[rank];
    ends.clear();
    ids.clear();
    const auto end_group = [&] { ends.push_back(static_cast<int64_t>(ids.size())); };
    for (const Feature& feature : features) {
      const Part& part = feature.parts[rank];
      ids.insert(ids.end(), part.lookups.begin(), part.lookups.end());
      end_group();
      append_floats(part.weights, ids);
      end_group();
      auto at = part.samples.begin();
      for (const int64_t end : begins.subspan(1)) {
        const auto next = std::lower_bound(at, part.samples.end(), end);
        ids.push_back(next - at);
        at = next;
      }
      end_group();
    }
  }
}

Status AskedBags::read(const GroupedIds& asked, size_t feature,
                       const table::EmbeddingTable& table) {
  const auto lookups = asked.of(WantedParts::kGroups * feature);
  const auto floats = asked.of(WantedParts::kGroups * feature + 1);
  const auto counts = asked.of(WantedParts::kGroups * feature + 2);
  offsets.clear();
  rows.resize(lookups.size());
  slots.resize(lookups.size());
  for (size_t i = 0; i < lookups.size(); ++i) {
    if (lookups[i] % 2 != 0) offsets.push_back(static_cast<int64_t>(i));
    rows[i] = lookups[i] / 2;
    slots[i] = table.share().slot(rows[i]);
  }
  offsets.push_back(static_cast<int64_t>(lookups.size()));
  weights.resize(floats.empty() ? 0 : lookups.size());
  slice_begins.assign(1, 0);
  for (const int64_t count : counts) slice_begins.push_back(slice_begins.back() + count);
  if (offsets[0] != 0 || slice_begins.back() != bags() ||
      (!floats.empty() && floats.size() != (lookups.size() + 1) / 2))
    return Status::Failed("a request for pooled rows of table '" + table.spec().name +
                          "' does not fit itself");
  if (!floats.empty()) std::memcpy(weights.data(), floats.data(), weights.size() * sizeof(float));
  return {};
}

}  // namespace recmill::store
