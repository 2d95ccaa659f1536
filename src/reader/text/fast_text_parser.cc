// SPDX-License-Identifier: Apache-2.0
#include "reader/text/fast_text_parser.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reader/text/fast_text_parser.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "base/hash.h"
#include "reader/text/text_cells-inl.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::reader::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The ids of a run of columns that have one id or none a row.
template <typename ParseId>
HWY_INLINE void SingleIds(const ColumnRun& run, const char* row, const uint32_t* ends,
                          int64_t index, ParsedPiece& piece, ParseId parse) {
  for (int i = 0; i < run.count; ++i) {
    const uint32_t begin = ends[run.first + i - 1] + 1;
    size_t size = ends[run.first + i] - begin;
    PieceColumn& column = piece.columns[run.target + i];
    column.ids[column.size] = parse(row + begin, size);
    column.size += size != 0;
    column.ends[index] = column.size;
  }
}

// Cells that the plain parser reads, one at a time; bags among them.
bool PlainCells(const FastLayout& layout, const ColumnRun& run, const char* row,
                const uint32_t* ends, int64_t index, ParsedPiece& piece, RowValues& values) {
  for (int i = run.first; i < run.first + run.count; ++i) {
    const uint32_t begin = ends[i - 1] + 1;
    const TextColumn& column = layout.layout->columns[i];
    if (!parse_cell(column, {row + begin, ends[i] - begin}, values).ok()) return false;
    piece.store_cell(index, column, values);
  }
  return true;
}

// The cells of one row in the columns of a run, one after the other. False where the plain parser
// has to look at the row.
HWY_INLINE bool ParseRun(const FastLayout& layout, const ColumnRun& run, const char* row,
                         const uint32_t* ends, int64_t index, ParsedPiece& piece,
                         RowValues& values) {
  bool bad = false;
  auto bad_hex = hn::Zero(Bytes16());
  using Kind = ColumnRun::Kind;
  switch (run.kind) {
    case Kind::ignore:
      return true;
    case Kind::label: {
      const uint32_t begin = ends[run.first - 1] + 1;
      const size_t size = ends[run.first] - begin;
      float& label = piece.batch->labels[piece.first + index];
      label = Number(row + begin, size, bad);
      return !bad && layout.layout->columns[run.first].label.apply(label);
    }
    case Kind::dense:
      for (int i = 0; i < run.count; ++i) {
        const uint32_t begin = ends[run.first + i - 1] + 1;
        piece.dense[run.target + i][index] = Number(row + begin, ends[run.first + i] - begin, bad);
      }
      return !bad;
    case Kind::hex:
      SingleIds(run, row, ends, index, piece, [&](const char* p, size_t size) HWY_ATTR {
        bad |= size > 16;
        return HexId(p, size > 16 ? 16 : size, bad_hex);
      });
      bad_hex = hn::And(bad_hex, hn::Set(Bytes16(), 0x80));
      return !bad && hn::AllTrue(Bytes16(), hn::Eq(bad_hex, hn::Zero(Bytes16())));
    case Kind::integer:
      SingleIds(run, row, ends, index, piece,
                [&](const char* p, size_t& size) { return IntegerId(p, size, bad); });
      return !bad;
    case Kind::text:
      SingleIds(run, row, ends, index, piece, [&](const char* p, size_t size) {
        return hash_bytes({p, size});
      });
      return true;
    case Kind::plain:
      return PlainCells(layout, run, row, ends, index, piece, values);
  }
  return false;
}

// The offsets of the delimiters of a row, then its size. False where the plain parser has to look
// at it.
bool FindCells(const TextLayout& layout, const char* row, uint32_t size, uint32_t* ends) {
  const size_t delimiters = layout.columns.size() - 1;
  if (size > 0 && static_cast<signed char>(row[size - 1]) < 0) return false;
  if (FindDelimiters(layout, row, size, delimiters, ends) != delimiters) return false;
  ends[delimiters] = size;
  return true;
}

// The first 8 bytes of a column's cells.
struct alignas(64) CellWords {
  uint64_t words[kGroup];
};

// The cells of kGroup rows.
struct CellGroup {
  explicit CellGroup(size_t columns)
      : stride(columns + 72), ends(kGroup * stride), words(columns), sizes(columns) {
    for (size_t r = 0; r < kGroup; ++r) ends[r * stride] = ~uint32_t{0};  // before the first cell
  }
  uint32_t* ends_of(size_t r) { return ends.data() + r * stride + 1; }

  size_t stride;
  std::vector<uint32_t> ends;
  std::vector<CellWords> words;  // [columns]
  std::vector<uint64_t> sizes;   // [columns], a byte for each row; 127 stands for more too
};

bool FindCells(const TextLayout& layout, const char* text, const TextRow* rows, CellGroup& group) {
  const size_t columns = group.sizes.size();
  CellWords* const words = group.words.data();
  for (size_t r = 0; r < kGroup; ++r) {
    const char* const row = text + rows[r].begin;
    uint32_t* const ends = group.ends_of(r);
    if (!FindCells(layout, row, rows[r].size, ends)) return false;
    auto* sizes = reinterpret_cast<uint8_t*>(group.sizes.data()) + r;
    uint32_t begin = 0;
    for (size_t c = 0; c < columns; ++c, sizes += kGroup) {
      const uint32_t end = ends[c];
      std::memcpy(&words[c].words[r], row + begin, 8);
      *sizes = static_cast<uint8_t>(std::min<uint32_t>(end - begin, 127));
      begin = end + 1;
    }
  }
  return true;
}

// The ids of a column of rows `index` and following, in cells of 8 characters at most. False where
// one is not hexadecimal.
HWY_INLINE bool HexIds(const uint64_t* words, uint64_t sizes, int64_t index, PieceColumn& column) {
  const Words d;
  auto bad = hn::Zero(d);
  // In byte r: how many of the cells of rows 0 to r hold an id.
  const uint64_t present = ((sizes + 0x7F7F7F7F7F7F7F7Fu) >> 7) & 0x0101010101010101u;
  const uint64_t counts = present * 0x0101010101010101u;
  const auto before = static_cast<uint64_t>(column.size);
  auto* const ends = reinterpret_cast<uint64_t*>(column.ends + index);
  HWY_ALIGN uint64_t ids[kGroup];
  for (size_t r = 0; r < kGroup; r += hn::Lanes(d)) {
    hn::Store(HexWords(d, words + r, BytesFrom(d, sizes, r), bad), d, ids + r);
    hn::StoreU(hn::Add(BytesFrom(d, counts, r), hn::Set(d, before)), d, ends + r);
  }
  uint64_t* const target = column.ids + before;
  if (counts >> 56 == kGroup) {
    std::copy_n(ids, kGroup, target);
  } else {  // a missing one is written too, where the next one goes
    for (size_t r = 0; r < kGroup; ++r) {
      target[((counts - present) >> (8 * r)) & 0xFF] = ids[r];
    }
  }
  const auto high = hn::And(bad, hn::Set(d, 0x8080808080808080u));
  if (!hn::AllTrue(d, hn::Eq(high, hn::Zero(d)))) return false;
  column.size += static_cast<int64_t>(counts >> 56);
  return true;
}

// One column of a group. False where the cells have to be looked at one by one.
HWY_INLINE bool ParseColumn(const ColumnRun& column, const CellGroup& group, int64_t index,
                            const LabelRule& rule, ParsedPiece& piece) {
  using Kind = ColumnRun::Kind;
  constexpr uint64_t kBytes = 0x0101010101010101u;
  const uint64_t* const words = group.words[column.first].words;
  const uint64_t sizes = group.sizes[column.first];
  if (((sizes + 0x77 * kBytes) & (0x80 * kBytes)) != 0) return false;  // over 8 characters
  switch (column.kind) {
    case Kind::label: {
      const bool none_empty = ((sizes + 0x7F * kBytes) & (0x80 * kBytes)) == 0x80 * kBytes;
      float* const labels = piece.batch->labels.data() + piece.first + index;
      if (!none_empty || !Numbers(words, sizes, labels)) return false;
      return std::all_of(labels, labels + kGroup, [&](float& label) { return rule.apply(label); });
    }
    case Kind::dense:
      return Numbers(words, sizes, piece.dense[column.target] + index);
    case Kind::hex:
      return HexIds(words, sizes, index, piece.columns[column.target]);
    default:
      return false;
  }
}

// kGroup rows from `rows` on. False where one of them has to be looked at alone.
bool ParseGroup(const FastLayout& fast, const char* text, const TextRow* rows, int64_t index,
                CellGroup& group, ParsedPiece& piece, RowValues& values) {
  if (!FindCells(*fast.layout, text, rows, group)) return false;
  for (const ColumnRun& run : fast.runs) {
    for (int i = 0; i < run.count; ++i) {
      const ColumnRun one{run.kind, run.first + i, 1, run.target + i};
      const LabelRule& rule = fast.layout->columns[one.first].label;
      if (ParseColumn(one, group, index, rule, piece)) continue;
      for (size_t r = 0; r < kGroup; ++r) {
        if (!ParseRun(fast, one, text + rows[r].begin, group.ends_of(r),
                      index + static_cast<int64_t>(r), piece, values)) {
          return false;
        }
      }
    }
  }
  return true;
}

// One row. False where parse_row() refuses it.
bool ParseRow(const FastLayout& fast, const char* text, const TextRow& place, int64_t index,
              CellGroup& group, ParsedPiece& piece, RowValues& values) {
  const char* const row = text + place.begin;
  uint32_t* const ends = group.ends_of(0);
  bool parsed = FindCells(*fast.layout, row, place.size, ends);
  for (const ColumnRun& run : fast.runs) {
    parsed = parsed && ParseRun(fast, run, row, ends, index, piece, values);
  }
  if (parsed) return true;
  piece.forget(index);
  if (!parse_row(*fast.layout, {row, place.size}, values).ok()) return false;
  piece.store(index, values);
  return true;
}

int64_t ParseRows(const FastLayout& fast, const char* text, std::span<const TextRow> rows,
                  int64_t first_row, ParsedPiece& piece) {
  const TextLayout& layout = *fast.layout;
  CellGroup group(layout.columns.size());
  RowValues values;
  values.dense.resize(layout.schema.dense.size());
  values.ids.resize(layout.schema.ids.size());
  values.weights.resize(layout.schema.ids.size());
  for (size_t first = 0; first < rows.size(); first += kGroup) {
    const size_t end = std::min(first + kGroup, rows.size());
    for (size_t i = end; i < std::min(end + kGroup, rows.size()); ++i) {
      for (uint32_t line = 0; line < 256; line += 64) {
        hwy::Prefetch(text + rows[i].begin + line);
      }
    }
    const int64_t index = first_row + static_cast<int64_t>(first);
    if (end == first + kGroup &&
        ParseGroup(fast, text, &rows[first], index, group, piece, values)) {
      continue;
    }
    piece.forget(index);
    for (size_t i = first; i < end; ++i) {
      const auto row = static_cast<int64_t>(i);
      if (!ParseRow(fast, text, rows[i], first_row + row, group, piece, values)) return row;
    }
  }
  return static_cast<int64_t>(rows.size());
}

}  // namespace recmill::reader::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace recmill::reader {
namespace {

ColumnRun::Kind kind_of(const TextColumn& column) {
  using Kind = ColumnRun::Kind;
  const ColumnSpec& spec = column.spec;
  if (spec.role == ColumnRole::ignore) return Kind::ignore;
  if (!spec.missing.empty() || !spec.list_separator.empty()) return Kind::plain;
  if (spec.role == ColumnRole::label) return column.label.takes_words() ? Kind::plain : Kind::label;
  if (spec.role == ColumnRole::dense) return Kind::dense;
  if (spec.role != ColumnRole::id) return Kind::plain;
  return spec.id_text == IdText::hex       ? Kind::hex
         : spec.id_text == IdText::integer ? Kind::integer
                                           : Kind::text;
}

}  // namespace

FastLayout::FastLayout(const TextLayout& text_layout) : layout(&text_layout) {
  for (size_t i = 0; i < text_layout.columns.size(); ++i) {
    const TextColumn& column = text_layout.columns[i];
    const auto kind = kind_of(column);
    if (runs.empty() || runs.back().kind != kind) {
      runs.push_back({kind, static_cast<int>(i), 0, column.target});
    }
    ++runs.back().count;
  }
}

HWY_EXPORT(ParseRows);

int64_t parse_rows_fast(const FastLayout& layout, const char* text, std::span<const TextRow> rows,
                        int64_t first, ParsedPiece& piece) {
  return HWY_DYNAMIC_DISPATCH(ParseRows)(layout, text, rows, first, piece);
}

}  // namespace recmill::reader
#endif  // HWY_ONCE
