// SPDX-License-Identifier: Apache-2.0
#include "kernels/codegen/testing/gpu_distinct_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kernels/codegen/gpu/gpu_distinct_source.h"
#include "kernels/codegen/testing/test_code.h"
#include "kernels/testing/random_bags.h"

namespace recmill::kernels::codegen {
namespace {

std::vector<GpuKernel> load(Gpu& gpu, RowKeys keys, std::span<const KernelCode> emulated) {
  const auto sources = gpu_distinct_sources(keys, "the tests");
  std::vector<GpuKernel> kernels;
  for (size_t step = 0; step < sources.size(); ++step)
    kernels.push_back(*gpu.load(test_code(sources[step], emulated[step].emulated)));
  return kernels;
}

/// The reference's answer with rows ascending, and nothing of positions.
DistinctRows ascending(const GpuTableLookups& table) {
  std::vector<FeatureBags> features;
  for (const GpuFeatureBags& feature : table.features) features.push_back(feature.host);
  DistinctRows found;
  if (!features.empty())
    distinct_rows_reference({table.rows, features}, table.features[0].slices, found);
  std::vector<int64_t> order(found.rows.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::ranges::sort(order, {}, [&](int64_t i) { return found.rows[i]; });
  DistinctRows sorted;
  sorted.begins.push_back(0);
  for (const int64_t i : order) {
    sorted.rows.push_back(found.rows[i]);
    for (int64_t at = found.begins[i]; at < found.begins[i + 1]; ++at) {
      sorted.sources.push_back(found.sources[at]);
      if (!found.weights.empty()) sorted.weights.push_back(found.weights[at]);
      if (!found.counts.empty()) sorted.counts.push_back(found.counts[at]);
    }
    sorted.begins.push_back(sorted.lookups());
  }
  return sorted;
}

template <class T>
std::vector<T> part(const std::vector<T>& all, int64_t begin, int64_t count) {
  return {all.begin() + begin, all.begin() + begin + count};
}

template <class T>
std::string first_difference(const char* what, const std::vector<T>& found,
                             const std::vector<T>& expected) {
  if (found == expected) return "";
  const auto at = std::ranges::mismatch(found, expected).in1 - found.begin();
  return fmt::format("{} {} of {}, expected {}", what, at, found.size(), expected.size());
}

std::string difference_of(const DistinctRows& found, const DistinctRows& expected) {
  for (const std::string& difference : {first_difference("row", found.rows, expected.rows),
                                        first_difference("begin", found.begins, expected.begins),
                                        first_difference("source", found.sources, expected.sources),
                                        first_difference("weight", found.weights, expected.weights),
                                        first_difference("count", found.counts, expected.counts)})
    if (!difference.empty()) return difference;
  return "";
}

}  // namespace

std::vector<DistinctCase> random_distinct_cases(RowKeys keys, int64_t samples, int64_t longest,
                                                uint64_t seed) {
  const int64_t large = keys == RowKeys::wide ? int64_t{1} << 40 : int64_t{1} << 24;
  std::vector<DistinctCase> cases;
  for (const int64_t rows : {int64_t{1}, int64_t{3}, large, int64_t{1000}, large / 3}) {
    DistinctCase& of = cases.emplace_back();
    of.rows = rows;
    const auto number = static_cast<int64_t>(cases.size());
    for (int64_t f = 0; f < number % 4; ++f) {  // one table has none
      const Pooling pooling[] = {Pooling::sum, Pooling::mean, Pooling::none};
      const BagShape shape{samples, f == 2 ? -1 : longest, rows, (number + f) % 2 == 0, f + 1};
      of.features.push_back(
          {random_bags(shape, seed * 100 + number * 10 + f), pooling[(number + f) % 3]});
    }
  }
  // A table that nobody looks up.
  cases.push_back({large, {{random_bags({samples, 0, large}, seed), Pooling::mean}}});
  return cases;
}

DistinctCase distinct_case_of_two_warps() {
  constexpr int64_t kLookups = 33, kRows = 200;
  SparseFeature bags;
  for (int64_t i = 0; i <= kLookups; ++i) bags.offsets.push_back(i);
  for (int64_t i = 0; i < kLookups; ++i) bags.rows.push_back(i < kLookups - 2 ? 100 + i : 5);
  return {kRows, {{std::move(bags)}}};
}

GpuDistinctRun::GpuDistinctRun(std::span<const KernelCode> kernels, RowKeys keys,
                               const emulation::Turns& turns)
    : gpu_(recmill::testing::test_driver({.turns = turns}), {}),
      stream_(*gpu_.open_stream()),
      finder_(gpu_, load(gpu_, keys, kernels), keys) {}

template <class T>
T* GpuDistinctRun::upload(const std::vector<T>& values) {
  const size_t bytes = values.size() * sizeof(T);
  auto staged = *gpu_.allocate_pinned(bytes, "bags");
  std::ranges::copy(values, staged.as<T>().begin());
  uploaded_.push_back(*gpu_.allocate(bytes, "bags"));
  RECMILL_CHECK(stream_.to_device(uploaded_.back(), staged, bytes).ok());
  RECMILL_CHECK(stream_.synchronize().ok());
  return uploaded_.back().address<T>();
}

template <class T>
std::vector<T> GpuDistinctRun::download(const GpuBuffer& from, int64_t count) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(T);
  auto staged = *gpu_.allocate_pinned(bytes, "what was found");
  RECMILL_CHECK(stream_.to_host(staged, from, bytes).ok());
  RECMILL_CHECK(stream_.synchronize().ok());
  return {staged.as<T>().begin(), staged.as<T>().end()};
}

GpuTableLookups GpuDistinctRun::upload(const DistinctCase& table, const LocalSlices& slices) {
  GpuTableLookups lookups{table.rows};
  for (const DistinctCase::Feature& feature : table.features) {
    RECMILL_CHECK(std::ssize(feature.bags.offsets) == slices.begins.back() + 1);
    lookups.features.push_back(
        {{feature.bags.view(slices.begins.back()), feature.pooling},
         slices,
         upload(feature.bags.offsets),
         upload(feature.bags.rows),
         feature.bags.weights.empty() ? nullptr : upload(feature.bags.weights)});
  }
  return lookups;
}

std::string GpuDistinctRun::difference(std::span<const DistinctCase> tables, int first_slice,
                                       int slices) {
  uploaded_.clear();
  const auto samples = std::ssize(tables[0].features.at(0).bags.offsets) - 1;
  begins_ = slice_begins(samples, slices);
  std::vector<GpuTableLookups> lookups;
  for (const DistinctCase& table : tables) lookups.push_back(upload(table, {first_slice, begins_}));
  Status status = finder_.stage(lookups, batch_);
  if (status.ok()) status = GpuDistinctRowsFinder::send(batch_, stream_);
  if (status.ok()) status = finder_.run(batch_, stream_);
  if (status.ok()) status = stream_.synchronize();
  if (!status.ok()) return status.message();
  int64_t all = 0;
  for (const GpuTableLookups& table : lookups) all += table.lookups();
  const GpuDistinctRowsFinder::Found& found = finder_.found();
  const auto counted = download<int64_t>(found.counted, std::ssize(tables));
  const auto rows = download<int64_t>(found.rows, all);
  const auto begins = download<int64_t>(found.begins, all + std::ssize(tables));
  const auto sources = download<LookupSource>(found.sources, all);
  int64_t first = 0;
  for (size_t t = 0; t < tables.size(); first += lookups[t++].lookups()) {
    const DistinctRows expected = ascending(lookups[t]);
    const int64_t of_table = lookups[t].lookups();
    if (counted[t] != expected.count())
      return fmt::format("table {}: {} rows, not {}", t, counted[t], expected.count());
    DistinctRows of;
    of.rows = part(rows, first, counted[t]);
    of.begins = part(begins, first + static_cast<int64_t>(t), counted[t] + 1);
    of.sources = part(sources, first, of_table);
    if (found.tables[t].weights != nullptr)
      of.weights = part(download<float>(found.weights, first + of_table), first, of_table);
    if (found.tables[t].counts != nullptr)
      of.counts = part(download<float>(found.counts, first + of_table), first, of_table);
    const std::string difference = difference_of(of, expected);
    if (!difference.empty()) return fmt::format("table {}: {}", t, difference);
  }
  return "";
}

}  // namespace recmill::kernels::codegen
