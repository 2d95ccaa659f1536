// SPDX-License-Identifier: Apache-2.0
#include "kernels/distinct_rows/gpu_distinct_rows.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

namespace recmill::kernels {

static_assert(sizeof(gpu::Source) == sizeof(LookupSource) &&
              offsetof(gpu::Source, feature) == offsetof(LookupSource, feature) &&
              offsetof(gpu::Source, slice) == offsetof(LookupSource, slice));

namespace {

int64_t parts_of(int64_t count, int64_t part) {
  return (count + part - 1) / part;
}

/// One feature's lookups, cut along its slices.
class ListedFeatureParts {
 public:
  explicit ListedFeatureParts(const GpuFeatureBags& of) : of_(of) {}

  int64_t lookups_of(int slice) const {
    return offset(of_.slices.begins[slice + 1]) - offset(of_.slices.begins[slice]);
  }
  /// Appends the blocks of a slice whose lookups begin at `place` of the order of summation.
  void add_blocks(int slice, int64_t place, int64_t feature,
                  std::vector<gpu::ListedSamples>& blocks) const {
    const int64_t first = of_.slices.begins[slice], last = of_.slices.begins[slice + 1];
    for (int64_t begin = first; begin < last; begin += gpu::kListedSamples) {
      const int64_t end = std::min<int64_t>(begin + gpu::kListedSamples, last);
      const int64_t before = offset(begin) - offset(first);
      if (offset(begin) == offset(end)) continue;
      blocks.push_back({begin, end, static_cast<u32>(place + before), static_cast<i32>(feature),
                        of_.slices.first + slice});
    }
  }

 private:
  int64_t offset(int64_t sample) const {
    return of_.host.bags.samples == 0 ? 0 : of_.host.bags.offsets[sample];
  }
  const GpuFeatureBags& of_;
};

/// In the order of summation: slice by slice, within it feature by feature. Between tables any
/// order will do.
std::vector<gpu::ListedSamples> list_samples(std::span<const GpuTableLookups> tables) {
  std::vector<ListedFeatureParts> features;
  int slices = 0;
  for (const GpuTableLookups& table : tables) {
    for (const GpuFeatureBags& feature : table.features) {
      RECMILL_CHECK(features.empty() || slices == feature.slices.count());
      slices = feature.slices.count();
      features.emplace_back(feature);
    }
  }
  std::vector<gpu::ListedSamples> blocks;
  int64_t place = 0;
  for (int slice = 0; slice < slices; ++slice) {
    for (size_t f = 0; f < features.size(); ++f) {
      features[f].add_blocks(slice, place, static_cast<int64_t>(f), blocks);
      place += features[f].lookups_of(slice);
    }
  }
  return blocks;
}

std::vector<gpu::ListedFeature> list_features(std::span<const GpuTableLookups> tables) {
  std::vector<gpu::ListedFeature> features;
  u64 first_key = 0;
  int64_t first_lookup = 0;
  for (const GpuTableLookups& table : tables) {
    RECMILL_CHECK(table.features.size() <= std::numeric_limits<u16>::max());
    for (size_t f = 0; f < table.features.size(); ++f) {
      const GpuFeatureBags& of = table.features[f];
      gpu::ListedFeature& feature = features.emplace_back();
      feature.offsets = of.offsets;
      feature.rows = of.rows;
      feature.weights = of.weights;
      feature.first_key = first_key;
      feature.first_lookup = static_cast<u32>(first_lookup);
      feature.number = static_cast<u16>(f);
      feature.pooled = of.host.pooling != Pooling::none;
      feature.mean = of.host.pooling == Pooling::mean;
      first_lookup += of.host.bags.lookups();
    }
    first_key += static_cast<u64>(table.rows);
  }
  return features;
}

std::vector<gpu::ListedTable> list_tables(std::span<const GpuTableLookups> tables) {
  std::vector<gpu::ListedTable> listed;
  gpu::ListedTable next = {};
  for (const GpuTableLookups& table : tables) {
    next.lookups = table.lookups();
    next.weighted = next.mean = 0;
    for (const GpuFeatureBags& feature : table.features) {
      next.weighted |= feature.weights != nullptr;
      next.mean |= feature.host.pooling == Pooling::mean;
    }
    listed.push_back(next);
    next.first_key += static_cast<u64>(table.rows);
    next.first += next.lookups;
    next.first_tile += parts_of(next.lookups, gpu::kSortTile);
    next.first_feature += static_cast<i32>(table.features.size());
  }
  return listed;
}

std::vector<gpu::TableTile> list_tiles(std::span<const gpu::ListedTable> tables) {
  std::vector<gpu::TableTile> tiles;
  for (size_t t = 0; t < tables.size(); ++t)
    for (int64_t part = 0; part < parts_of(tables[t].lookups, gpu::kSortTile); ++part)
      tiles.push_back({static_cast<i32>(t), static_cast<i32>(part)});
  return tiles;
}

/// What the sizes of a finder's arrays follow from.
struct FoundSize {
  int64_t lookups = 0, tables = 0;
  int64_t tiles = 0;  // of tables
  bool weighted = false, mean = false;
};

/// Bytes of a finder's buffers, in the order of reserve_memory().
std::array<int64_t, 14> sizes_of(const FoundSize& of, RowKeys keys) {
  const int64_t key = keys == RowKeys::wide ? sizeof(u64) : sizeof(u32);
  const int64_t tiles = parts_of(of.lookups, gpu::kSortTile);
  const auto lookups = [&](int64_t bytes) { return of.lookups * bytes; };
  return {lookups(key),
          lookups(key),
          lookups(sizeof(u32)),
          lookups(sizeof(u32)),
          lookups(sizeof(gpu::Source)),
          tiles * gpu::kDigits * int64_t{sizeof(u32)},
          gpu::kDigits * int64_t{sizeof(u32)},
          of.tiles * int64_t{sizeof(u32)},
          lookups(sizeof(i64)),
          lookups(sizeof(i64)) + of.tables * int64_t{sizeof(i64)},
          lookups(sizeof(gpu::Source)),
          of.weighted ? lookups(sizeof(float)) : 0,
          of.mean ? lookups(sizeof(float)) : 0,
          of.tables * int64_t{sizeof(i64)}};
}

int64_t tiles_of(std::span<const int64_t> table_lookups) {
  int64_t tiles = 0;
  for (const int64_t lookups : table_lookups) tiles += parts_of(lookups, gpu::kSortTile);
  return tiles;
}

uint64_t rows_of_all(std::span<const int64_t> table_rows) {
  uint64_t all = 0;
  for (const int64_t rows : table_rows) all += static_cast<uint64_t>(rows);
  return all;
}

}  // namespace

RowKeys row_keys(std::span<const int64_t> table_rows) {
  return rows_of_all(table_rows) <= uint64_t{1} << 32 ? RowKeys::narrow : RowKeys::wide;
}

int64_t GpuTableLookups::lookups() const {
  int64_t lookups = 0;
  for (const GpuFeatureBags& feature : features) lookups += feature.host.bags.lookups();
  return lookups;
}

GpuDistinctRowsFinder::GpuDistinctRowsFinder(Gpu& gpu, std::vector<GpuKernel> kernels, RowKeys keys)
    : gpu_(gpu), kernels_(std::move(kernels)), keys_(keys) {
  RECMILL_CHECK(kernels_.size() == kDistinctSteps.size());
}

GpuBytes GpuDistinctRowsFinder::need_of_batch(const GpuLookupsSize& batch) {
  StagedArrays arrays;
  arrays.add<gpu::ListedFeature>(batch.features);
  // A slice's last block of a feature may have fewer samples.
  arrays.add<gpu::ListedSamples>(batch.features *
                                 (batch.samples / gpu::kListedSamples + batch.slices));
  arrays.add<gpu::ListedTable>(std::ssize(batch.lookups));
  arrays.add<gpu::TableTile>(tiles_of(batch.lookups));
  return arrays.need();
}

GpuBytes GpuDistinctRowsFinder::need(const GpuLookupsSize& batch, RowKeys keys) {
  const int64_t lookups = std::accumulate(batch.lookups.begin(), batch.lookups.end(), int64_t{0});
  const FoundSize size{lookups, std::ssize(batch.lookups), tiles_of(batch.lookups), batch.weighted,
                       batch.mean};
  GpuBytes all;
  for (const int64_t bytes : sizes_of(size, keys)) all.device += reserved_bytes(bytes);
  return all;
}

Status GpuDistinctRowsFinder::stage(std::span<const GpuTableLookups> tables,
                                    GpuLookups& batch) const {
  const auto listed = list_tables(tables);
  std::vector<int64_t> table_rows;
  for (const GpuTableLookups& table : tables) table_rows.push_back(table.rows);
  RECMILL_CHECK(keys_ == RowKeys::wide || row_keys(table_rows) == RowKeys::narrow);
  const uint64_t rows = rows_of_all(table_rows);
  batch.key_bits_ = rows == 0 ? 0 : std::bit_width(rows - 1);
  batch.lookups_ = listed.empty() ? 0 : listed.back().first + listed.back().lookups;
  if (batch.lookups_ > std::numeric_limits<int32_t>::max())
    return Status::Failed("a batch of " + std::to_string(batch.lookups_) +
                          " lookups, of which a GPU takes at most 2147483647");
  batch.weighted_ = std::ranges::any_of(listed, &gpu::ListedTable::weighted);
  batch.mean_ = std::ranges::any_of(listed, &gpu::ListedTable::mean);
  const auto features = list_features(tables);
  const auto samples = list_samples(tables);
  const auto tiles = list_tiles(listed);
  StagedArrays& arrays = batch.arrays_;
  arrays.clear();
  batch.features_ = arrays.add<gpu::ListedFeature>(std::ssize(features));
  batch.samples_ = arrays.add<gpu::ListedSamples>(std::ssize(samples));
  batch.tables_ = arrays.add<gpu::ListedTable>(std::ssize(listed));
  batch.tiles_ = arrays.add<gpu::TableTile>(std::ssize(tiles));
  RECMILL_RETURN_IF_ERROR(arrays.allocate(gpu_, "lookups of a batch"));
  std::ranges::copy(features, arrays.host(batch.features_).begin());
  std::ranges::copy(samples, arrays.host(batch.samples_).begin());
  std::ranges::copy(listed, arrays.host(batch.tables_).begin());
  std::ranges::copy(tiles, arrays.host(batch.tiles_).begin());
  return {};
}

Status GpuDistinctRowsFinder::reserve_memory(const GpuLookups& batch) {
  const auto sizes = sizes_of(
      {batch.lookups_, batch.tables_.count, batch.tiles_.count, batch.weighted_, batch.mean_},
      keys_);
  GpuBuffer* const buffers[] = {&sorted_keys_[0],
                                &sorted_keys_[1],
                                &sorted_numbers_[0],
                                &sorted_numbers_[1],
                                &sources_,
                                &in_tiles_,
                                &digits_,
                                &heads_,
                                &found_.rows,
                                &found_.begins,
                                &found_.sources,
                                &found_.weights,
                                &found_.counts,
                                &found_.counted};
  static_assert(std::size(buffers) == std::tuple_size_v<std::remove_const_t<decltype(sizes)>>);
  for (size_t b = 0; b < sizes.size(); ++b)
    RECMILL_RETURN_IF_ERROR(
        reserve(*buffers[b], static_cast<size_t>(sizes[b]), gpu_, "distinct rows of a batch"));
  return {};
}

gpu::DistinctArguments GpuDistinctRowsFinder::arguments(const GpuLookups& batch) const {
  const StagedArrays& arrays = batch.arrays_;
  gpu::DistinctArguments of = {};
  of.features = arrays.device(batch.features_);
  of.samples = arrays.device(batch.samples_);
  of.tables = arrays.device(batch.tables_);
  of.tiles = arrays.device(batch.tiles_);
  of.table_count = static_cast<i32>(batch.tables_.count);
  of.sources = sources_.address<gpu::Source>();
  of.lookups = batch.lookups_;
  of.from = {sorted_keys_[1].address<void>(), sorted_numbers_[1].address<u32>()};
  of.to = {sorted_keys_[0].address<void>(), sorted_numbers_[0].address<u32>()};
  of.in_tiles = in_tiles_.address<u32>();
  of.digits = digits_.address<u32>();
  of.heads = heads_.address<u32>();
  of.found = {found_.rows.address<i64>(),
              found_.begins.address<i64>(),
              found_.sources.address<gpu::Source>(),
              found_.weights.address<float>(),
              found_.counts.address<float>(),
              found_.counted.address<i64>()};
  return of;
}

Status GpuDistinctRowsFinder::launch(DistinctStep step, int64_t blocks,
                                     const gpu::DistinctArguments& arguments, GpuStream& stream) {
  if (blocks == 0) return {};
  const Grid grid{{static_cast<unsigned>(blocks)}, {gpu::kDistinctThreads}};
  return gpu_.launch(kernels_[static_cast<size_t>(step)], grid, arguments, stream);
}

// By `key_bits` of the keys; what is sorted last is `from` at the end.
Status GpuDistinctRowsFinder::sort(const GpuLookups& batch, gpu::DistinctArguments& arguments,
                                   GpuStream& stream) {
  const int64_t tiles = parts_of(batch.lookups_, gpu::kSortTile);
  std::swap(arguments.from, arguments.to);  // the lookups as they are listed
  for (int shift = 0; tiles > 0 && shift < batch.key_bits_; shift += gpu::kDigitBits) {
    arguments.shift = shift;
    RECMILL_RETURN_IF_ERROR(launch(DistinctStep::count_digits, tiles, arguments, stream));
    RECMILL_RETURN_IF_ERROR(launch(DistinctStep::place_digits, gpu::kDigits / gpu::kWarpsOfDistinct,
                                   arguments, stream));
    RECMILL_RETURN_IF_ERROR(launch(DistinctStep::sort_by_digit, tiles, arguments, stream));
    std::swap(arguments.from, arguments.to);
  }
  return {};
}

Status GpuDistinctRowsFinder::run(GpuLookups& batch, GpuStream& stream) {
  RECMILL_RETURN_IF_ERROR(reserve_memory(batch));
  gpu::DistinctArguments of = arguments(batch);
  RECMILL_RETURN_IF_ERROR(launch(DistinctStep::list_lookups, batch.samples_.count, of, stream));
  RECMILL_RETURN_IF_ERROR(sort(batch, of, stream));
  RECMILL_RETURN_IF_ERROR(launch(DistinctStep::count_rows, batch.tiles_.count, of, stream));
  RECMILL_RETURN_IF_ERROR(launch(DistinctStep::place_rows,
                                 parts_of(batch.tables_.count, gpu::kWarpsOfDistinct), of, stream));
  RECMILL_RETURN_IF_ERROR(launch(DistinctStep::list_rows, batch.tiles_.count, of, stream));
  found_.tables.clear();
  const auto tables = batch.arrays_.host(batch.tables_);
  for (size_t t = 0; t < tables.size(); ++t) {
    const int64_t first = tables[t].first;
    found_.tables.push_back(
        {of.found.rows + first, of.found.begins + first + t, of.found.sources + first,
         tables[t].weighted != 0 ? of.found.weights + first : nullptr,
         tables[t].mean != 0 ? of.found.counts + first : nullptr, of.found.counted + t});
  }
  return {};
}

}  // namespace recmill::kernels
