// SPDX-License-Identifier: Apache-2.0
#include "reader/row/number_text.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>

namespace recmill::reader {
namespace {

// A cell as an error shows it: short, and without control characters.
std::string shown(std::string_view cell) {
  std::string text;
  for (const char c : cell.substr(0, 40)) text += static_cast<unsigned char>(c) < 32 ? '?' : c;
  return "'" + text + (cell.size() > 40 ? "...'" : "'");
}

std::string_view trimmed(std::string_view cell) {
  const size_t begin = cell.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return cell.substr(begin, cell.find_last_not_of(" \t") + 1 - begin);
}

// Without a '+' that no other sign follows.
std::string_view without_plus(std::string_view text) {
  const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+';
  return plus ? text.substr(1) : text;
}

// `word` is in lower case.
bool is_word(std::string_view text, std::string_view word) {
  return std::ranges::equal(text, word, [](char c, char expected) {
    return (c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c) == expected;
  });
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// 0.DIGITS times 10 to the power `point`; no leading zeros.
struct Decimal {
  bool negative = false;
  std::string digits;
  int64_t point = 0;
};

// The exponent of a number; one that no 64 bits hold is as far as any that they do.
std::optional<int64_t> parse_exponent(std::string_view text) {
  constexpr int64_t kFar = int64_t{1} << 40;
  text = without_plus(text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument) return {};
  if (error != std::errc()) return text.starts_with('-') ? -kFar : kFar;
  return std::clamp(value, -kFar, kFar);
}

std::optional<Decimal> parse_decimal(std::string_view text) {
  Decimal decimal;
  if (text.starts_with('-') || text.starts_with('+')) {
    decimal.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const size_t exponent = std::min(text.find_first_of("eE"), text.size());
  const size_t point = std::min(text.find('.'), exponent);
  for (size_t i = 0; i < exponent; ++i) {
    if (i == point) continue;
    if (!is_digit(text[i])) return {};
    decimal.digits += text[i];
  }
  if (decimal.digits.empty()) return {};
  decimal.point = static_cast<int64_t>(point);
  if (exponent < text.size()) {
    const auto power = parse_exponent(text.substr(exponent + 1));
    if (!power) return {};
    decimal.point += *power;
  }
  const size_t zeros = std::min(decimal.digits.find_first_not_of('0'), decimal.digits.size());
  decimal.digits.erase(0, zeros);
  decimal.point -= static_cast<int64_t>(zeros);
  return decimal;
}

// The digits before the point, where 64 bits hold them; `exact`: the others are 0.
std::optional<uint64_t> whole_part(const Decimal& decimal, bool& exact) {
  const auto size = static_cast<int64_t>(decimal.digits.size());
  const int64_t before = std::clamp<int64_t>(decimal.point, 0, size);
  exact = decimal.digits.find_first_not_of('0', static_cast<size_t>(before)) == std::string::npos;
  uint64_t value = 0;
  for (int64_t i = 0; i < decimal.point && size > 0; ++i) {
    const auto digit =
        static_cast<uint64_t>(i < size ? decimal.digits[static_cast<size_t>(i)] - '0' : 0);
    if (__builtin_mul_overflow(value, 10u, &value) || __builtin_add_overflow(value, digit, &value))
      return {};
  }
  return value;
}

// Rounded once; beyond what `Real` holds it is 0 or infinite.
template <typename Real>
std::optional<Real> parse_real(std::string_view cell) {
  const std::string_view text = without_plus(trimmed(cell));
  Real value = 0;
  const char* const text_end = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), text_end, value);
  if (error == std::errc() && end == text_end) return value;
  if (error == std::errc::result_out_of_range && end == text_end) {
    const auto decimal = parse_decimal(text);
    if (!decimal) return {};
    const bool small = decimal->point <= 0;
    value = small ? Real{0} : std::numeric_limits<Real>::infinity();
    return decimal->negative ? -value : value;
  }
  if (is_word(text, "true")) return Real{1};
  if (is_word(text, "false")) return Real{0};
  return {};
}

// Takes `count` digits off the front.
std::optional<unsigned> take_digits(std::string_view& text, size_t count) {
  if (text.size() < count || !std::all_of(text.begin(), text.begin() + count, is_digit)) return {};
  unsigned value = 0;
  std::from_chars(text.data(), text.data() + count, value);
  text.remove_prefix(count);
  return value;
}

// Takes one of `characters` off the front.
bool take_one_of(std::string_view& text, std::string_view characters) {
  if (text.empty() || characters.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// Takes HH:MM, or HH:MM:SS with or without a fraction, off the front.
std::optional<int64_t> take_time_of_day(std::string_view& text) {
  const auto hour = take_digits(text, 2);
  if (!hour || *hour > 23 || !take_one_of(text, ":")) return {};
  const auto minute = take_digits(text, 2);
  if (!minute || *minute > 59) return {};
  const int64_t seconds = int64_t{*hour} * 3600 + int64_t{*minute} * 60;
  if (!take_one_of(text, ":")) return seconds;
  const auto second = take_digits(text, 2);
  if (!second || *second > 60) return {};  // 60: a leap second, the next one's beginning
  if (take_one_of(text, ".,")) {
    const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    if (digits == 0) return {};
    text.remove_prefix(digits);
  }
  return seconds + *second;
}

// All of `text` as what a time of day is ahead of UTC.
std::optional<int64_t> parse_offset(std::string_view text) {
  if (text.empty() || text == "Z" || text == "z") return 0;
  const bool behind = text[0] == '-';
  if (!take_one_of(text, "+-")) return {};
  const auto hours = take_digits(text, 2);
  if (!hours || *hours > 23) return {};
  std::optional<unsigned> minutes = 0;
  if (!text.empty()) {
    take_one_of(text, ":");
    minutes = take_digits(text, 2);
  }
  if (!minutes || *minutes > 59 || !text.empty()) return {};
  const int64_t seconds = int64_t{*hours} * 3600 + int64_t{*minutes} * 60;
  return behind ? -seconds : seconds;
}

std::optional<int64_t> parse_iso_time(std::string_view text) {
  namespace chrono = std::chrono;
  const auto year = take_digits(text, 4);
  if (!year || !take_one_of(text, "-")) return {};
  const auto month = take_digits(text, 2);
  if (!month || !take_one_of(text, "-")) return {};
  const auto day = take_digits(text, 2);
  if (!day) return {};
  const chrono::year_month_day date{chrono::year(static_cast<int>(*year)), chrono::month(*month),
                                    chrono::day(*day)};
  if (!date.ok()) return {};
  const int64_t days = chrono::sys_days(date).time_since_epoch().count();
  if (text.empty()) return days * 86400;
  if (!take_one_of(text, "Tt ")) return {};
  const auto seconds = take_time_of_day(text);
  const auto offset = seconds ? parse_offset(text) : std::nullopt;
  if (!offset) return {};
  return days * 86400 + *seconds - *offset;
}

// A decimal number, rounded down to an integer of 64 bits.
std::optional<int64_t> parse_rounded_down(std::string_view text) {
  const auto decimal = parse_decimal(text);
  bool exact = true;
  const auto whole = decimal ? whole_part(*decimal, exact) : std::nullopt;
  if (!whole) return {};
  constexpr uint64_t kMost = uint64_t{1} << 63;  // below 0
  if (!decimal->negative) {
    if (*whole >= kMost) return {};
    return static_cast<int64_t>(*whole);
  }
  if (*whole > kMost - (exact ? 0 : 1)) return {};
  return static_cast<int64_t>(0 - (*whole + (exact ? 0 : 1)));
}

}  // namespace

Status not_a(std::string_view cell, const char* what) {
  return Status::Failed(shown(cell) + " is not " + what);
}

bool is_no_number(std::string_view cell) {
  const std::string_view text = trimmed(cell);
  return text.empty() || is_word(text, "nan");
}

Result<float> parse_number(std::string_view cell) {
  const auto value = parse_real<float>(cell);
  if (value && std::isfinite(*value)) return *value;
  return not_a(cell, "a finite number");
}

std::optional<double> parse_double(std::string_view cell) {
  return parse_real<double>(cell);
}

std::optional<Whole> parse_whole(std::string_view cell) {
  const std::string_view text = trimmed(cell);
  if (is_word(text, "true") || is_word(text, "false")) return Whole{false, is_word(text, "true")};
  const auto decimal = parse_decimal(text);
  bool exact = false;
  const auto magnitude = decimal ? whole_part(*decimal, exact) : std::nullopt;
  if (!magnitude || !exact) return {};
  return Whole{decimal->negative && *magnitude > 0, *magnitude};
}

Result<int64_t> parse_time(std::string_view cell) {
  const std::string_view text = trimmed(cell);
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size()) return seconds;
  auto time = parse_rounded_down(text);
  if (!time) time = parse_iso_time(text);
  if (time) return *time;
  return not_a(cell, "a time (unix seconds, or ISO 8601)");
}

}  // namespace recmill::reader
