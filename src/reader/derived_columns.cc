// SPDX-License-Identifier: Apache-2.0
#include "reader/derived_columns.h"

#include <algorithm>
#include <utility>

namespace recmill::reader {
namespace {

bool is_derived(const ColumnSpec& column) {
  return !column.from.empty() || column.part != TimePart::none;
}

class DerivedColumnsReader final : public Reader {
 public:
  DerivedColumnsReader(const std::vector<ColumnSpec>& columns, std::unique_ptr<Reader> files)
      : files_(std::move(files)), schema_(files_->schema()) {
    for (const ColumnSpec& column : columns) {
      if (!is_derived(column)) continue;
      const bool dense = column.role == ColumnRole::dense;
      (dense ? dense_ : ids_).push_back(column.part);
      (dense ? schema_.dense : schema_.ids).push_back(column.name);
    }
  }

  const DataSchema& schema() const override { return schema_; }
  Result<int64_t> rows() override { return files_->rows(); }
  ReaderCounts counts() const override { return files_->counts(); }
  KeySource key_source() const override { return files_->key_source(); }
  Result<std::vector<int64_t>> starts() override { return files_->starts(); }
  Result<bool> keep_only(std::span<const RowRange> ranges) override {
    return files_->keep_only(ranges);
  }

  Status read(int64_t epoch, int64_t first, int64_t count, ColumnBatch& batch) override {
    RECMILL_RETURN_IF_ERROR(files_->read(epoch, first, count, batch));
    for (const TimePart part : dense_) {
      auto& column = batch.dense.emplace_back();
      for (const int64_t time : batch.times) {
        column.push_back(static_cast<float>(part_of_time(part, time)));
      }
    }
    for (const TimePart part : ids_) {
      IdColumn& column = batch.ids.emplace_back();
      column.offsets.assign(1, 0);
      for (const int64_t time : batch.times) {
        column.ids.push_back(static_cast<uint64_t>(part_of_time(part, time)));
        column.offsets.push_back(static_cast<int64_t>(column.ids.size()));
      }
    }
    return {};
  }

 private:
  const std::unique_ptr<Reader> files_;
  DataSchema schema_;
  std::vector<TimePart> dense_, ids_;
};

Status wrong(const ColumnSpec& column, const std::string& why) {
  return Status::BadRequest("data.columns: column '" + column.name + "' " + why);
}

Status check(const DataOptions& options, const ColumnSpec& column) {
  if (column.from.empty())
    return wrong(column, "has a part, but no from: the time column whose part it is");
  if (column.part == TimePart::none) return wrong(column, "has from, but no part: hour or weekday");
  if (column.role != ColumnRole::dense && column.role != ColumnRole::id) {
    return wrong(column, "is derived, so its role must be dense or id");
  }
  if (!column.list_separator.empty() || !column.weight_separator.empty() || !column.missing.empty())
    return wrong(column, "is derived, so it has no separators and no missing values");
  const auto is_time = [&](const ColumnSpec& other) {
    return other.role == ColumnRole::time && other.name == column.from;
  };
  if (std::ranges::none_of(options.columns, is_time)) {
    return wrong(column,
                 "is derived from '" + column.from + "', which is not a column of role time");
  }
  const auto same_name = [&](const ColumnSpec& other) { return other.name == column.name; };
  if (std::ranges::count_if(options.columns, same_name) > 1) {
    return Status::BadRequest("data.columns: listed twice: " + column.name);
  }
  return {};
}

}  // namespace

int64_t part_of_time(TimePart part, int64_t time) {
  constexpr int64_t kDay = 86400, kHour = 3600, kThursday = 3;  // 1970-01-01 was one
  const int64_t second = (time % kDay + kDay) % kDay;
  if (part == TimePart::hour) return second / kHour;
  const int64_t day = time / kDay - (time % kDay < 0 ? 1 : 0);
  return ((day + kThursday) % 7 + 7) % 7;
}

Result<DataOptions> without_derived_columns(const DataOptions& options) {
  for (const ColumnSpec& column : options.columns) {
    if (is_derived(column)) RECMILL_RETURN_IF_ERROR(check(options, column));
  }
  DataOptions files = options;
  std::erase_if(files.columns, is_derived);
  return files;
}

Result<std::unique_ptr<Reader>> with_derived_columns(const DataOptions& options,
                                                     std::unique_ptr<Reader> files) {
  const DataSchema& schema = files->schema();
  bool any = false;
  for (const ColumnSpec& column : options.columns) {
    if (!is_derived(column)) continue;
    any = true;
    if (!schema.has_time) {
      return wrong(column, "is derived from a time, and the data has no time column");
    }
    if (std::ranges::count(schema.dense, column.name) + std::ranges::count(schema.ids, column.name))
      return wrong(column, "is derived, and the data has a column of that name");
  }
  if (!any) return files;
  return std::unique_ptr<Reader>(new DerivedColumnsReader(options.columns, std::move(files)));
}

}  // namespace recmill::reader
