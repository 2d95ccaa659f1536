// SPDX-License-Identifier: Apache-2.0
#include "reader/fast_text_parser.h"

#include <bit>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reader/fast_text_parser.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "base/hash.h"

HWY_BEFORE_NAMESPACE();
namespace recmill::reader::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Bit i: byte i of the 64 bytes at `p` equals the byte in every lane of `wanted`.
template <class D>
uint64_t EqualBytes64(D d, const char* p, hn::Vec<D> wanted) {
  uint64_t mask = 0;
  const auto* bytes = reinterpret_cast<const uint8_t*>(p);
  for (size_t i = 0; i < 64; i += hn::Lanes(d)) {
    uint8_t bits[8] = {};
    hn::StoreMaskBits(d, hn::Eq(hn::LoadU(d, bytes + i), wanted), bits);
    uint64_t word;
    std::memcpy(&word, bits, 8);
    mask |= word << i;
  }
  return mask;
}

// Writes the offsets of the delimiters of a row to `ends`, which has room for `expected` + 72, and
// returns their number: more than `expected` where there is a quote or a delimiter too many.
size_t FindDelimiters(const TextLayout& layout, const char* row, uint32_t size, size_t expected,
                      uint32_t* ends) {
  const hn::CappedTag<uint8_t, 64> d;
  const auto delimiter = hn::Set(d, static_cast<uint8_t>(layout.delimiter));
  const auto quote = hn::Set(d, static_cast<uint8_t>(layout.quote));
  size_t found = 0;
  for (uint32_t at = 0; at < size; at += 64) {
    const uint64_t inside = size - at >= 64 ? ~uint64_t{0} : (uint64_t{1} << (size - at)) - 1;
    if (layout.quote != 0 && (EqualBytes64(d, row + at, quote) & inside) != 0) return expected + 1;
    uint64_t mask = EqualBytes64(d, row + at, delimiter) & inside;
    // Eight at a time, the last ones beyond the end: a count cannot be foretold, whether it is
    // above eight mostly can.
    const size_t count = hwy::PopCount(mask);
    for (size_t done = 0; done < count; done += 8) {
      for (size_t i = 0; i < 8; ++i, mask &= mask - 1) {
        ends[found + done + i] = at + static_cast<uint32_t>(std::countr_zero(mask));
      }
    }
    found += count;
    if (found > expected) return found;
  }
  return found;
}

// Eight digits at most, as a number; anything else sets `bad`. `size` in [1, 8].
HWY_INLINE uint64_t DecimalWord(const char* p, size_t size, bool& bad) {
  uint64_t word;
  std::memcpy(&word, p, 8);
  word = (word ^ 0x3030303030303030u) << (64 - 8 * size);  // leading digits become 0
  bad |= (((word + 0x7676767676767676u) | word) & 0x8080808080808080u) != 0;
  word = (word * 10 + (word >> 8)) & 0x00FF00FF00FF00FFu;
  word = (word * 100 + (word >> 16)) & 0x0000FFFF0000FFFFu;
  return (word * 10000 + (word >> 32)) & 0xFFFFFFFFu;
}

// One branch, hardly ever taken the other way: whether a cell is empty or has a sign cannot be
// foretold.
HWY_INLINE float Number(const char* p, size_t size, bool& bad) {
  const size_t sign = size > 0 && *p == '-';
  const size_t digits = size - sign;
  bool other = digits - 1 > 7;  // 0 too
  const uint64_t magnitude = DecimalWord(p + sign, other ? 8 : digits, other);
  if (HWY_UNLIKELY(other && size != 0)) {
    const auto parsed = parse_number({p, size});
    bad |= !parsed.ok();
    return parsed.ok() ? *parsed : 0;
  }
  constexpr auto kMissing = std::bit_cast<uint32_t>(std::numeric_limits<float>::quiet_NaN());
  const uint32_t value =
      std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude))) |
      static_cast<uint32_t>(sign << 31);
  return std::bit_cast<float>(size == 0 ? kMissing : value);
}

uint64_t IntegerId(const char* p, size_t size, bool& bad) {
  if (size == 0) return 0;
  if (size <= 16) {
    bool other = false;
    const size_t high = size > 8 ? size - 8 : 0;
    uint64_t value = DecimalWord(p + high, size - high, other);
    if (high > 0) value += DecimalWord(p, high, other) * 100000000u;
    if (!other) return value;
  }
  const auto parsed = parse_id(IdText::integer, {p, size});
  bad |= !parsed.ok();
  return parsed.ok() ? *parsed : 0;
}

using Bytes16 = hn::FixedTag<uint8_t, 16>;

// Sixteen hexadecimal digits at most; other characters set high bits in `bad`.
HWY_INLINE uint64_t HexId(const char* p, size_t size, hn::Vec<Bytes16>& bad) {
  const Bytes16 d;
  // Lane j of the window at `size` is j - (16 - size), or above 127 where that is negative.
  alignas(16) static constexpr uint8_t kRight[32] = {
      240, 241, 242, 243, 244, 245, 246, 247, 248, 249, 250, 251, 252, 253, 254, 255,
      0,   1,   2,   3,   4,   5,   6,   7,   8,   9,   10,  11,  12,  13,  14,  15};
  alignas(16) static constexpr uint8_t kReverse[16] = {14,  12,  10,  8,   6,   4,   2,   0,
                                                       128, 128, 128, 128, 128, 128, 128, 128};
  const auto text = hn::LoadU(d, reinterpret_cast<const uint8_t*>(p));
  const auto digit = hn::Sub(text, hn::Set(d, '0'));
  const auto letter = hn::Sub(hn::Or(text, hn::Set(d, 0x20)), hn::Set(d, 'a'));
  const auto is_digit = hn::Eq(hn::Min(digit, hn::Set(d, 9)), digit);
  const auto is_letter = hn::Eq(hn::Min(letter, hn::Set(d, 5)), letter);
  const auto from_letter =
      hn::IfThenElse(is_letter, hn::Add(letter, hn::Set(d, 10)), hn::Set(d, 0x80));
  const auto value = hn::IfThenElse(is_digit, digit, from_letter);
  const auto right = hn::TableLookupBytesOr0(value, hn::LoadU(d, kRight + size));
  bad = hn::Or(bad, right);
  const hn::FixedTag<uint16_t, 8> d16;
  const auto pairs = hn::BitCast(d16, right);
  const auto bytes = hn::Or(hn::ShiftLeft<4>(pairs), hn::ShiftRight<8>(pairs));
  const auto joined = hn::TableLookupBytesOr0(hn::BitCast(d, bytes), hn::Load(d, kReverse));
  return hn::GetLane(hn::BitCast(hn::FixedTag<uint64_t, 2>(), joined));
}

// The ids of a run of columns that have one id or none a row.
template <typename ParseId>
HWY_INLINE void SingleIds(const ColumnRun& run, const char* row, const uint32_t* ends,
                          int64_t index, ParsedPiece& piece, ParseId parse) {
  for (int i = 0; i < run.count; ++i) {
    const uint32_t begin = ends[run.first + i - 1] + 1;
    const size_t size = ends[run.first + i] - begin;
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

// One row, cells known. False where the plain parser has to look at it.
bool ParseCells(const FastLayout& layout, const char* row, const uint32_t* ends, int64_t index,
                ParsedPiece& piece, RowValues& values) {
  bool bad = false;
  auto bad_hex = hn::Zero(Bytes16());
  using Kind = ColumnRun::Kind;
  for (const ColumnRun& run : layout.runs) {
    switch (run.kind) {
      case Kind::ignore:
        break;
      case Kind::label: {
        const uint32_t begin = ends[run.first - 1] + 1;
        const size_t size = ends[run.first] - begin;
        piece.batch->labels[piece.first + index] = Number(row + begin, size, bad);
        bad |= size == 0;
        break;
      }
      case Kind::dense:
        for (int i = 0; i < run.count; ++i) {
          const uint32_t begin = ends[run.first + i - 1] + 1;
          piece.dense[run.target + i][index] =
              Number(row + begin, ends[run.first + i] - begin, bad);
        }
        break;
      case Kind::hex:
        SingleIds(run, row, ends, index, piece, [&](const char* p, size_t size) HWY_ATTR {
          bad |= size > 16;
          return HexId(p, size > 16 ? 16 : size, bad_hex);
        });
        break;
      case Kind::integer:
        SingleIds(run, row, ends, index, piece,
                  [&](const char* p, size_t size) { return IntegerId(p, size, bad); });
        break;
      case Kind::text:
        SingleIds(run, row, ends, index, piece, [&](const char* p, size_t size) {
          return hash_bytes({p, size});
        });
        break;
      case Kind::plain:
        bad |= !PlainCells(layout, run, row, ends, index, piece, values);
        break;
    }
  }
  const auto high = hn::And(bad_hex, hn::Set(Bytes16(), 0x80));
  return !bad && hn::AllTrue(Bytes16(), hn::Eq(high, hn::Zero(Bytes16())));
}

int64_t ParseRows(const FastLayout& fast, const char* text, std::span<const TextRow> rows,
                  ParsedPiece& piece) {
  const TextLayout& layout = *fast.layout;
  const size_t delimiters = layout.columns.size() - 1;
  std::vector<uint32_t> places(delimiters + 73);
  places[0] = ~uint32_t{0};  // one before the first cell
  uint32_t* const ends = places.data() + 1;
  RowValues values;
  values.dense.resize(layout.schema.dense.size());
  values.ids.resize(layout.schema.ids.size());
  values.weights.resize(layout.schema.ids.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + 4 < rows.size()) {
      for (uint32_t line = 0; line < 256; line += 64) {
        hwy::Prefetch(text + rows[i + 4].begin + line);
      }
    }
    const char* const row = text + rows[i].begin;
    const uint32_t size = rows[i].size;
    const bool ascii_end = size == 0 || static_cast<signed char>(row[size - 1]) >= 0;
    if (ascii_end && FindDelimiters(layout, row, size, delimiters, ends) == delimiters) {
      ends[delimiters] = size;
      if (ParseCells(fast, row, ends, static_cast<int64_t>(i), piece, values)) continue;
    }
    piece.forget(static_cast<int64_t>(i));
    if (!parse_row(layout, {row, size}, values).ok()) return static_cast<int64_t>(i);
    piece.store(static_cast<int64_t>(i), values);
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
  if (spec.role == ColumnRole::label) return Kind::label;
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
                        ParsedPiece& piece) {
  return HWY_DYNAMIC_DISPATCH(ParseRows)(layout, text, rows, piece);
}

}  // namespace recmill::reader
#endif  // HWY_ONCE
