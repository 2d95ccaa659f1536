// SPDX-License-Identifier: Apache-2.0
#include "score/predictions.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>

namespace recmill::train {
namespace {

template <typename T>
Status gather(Communicator& communicator, const std::vector<T>& own, std::vector<T>& all) {
  RECMILL_ASSIGN_OR_RETURN(const Received received,
                           communicator.all_gather(std::as_bytes(std::span(own))));
  if (communicator.rank() != 0) return {};
  const size_t had = all.size();
  all.resize(had + received.bytes.size() / sizeof(T));
  if (!received.bytes.empty())
    std::memcpy(all.data() + had, received.bytes.data(), received.bytes.size());
  return {};
}

Status gather(Communicator& communicator, const std::vector<std::string>& own,
              std::vector<std::string>& all) {
  std::vector<int64_t> sizes;
  std::vector<char> bytes;
  for (const std::string& cell : own) {
    sizes.push_back(static_cast<int64_t>(cell.size()));
    bytes.insert(bytes.end(), cell.begin(), cell.end());
  }
  std::vector<int64_t> all_sizes;
  std::vector<char> all_bytes;
  RECMILL_RETURN_IF_ERROR(gather(communicator, sizes, all_sizes));
  RECMILL_RETURN_IF_ERROR(gather(communicator, bytes, all_bytes));
  const char* at = all_bytes.data();
  for (const int64_t size : all_sizes) {
    all.emplace_back(at, static_cast<size_t>(size));
    at += size;
  }
  return {};
}

/// Cells that are all integers of a type, as such.
template <typename Integer>
bool read_integers(const std::vector<std::string>& cells, std::vector<Integer>& values) {
  for (const std::string& cell : cells) {
    Integer& value = values.emplace_back();
    const char* const end = cell.data() + cell.size();
    const auto [last, error] = std::from_chars(cell.data(), end, value);
    if (error != std::errc() || last != end) return false;
  }
  return true;
}

std::vector<std::string> names_of_files(const std::vector<int32_t>& files,
                                        const std::vector<std::string>& names) {
  std::vector<std::string> of_rows;
  for (const int32_t file : files) of_rows.push_back(names[static_cast<size_t>(file)]);
  return of_rows;
}

}  // namespace

int64_t ScoredSources::count_unlabelled() const {
  return std::ranges::count(unlabelled, uint8_t{1});
}

Status gather_sources(Communicator& communicator, const RankBatch& batch, bool has_keys,
                      ScoredSources& all) {
  std::vector<uint8_t> unlabelled = batch.unlabelled;
  unlabelled.resize(static_cast<size_t>(batch.samples()));
  RECMILL_RETURN_IF_ERROR(gather(communicator, unlabelled, all.unlabelled));
  if (!has_keys) return {};
  RECMILL_RETURN_IF_ERROR(gather(communicator, batch.keys.files, all.keys.files));
  RECMILL_RETURN_IF_ERROR(gather(communicator, batch.keys.numbers, all.keys.numbers));
  return gather(communicator, batch.keys.cells, all.keys.cells);
}

void forget_labels(const ScoredSources& sources, std::vector<float>& labels) {
  for (size_t i = 0; i < labels.size(); ++i)
    if (sources.unlabelled[i] != 0) labels[i] = std::numeric_limits<float>::quiet_NaN();
}

Status write_predictions(Files& files, const std::string& path, const std::string& key,
                         const reader::KeySource& of_keys, const ScoredSources& sources,
                         const reader::NamedColumn& probability, const std::vector<float>& labels) {
  std::vector<reader::NamedColumn> columns;
  std::vector<int64_t> numbers = sources.keys.numbers;
  std::vector<std::string> names;
  std::vector<int64_t> integers;
  std::vector<uint64_t> naturals;
  if (!key.empty()) {
    if (of_keys.integers && read_integers(sources.keys.cells, integers)) {
      columns.push_back({key, std::span<const int64_t>(integers)});
    } else if (of_keys.integers && read_integers(sources.keys.cells, naturals)) {
      columns.push_back({key, std::span<const uint64_t>(naturals)});
    } else {
      columns.push_back({key, std::span<const std::string>(sources.keys.cells)});
    }
  } else {
    if (numbers.empty()) {  // rows that are in no file
      numbers.resize(labels.size());
      std::iota(numbers.begin(), numbers.end(), int64_t{0});
    } else {
      names = names_of_files(sources.keys.files, of_keys.files);
      columns.push_back({"file", std::span<const std::string>(names)});
    }
    columns.push_back({"row", std::span<const int64_t>(numbers)});
  }
  columns.push_back(probability);
  if (sources.count_unlabelled() < static_cast<int64_t>(labels.size()))
    columns.push_back({"label", std::span<const float>(labels)});
  return reader::write_columns(files, path, columns);
}

}  // namespace recmill::train
