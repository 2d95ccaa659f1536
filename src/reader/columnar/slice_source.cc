// SPDX-License-Identifier: Apache-2.0
#include "reader/columnar/slice_source.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <numeric>

#include "base/key_text.h"
#include "reader/columnar/key_column.h"
#include "reader/time_boundary.h"

namespace recmill::reader {
namespace {

std::vector<size_t> first_numbers(size_t count) {
  std::vector<size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), size_t{0});
  return numbers;
}

size_t most_bad(const SliceRule& rule) {
  if (rule.on_bad_row == OnBadRow::fail) return 1;
  return static_cast<size_t>(std::max<int64_t>(rule.bad_row_limit, 0)) + 1;
}

}  // namespace

Result<SliceRule> SliceRule::make(const DataOptions& options, Subset subset,
                                  const ColumnarSchema& schema) {
  SliceRule rule;
  RECMILL_ASSIGN_OR_RETURN(rule.split, RowSplit::make(options.split, subset));
  rule.on_bad_row = options.on_bad_row;
  rule.bad_row_limit = options.bad_row_limit;
  rule.window = options.shuffle.window;
  rule.format = options.format;
  rule.scored = options.scored;
  if (rule.split.keeps_all() || rule.split.by() == SplitKind::fraction) return rule;
  const bool by_time = rule.split.by() == SplitKind::time;
  if (!by_time && rule.split.column().empty()) return rule;
  const auto decides = [&](const BoundColumn& column) {
    return by_time ? column.spec.role == ColumnRole::time : column.spec.name == rule.split.column();
  };
  const auto found = std::ranges::find_if(schema.columns, decides);
  if (found == schema.columns.end()) {
    RECMILL_CHECK(by_time, rule.split.column());  // bind_columns() binds the key
    return RowSplit::no_time_column();
  }
  rule.column = static_cast<int>(found - schema.columns.begin());
  return rule;
}

std::vector<size_t> SliceRule::looks_at(const ColumnarSchema& schema) const {
  const bool whole_row = !split.keeps_all() && split.by() == SplitKind::hash && column < 0;
  if (on_bad_row == OnBadRow::skip || whole_row) return first_numbers(schema.columns.size());
  if (column >= 0) return {static_cast<size_t>(column)};
  return {};
}

std::string SliceRule::fingerprint(const ColumnarSchema& schema) const {
  KeyText key;
  key.add("slices").add(window).add(split.fingerprint()).add(name_of(on_bad_row));
  key.add(on_bad_row == OnBadRow::skip ? bad_row_limit : 0);
  for (const BoundColumn& bound : schema.columns) {
    key.add(fingerprint_of(bound.spec)).add(bound.label.fingerprint());
  }
  return std::move(key).text();
}

SliceSource::SliceSource(std::vector<BoundFile> files, SliceRule rule, ThreadPool& pool)
    : decoder_(std::move(files), most_bad(rule), pool),
      rule_(std::move(rule)),
      pool_(pool),
      all_columns_(first_numbers(decoder_.schema().columns.size())),
      slices_(cut_row_groups(decoder_.group_rows(), rule_.window)) {}

const std::string& SliceSource::path_of(const RowSlice& slice) const {
  return decoder_.files()[decoder_.file_of(slice)].file->path();
}

int64_t SliceSource::rows() const {
  return std::accumulate(slices_.begin(), slices_.end(), int64_t{0},
                         [](int64_t sum, const RowSlice& slice) { return sum + slice.kept; });
}

Status SliceSource::find_rows(Files& files, const std::string& cache, int64_t limit) {
  files_ = &files;
  if (rule_.split.lacks_boundary()) {
    RECMILL_ASSIGN_OR_RETURN(const int64_t boundary, find_boundary(files, cache));
    rule_.split = rule_.split.with_boundary(boundary);
  }
  if (!rule_.keeps_all()) {
    RECMILL_ASSIGN_OR_RETURN(const auto indexes, index(rule_, files, cache));
    auto slice = slices_.begin();
    for (const RowIndex& index : indexes) {
      bad_rows_ += static_cast<int64_t>(index.bad.size());
      for (size_t i = 0; i < index.blocks.size(); ++i) {
        const bool last = i + 1 == index.blocks.size();
        (slice++)->kept = (last ? index.kept : index.blocks[i + 1].kept) - index.blocks[i].kept;
      }
    }
    std::erase_if(slices_, [](const RowSlice& s) { return s.kept == 0; });
  }
  if (slices_.empty() && !rule_.split.keeps_all()) return rule_.split.empty_side();
  take_first(limit > 0 ? limit : std::numeric_limits<int64_t>::max());
  return {};
}

void SliceSource::take_first(int64_t limit) {
  int64_t position = 0;
  for (RowSlice& slice : slices_) {
    slice.kept = std::min(slice.kept, limit - position);
    if (rule_.keeps_all()) slice.rows = slice.kept;
    slice.position = position;
    position += slice.kept;
  }
  std::erase_if(slices_, [](const RowSlice& slice) { return slice.kept == 0; });
}

void SliceSource::keep_only(std::span<const RowRange> ranges) {
  std::vector<RowSlice> kept;
  int64_t position = 0;
  auto range = ranges.begin();
  for (RowSlice& slice : slices_) {
    while (range != ranges.end() && range->first + range->count <= slice.position) ++range;
    if (range == ranges.end()) break;
    if (slice.position < range->first) continue;
    RECMILL_CHECK(slice.position + slice.kept <= range->first + range->count, path_of(slice));
    slice.position = position;
    position += slice.kept;
    kept.push_back(slice);
  }
  slices_ = std::move(kept);
}

// The indexes of all files, with a block for each of their slices.
Result<std::vector<RowIndex>> SliceSource::index(const SliceRule& rule, Files& files,
                                                 const std::string& cache) {
  std::vector<RowIndex> indexes(decoder_.files().size());
  const std::string fingerprint = rule.fingerprint(schema());
  for (size_t begin = 0, end = 0; begin < slices_.size(); begin = end) {
    while (end < slices_.size() &&
           decoder_.file_of(slices_[end]) == decoder_.file_of(slices_[begin])) {
      ++end;
    }
    const Slices slices = Slices(slices_).subspan(begin, end - begin);
    const std::string& path = path_of(slices[0]);
    RowIndex& index = indexes[decoder_.file_of(slices[0])];
    RECMILL_ASSIGN_OR_RETURN(
        index, find_or_scan(files, cache, path, fingerprint, [&] { return scan(rule, slices); }));
    if (index.blocks.size() != slices.size()) {
      return Status::Failed(path + ": changed while it was read");
    }
  }
  return indexes;
}

Result<RowIndex> SliceSource::scan(const SliceRule& rule, Slices slices) {
  const std::vector<size_t> columns = rule.looks_at(schema());
  RowIndex index;
  for (const RowSlice& slice : slices) {
    RECMILL_RETURN_IF_ERROR(decoder_.decode(slice, columns));
    const std::vector<BadRow> bad = decoder_.bad_rows();
    const int64_t number = decoder_.number_of(slice);
    for (const BadRow& row : bad) {
      if (rule.on_bad_row == OnBadRow::fail) return row.status;
      const auto before = static_cast<int64_t>(index.bad.size());
      if (before >= rule.bad_row_limit) {
        return too_many_bad_rows(row.status, before, rule.bad_row_limit);
      }
      index.bad.push_back(number + row.row);
    }
    index.blocks.push_back({0, number, index.kept});
    index.kept += static_cast<int64_t>(kept_rows(rule, slice, bad).size());
    index.rows += slice.rows;
  }
  return index;
}

// Of the slice that was decoded last: the rows that are not bad and on the side of the subset.
std::vector<uint32_t> SliceSource::kept_rows(const SliceRule& rule, const RowSlice& slice,
                                             const std::vector<BadRow>& bad) const {
  std::vector<uint8_t> keeps(static_cast<size_t>(slice.rows), 1);
  if (!rule.split.keeps_all()) {
    const std::string file = std::filesystem::path(path_of(slice)).filename().string();
    const int64_t number = decoder_.number_of(slice);
    const auto keep = [&](int64_t row) {
      const auto at = static_cast<size_t>(row);
      if (rule.split.by() == SplitKind::fraction)
        return rule.split.keeps_number(file, number + row);
      if (rule.split.by() == SplitKind::hash) {
        return rule.split.keeps_key(decoder_.key_of(rule.column, at));
      }
      return rule.split.keeps_time(decoder_.times(static_cast<size_t>(rule.column))[at]);
    };
    pool_.run_ranges(slice.rows, 512, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) keeps[static_cast<size_t>(row)] = keep(row);
    });
  }
  for (const BadRow& row : bad) keeps[static_cast<size_t>(row.row)] = 0;
  std::vector<uint32_t> rows;
  for (size_t row = 0; row < keeps.size(); ++row) {
    if (keeps[row] != 0) rows.push_back(static_cast<uint32_t>(row));
  }
  return rows;
}

// Replaces `times` by those of a slice, rows `skipped` of the file left out.
Status SliceSource::read_times(const RowSlice& slice, std::span<const int64_t> skipped,
                               std::vector<int64_t>& times) {
  const auto column = static_cast<size_t>(rule_.column);
  RECMILL_RETURN_IF_ERROR(decoder_.decode(slice, std::span(&column, 1)));
  if (rule_.on_bad_row == OnBadRow::fail) {
    for (const BadRow& bad : decoder_.bad_rows()) return bad.status;
  }
  times.clear();
  const int64_t number = decoder_.number_of(slice);
  auto next = std::ranges::lower_bound(skipped, number);
  for (int64_t row = 0; row < slice.rows; ++row) {
    if (next != skipped.end() && *next == number + row) {
      ++next;
    } else {
      times.push_back(decoder_.times(column)[static_cast<size_t>(row)]);
    }
  }
  return {};
}

Result<int64_t> SliceSource::find_boundary(Files& files, const std::string& cache) {
  SliceRule all = rule_;
  all.split = {};
  const auto search = [&]() -> Result<int64_t> {
    std::vector<RowIndex> indexes(decoder_.files().size());
    if (!all.keeps_all()) {
      RECMILL_ASSIGN_OR_RETURN(indexes, index(all, files, cache));
    }
    std::vector<int64_t> times;
    return time_boundary(rule_.split.eval_fraction(), [&](const auto& take) -> Status {
      for (const RowSlice& slice : slices_) {
        RECMILL_RETURN_IF_ERROR(read_times(slice, indexes[decoder_.file_of(slice)].bad, times));
        take(times);
      }
      return {};
    });
  };
  std::vector<std::string> paths;
  for (const BoundFile& bound : decoder_.files()) paths.push_back(bound.file->path());
  return find_time_boundary(files, cache, paths, all.fingerprint(schema()),
                            rule_.split.eval_fraction(), search);
}

Status SliceSource::load(const RowSlice& slice, std::span<const uint32_t> order,
                         ColumnBatch& batch) {
  RECMILL_RETURN_IF_ERROR(decoder_.decode(slice, all_columns_));
  const std::vector<BadRow> bad = decoder_.bad_rows();
  if (!bad.empty() && rule_.on_bad_row == OnBadRow::fail) return bad[0].status;
  std::vector<uint32_t> rows(order.begin(), order.end());
  if (!rule_.keeps_all()) {
    std::vector<uint32_t> kept = kept_rows(rule_, slice, bad);
    if (static_cast<int64_t>(kept.size()) < slice.kept) {
      return Status::Failed(path_of(slice) + ": changed while it was read");
    }
    kept.resize(static_cast<size_t>(slice.kept));
    for (uint32_t& row : rows) row = kept[row];
    if (rows.empty()) rows = std::move(kept);
  }
  decoder_.hand_over(rows, batch);
  batch.keys = {};
  return rule_.scored.numbers ? append_keys(slice, rows, batch.samples, batch.keys) : Status();
}

KeySource SliceSource::key_source() const {
  KeySource source;
  for (const BoundFile& bound : decoder_.files()) source.files.push_back(bound.file->path());
  source.integers = rule_.key_is_integer;
  return source;
}

// Of the first `count` of `rows` of a slice, or of all of it.
Status SliceSource::append_keys(const RowSlice& slice, const std::vector<uint32_t>& rows,
                                int64_t count, RowKeys& keys) {
  const auto file = static_cast<int64_t>(decoder_.file_of(slice));
  const std::string& key = rule_.scored.key;
  if (!key.empty() && file != key_file_) {
    RECMILL_ASSIGN_OR_RETURN(key_cells_,
                             read_key_column(rule_.format, path_of(slice), key, *files_));
    key_file_ = file;
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t number =
        decoder_.number_of(slice) + (rows.empty() ? i : int64_t{rows[static_cast<size_t>(i)]});
    keys.files.push_back(static_cast<int32_t>(file));
    keys.numbers.push_back(number);
    if (key.empty()) continue;
    if (number >= std::ssize(key_cells_))
      return Status::Failed(path_of(slice) + ": changed while it was read");
    keys.cells.push_back(key_cells_[static_cast<size_t>(number)]);
  }
  return {};
}

}  // namespace recmill::reader
