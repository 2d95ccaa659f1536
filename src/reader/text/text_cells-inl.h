// SPDX-License-Identifier: Apache-2.0
// The cells of a row of text, and the values of cells: one at a time, or those of a column in
// kGroup rows. Text is readable for kTextPadding bytes before and after what is given here.
#if defined(RECMILL_READER_TEXT_CELLS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RECMILL_READER_TEXT_CELLS_INL_H_
#undef RECMILL_READER_TEXT_CELLS_INL_H_
#else
#define RECMILL_READER_TEXT_CELLS_INL_H_
#endif

#include <hwy/highway.h>

#include <bit>
#include <cstring>
#include <limits>

#include "reader/row/plain_text_parser.h"

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
// returns their number: more than `expected` where there is a quote or a delimiter too many. A
// delimiter is one character.
size_t FindDelimiters(const TextLayout& layout, const char* row, uint32_t size, size_t expected,
                      uint32_t* ends) {
  const hn::CappedTag<uint8_t, 64> d;
  const auto delimiter = hn::Set(d, static_cast<uint8_t>(layout.delimiter[0]));
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

float OtherNumber(std::string_view cell, bool& bad) {
  if (is_no_number(cell)) return std::numeric_limits<float>::quiet_NaN();
  const auto parsed = parse_number(cell);
  bad |= !parsed.ok();
  return parsed.ok() ? *parsed : 0;
}

// One branch, hardly ever taken the other way: whether a cell is empty or has a sign cannot be
// foretold.
HWY_INLINE float Number(const char* p, size_t size, bool& bad) {
  const size_t sign = size > 0 && *p == '-';
  const size_t digits = size - sign;
  bool other = digits - 1 > 7;  // 0 too
  const uint64_t magnitude = DecimalWord(p + sign, other ? 8 : digits, other);
  if (HWY_UNLIKELY(other && size != 0)) return OtherNumber({p, size}, bad);
  constexpr auto kMissing = std::bit_cast<uint32_t>(std::numeric_limits<float>::quiet_NaN());
  const uint32_t value =
      std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude))) |
      static_cast<uint32_t>(sign << 31);
  return std::bit_cast<float>(size == 0 ? kMissing : value);
}

// `size` becomes 0 where there is no id.
uint64_t IntegerId(const char* p, size_t& size, bool& bad) {
  if (size == 0) return 0;
  if (size <= 16) {
    bool other = false;
    const size_t high = size > 8 ? size - 8 : 0;
    uint64_t value = DecimalWord(p + high, size - high, other);
    if (high > 0) value += DecimalWord(p, high, other) * 100000000u;
    if (!other) return value;
  }
  const std::string_view cell(p, size);
  if (is_no_number(cell)) return size = 0;
  const auto parsed = parse_id(IdText::integer, cell);
  bad |= !parsed.ok();
  return parsed.ok() ? *parsed : 0;
}

using Bytes16 = hn::FixedTag<uint8_t, 16>;

// The values of hexadecimal digits; 128 or more for other characters.
template <class D, class V>
HWY_INLINE V HexDigits(D d, V text) {
  const auto digit = hn::Sub(text, hn::Set(d, '0'));
  const auto letter = hn::Sub(hn::Or(text, hn::Set(d, 0x20)), hn::Set(d, 'a'));
  const auto is_digit = hn::Eq(hn::Min(digit, hn::Set(d, 9)), digit);
  const auto is_letter = hn::Eq(hn::Min(letter, hn::Set(d, 5)), letter);
  const auto from_letter =
      hn::IfThenElse(is_letter, hn::Add(letter, hn::Set(d, 10)), hn::Set(d, 0x80));
  return hn::IfThenElse(is_digit, digit, from_letter);
}

// Sixteen hexadecimal digits at most; other characters set high bits in `bad`.
HWY_INLINE uint64_t HexId(const char* p, size_t size, hn::Vec<Bytes16>& bad) {
  const Bytes16 d;
  // Lane j of the window at `size` is j - (16 - size), or above 127 where that is negative.
  alignas(16) static constexpr uint8_t kRight[32] = {
      240, 241, 242, 243, 244, 245, 246, 247, 248, 249, 250, 251, 252, 253, 254, 255,
      0,   1,   2,   3,   4,   5,   6,   7,   8,   9,   10,  11,  12,  13,  14,  15};
  alignas(16) static constexpr uint8_t kReverse[16] = {14,  12,  10,  8,   6,   4,   2,   0,
                                                       128, 128, 128, 128, 128, 128, 128, 128};
  const auto value = HexDigits(d, hn::LoadU(d, reinterpret_cast<const uint8_t*>(p)));
  const auto right = hn::TableLookupBytesOr0(value, hn::LoadU(d, kRight + size));
  bad = hn::Or(bad, right);
  const hn::FixedTag<uint16_t, 8> d16;
  const auto pairs = hn::BitCast(d16, right);
  const auto bytes = hn::Or(hn::ShiftLeft<4>(pairs), hn::ShiftRight<8>(pairs));
  const auto joined = hn::TableLookupBytesOr0(hn::BitCast(d, bytes), hn::Load(d, kReverse));
  return hn::GetLane(hn::BitCast(hn::FixedTag<uint64_t, 2>(), joined));
}

// Rows whose cells in a column are parsed together, each in a lane.
constexpr size_t kGroup = 8;
using Words = hn::CappedTag<uint64_t, kGroup>;

// Byte r + i of `word` in lane i.
HWY_INLINE hn::Vec<Words> BytesFrom(Words d, uint64_t word, size_t r) {
  const auto shift = hn::ShiftLeft<3>(hn::Iota(d, r));
  return hn::And(hn::Shr(hn::Set(d, word), shift), hn::Set(d, 0xFF));
}

// Makes `size` bytes of each lane, 8 at most, its highest ones, and those below 0.
template <class D, class V>
HWY_INLINE V AlignRight(D d, V word, V size) {
  const auto half = hn::Sub(hn::Set(d, 32), hn::ShiftLeft<2>(size));
  return hn::Shl(hn::Shl(word, half), half);  // a shift by 64 is not defined
}

// Up to eight digits in each lane, those before them 0, as a number; others set high bits in `bad`.
HWY_INLINE hn::Vec<Words> DecimalWords(Words d, hn::Vec<Words> digits, hn::Vec<Words>& bad) {
  const hn::Repartition<uint8_t, Words> d8;
  const hn::Repartition<uint16_t, Words> d16;
  const hn::Repartition<uint32_t, Words> d32;
  const auto above_nine = hn::SaturatedSub(hn::BitCast(d8, digits), hn::Set(d8, 9));
  bad = hn::Or(bad, hn::BitCast(d, above_nine));
  auto pairs = hn::BitCast(d16, digits);
  pairs = hn::Add(hn::Mul(pairs, hn::Set(d16, 10)), hn::ShiftRight<8>(pairs));
  auto fours = hn::BitCast(d32, hn::And(pairs, hn::Set(d16, 0xFF)));
  fours = hn::Add(hn::Mul(fours, hn::Set(d32, 100)), hn::ShiftRight<16>(fours));
  fours = hn::And(fours, hn::Set(d32, 0xFFFF));
  const auto high = hn::MulEven(fours, hn::Set(d32, 10000));
  return hn::Add(high, hn::ShiftRight<32>(hn::BitCast(d, fours)));
}

// The numbers of a column, in cells of 8 characters at most. False where one is not an integer.
HWY_INLINE bool Numbers(const uint64_t* words, uint64_t sizes, float* out) {
  const Words d;
  const hn::Repartition<int32_t, Words> di;
  const hn::Rebind<uint32_t, Words> narrow;
  const auto zero = hn::Zero(d), one = hn::Set(d, 1);
  constexpr auto kMissing = std::bit_cast<uint32_t>(std::numeric_limits<float>::quiet_NaN());
  auto bad = zero;
  for (size_t r = 0; r < kGroup; r += hn::Lanes(d)) {
    const auto size = BytesFrom(d, sizes, r);
    auto word = hn::LoadU(d, words + r);
    const auto missing = hn::Eq(size, zero);
    const auto minus = hn::Eq(hn::And(word, hn::Set(d, 0xFF)), hn::Set(d, '-'));
    const auto sign = hn::IfThenZeroElse(missing, hn::IfThenElseZero(minus, one));
    const auto digits = hn::Sub(size, sign);
    bad = hn::Or(bad, hn::IfThenElseZero(hn::Eq(digits, zero), sign));
    word = hn::Xor(hn::Shr(word, hn::ShiftLeft<3>(sign)), hn::Set(d, 0x3030303030303030u));
    const auto magnitude = DecimalWords(d, AlignRight(d, word, digits), bad);
    const auto value =
        hn::BitCast(d, hn::ConvertTo(hn::Repartition<float, Words>(), hn::BitCast(di, magnitude)));
    const auto number =
        hn::IfThenElse(missing, hn::Set(d, kMissing), hn::Or(value, hn::ShiftLeft<31>(sign)));
    hn::StoreU(hn::BitCast(hn::Rebind<float, Words>(), hn::TruncateTo(narrow, number)),
               hn::Rebind<float, Words>(), out + r);
  }
  return hn::AllTrue(d, hn::Eq(bad, zero));
}

// Up to eight hexadecimal digits at the high end of each lane, those before them 0; other
// characters set high bits in `bad`.
HWY_INLINE hn::Vec<Words> HexWords(Words d, const uint64_t* text, hn::Vec<Words> size,
                                   hn::Vec<Words>& bad) {
  const hn::Repartition<uint8_t, Words> d8;
  const hn::Repartition<uint16_t, Words> d16;
  alignas(16) static constexpr uint8_t kReverse[16] = {6,  4,  2,  0, 128, 128, 128, 128,
                                                       14, 12, 10, 8, 128, 128, 128, 128};
  const auto digits = HexDigits(d8, hn::LoadU(d8, reinterpret_cast<const uint8_t*>(text)));
  const auto right = AlignRight(d, hn::BitCast(d, digits), size);
  bad = hn::Or(bad, right);
  const auto pairs = hn::BitCast(d16, right);
  const auto bytes = hn::BitCast(d8, hn::Or(hn::ShiftLeft<4>(pairs), hn::ShiftRight<8>(pairs)));
  return hn::BitCast(d, hn::TableLookupBytesOr0(bytes, hn::LoadDup128(d8, kReverse)));
}

}  // namespace recmill::reader::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
