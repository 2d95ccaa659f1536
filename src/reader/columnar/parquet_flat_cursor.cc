// SPDX-License-Identifier: Apache-2.0
#include "reader/columnar/parquet_flat_cursor.h"

#include <arrow/type_traits.h>
#include <parquet/column_reader.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <type_traits>

#include "reader/arrow/arrow_files.h"
#include "reader/row/number_text.h"

namespace recmill::reader {
namespace {

/// Rows that are decoded at once: values and levels stay in the first-level cache.
constexpr int64_t kRowsAtOnce = 2048;

/// `Value` is what the column's bits mean: the physical type, or an unsigned one of its width.
template <typename Physical, typename Value>
class FlatCursor final : public FieldCursor {
  using Stored = typename Physical::c_type;
  static_assert(sizeof(Stored) == sizeof(Value));

 public:
  FlatCursor(std::shared_ptr<parquet::ColumnReader> pages, const BoundColumn& column, CellKind kind,
             std::string where)
      : pages_(std::static_pointer_cast<parquet::TypedColumnReader<Physical>>(std::move(pages))),
        optional_(pages_->descr()->max_definition_level() > 0),
        column_(column),
        kind_(kind),
        where_(std::move(where)) {}

  Status read(int64_t rows, ColumnCells& cells) override {
    return without_exceptions(where_, [&]() -> Status {
      make_room(rows, cells);
      values_done_ = 0;
      for (int64_t done = 0; done < rows;) {
        int64_t present = 0;
        const int64_t count =
            pages_->ReadBatch(std::min(rows - done, kRowsAtOnce), levels_, nullptr,
                              reinterpret_cast<Stored*>(values_for(cells)), &present);
        if (count <= 0 || (!optional_ && present != count)) return ends_early();
        if (!take(done, count, present, cells)) {
          return Status::Failed(where_ + ": is damaged behind row " + std::to_string(row_) +
                                ": levels and values do not agree");
        }
        row_ += count;
        done += count;
      }
      if (kind_ == CellKind::id) cells.ids.ids.resize(static_cast<size_t>(values_done_));
      return {};
    });
  }

  Status skip(int64_t rows) override {
    return without_exceptions(where_, [&]() -> Status {
      while (rows > 0) {
        const int64_t count = pages_->Skip(rows);
        if (count <= 0) return ends_early();
        row_ += count;
        rows -= count;
      }
      return {};
    });
  }

 private:
  Status ends_early() const {
    return Status::Failed(where_ + ": ends after " + std::to_string(row_) +
                          " rows, before the footer says");
  }

  // Vectors that have the size already, as those of the last slice have, are not zeroed again.
  void make_room(int64_t rows, ColumnCells& cells) const {
    const auto size = static_cast<size_t>(rows);
    cells.bad.clear();
    switch (kind_) {
      case CellKind::id:
        cells.ids.offsets.resize(size + 1);
        cells.ids.offsets[0] = 0;
        cells.ids.ids.resize(size);
        cells.ids.weights.clear();
        return;
      case CellKind::group:
        return cells.groups.resize(size);
      case CellKind::time:
        return cells.times.resize(size);
      default:
        return cells.numbers.resize(size);
    }
  }

  /// Where pages are decoded to: ids of 64 bits straight to their place.
  Value* values_for(ColumnCells& cells) {
    if constexpr (std::is_same_v<Value, uint64_t>) {
      if (kind_ == CellKind::id) return cells.ids.ids.data() + values_done_;
    }
    return values_;
  }

  /// Puts `count` rows, of which `present` have a value, at row `at` of `cells`. False where levels
  /// say of more or fewer rows that they have one.
  bool take(int64_t at, int64_t count, int64_t present, ColumnCells& cells) {
    switch (kind_) {
      case CellKind::id:
        return take_ids(at, count, present, cells.ids);
      case CellKind::group:
        return take_whole(at, count, present, cells.groups, cells);
      case CellKind::time:
        if (!take_whole(at, count, present, cells.times, cells)) return false;
        if constexpr (std::is_same_v<Value, uint64_t>)
          note_large_times(at, count, present == count, cells);
        return true;
      default:
        if (present == count) {
          convert(count, cells.numbers.data() + at);
        } else if (spread(count, cells.numbers.data() + at) != present) {
          return false;
        }
        // Integers are finite.
        if (std::is_floating_point_v<Value> || !may_be_missing(column_)) {
          check_numbers(at, count, column_, cells);
        }
        return true;
    }
  }

  template <typename Whole>
  bool take_whole(int64_t at, int64_t count, int64_t present, std::vector<Whole>& to,
                  ColumnCells& cells) const {
    convert(present, to.data() + at);
    if (present == count) return true;
    if (std::accumulate(levels_, levels_ + count, int64_t{0}) != present) return false;
    int64_t next = present;
    for (int64_t i = count - 1; i >= 0; --i) to[at + i] = levels_[i] != 0 ? to[at + --next] : 0;
    for (int64_t i = 0; i < count; ++i) {
      if (levels_[i] == 0) cells.note_bad(at + i, no_value());
    }
    return true;
  }

  /// Unsigned seconds that 63 bits do not hold.
  void note_large_times(int64_t at, int64_t count, bool all, ColumnCells& cells) const {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t time = cells.times[static_cast<size_t>(at + i)];
      if (time >= 0 || !(all || levels_[i] != 0)) continue;
      cells.note_bad(at + i,
                     not_a(std::to_string(static_cast<uint64_t>(time)), "a time (unix seconds)"));
    }
  }

  template <typename T>
  void convert(int64_t count, T* to) const {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(values_[i]);
  }

  /// Missing values come between those that are there. No branch: which are missing is random.
  /// Returns how many are there.
  int64_t spread(int64_t count, float* to) const {
    constexpr uint32_t kMissing = std::bit_cast<uint32_t>(std::numeric_limits<float>::quiet_NaN());
    int64_t next = 0;
    for (int64_t i = 0; i < count; ++i) {
      const auto level = static_cast<uint32_t>(levels_[i]);  // 0 or 1
      const auto value = std::bit_cast<uint32_t>(static_cast<float>(values_[next]));
      to[i] = std::bit_cast<float>((value & (0 - level)) | (kMissing & (level - 1)));
      next += level;
    }
    return next;
  }

  bool take_ids(int64_t at, int64_t count, int64_t present, IdColumn& ids) {
    if (values_for_is_scratch()) convert(present, ids.ids.data() + values_done_);
    int64_t* out = ids.offsets.data() + at + 1;
    int64_t offset = values_done_;
    values_done_ += present;
    if (present == count) {
      for (int64_t i = 0; i < count; ++i) out[i] = ++offset;
    } else {
      for (int64_t i = 0; i < count; ++i) out[i] = offset += levels_[i];
    }
    return offset == values_done_;
  }
  static constexpr bool values_for_is_scratch() { return !std::is_same_v<Value, uint64_t>; }

  const std::shared_ptr<parquet::TypedColumnReader<Physical>> pages_;
  const bool optional_;
  const BoundColumn column_;
  const CellKind kind_;
  const std::string where_;
  int64_t row_ = 0;                     // of the row group
  int64_t values_done_ = 0;             // ids of this read()
  int16_t levels_[kRowsAtOnce];         // 1: there is a value
  Value values_[kRowsAtOnce + 1] = {};  // those that are there, one behind the other
};

template <typename Physical, typename Value>
std::unique_ptr<FieldCursor> make(std::shared_ptr<parquet::ColumnReader> pages,
                                  const BoundColumn& column, CellKind kind, std::string where) {
  return std::make_unique<FlatCursor<Physical, Value>>(std::move(pages), column, kind,
                                                       std::move(where));
}

}  // namespace

std::unique_ptr<FieldCursor> open_flat_cursor(parquet::RowGroupReader& row_group, int leaf,
                                              const arrow::DataType& type,
                                              const BoundColumn& column, CellKind kind,
                                              std::string where) {
  const parquet::ColumnDescriptor& stored = *row_group.metadata()->schema()->Column(leaf);
  if (stored.max_repetition_level() > 0 || stored.max_definition_level() > 1) return nullptr;
  if (!column.spec.missing.empty()) return nullptr;
  const bool floating = type.id() == arrow::Type::FLOAT || type.id() == arrow::Type::DOUBLE;
  if (!arrow::is_integer(type.id()) && !(floating && kind == CellKind::number)) return nullptr;
  const bool is_unsigned = arrow::is_unsigned_integer(type.id());
  const auto open = [&](auto made) {
    return made(row_group.Column(leaf), column, kind, std::move(where));
  };
  switch (stored.physical_type()) {
    case parquet::Type::INT32:
      return is_unsigned ? open(make<parquet::Int32Type, uint32_t>)
                         : open(make<parquet::Int32Type, int32_t>);
    case parquet::Type::INT64:
      return is_unsigned ? open(make<parquet::Int64Type, uint64_t>)
                         : open(make<parquet::Int64Type, int64_t>);
    case parquet::Type::FLOAT:
      return open(make<parquet::FloatType, float>);
    case parquet::Type::DOUBLE:
      return open(make<parquet::DoubleType, double>);
    default:
      return nullptr;
  }
}

}  // namespace recmill::reader
