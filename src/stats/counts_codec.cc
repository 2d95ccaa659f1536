// SPDX-License-Identifier: Apache-2.0
#include "stats/counts_codec.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "device/buffer.h"

namespace recmill::stats {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr int kPeekBits = 57;  // of 64 that are loaded at a byte, whatever bit of it is first

/// Low bits of each row that Elias and Fano's code keeps as they are.
int low_bits(int64_t held, int64_t rows) {
  return held == 0 ? 0 : std::bit_width(static_cast<uint64_t>(rows / held)) - 1;
}

int64_t words(int64_t bits) {
  return (bits + 63) / 64;
}

constexpr uint64_t ones(int bits) {
  return (uint64_t{1} << bits) - 1;
}

/// Bits one after the other, the first the lowest of its word.
class BitWriter {
 public:
  explicit BitWriter(int64_t bits) : words_(static_cast<size_t>(words(bits))) {}
  void put(uint64_t value, int bits) {
    if (bits == 0) return;
    const auto word = static_cast<size_t>(at_ / 64);
    const int shift = static_cast<int>(at_ % 64);
    words_[word] |= value << shift;
    if (shift + bits > 64) words_[word + 1] |= value >> (64 - shift);
    at_ += bits;
  }
  void set(int64_t bit) { words_[static_cast<size_t>(bit / 64)] |= uint64_t{1} << (bit % 64); }
  void append_to(std::vector<std::byte>& bytes) const {
    const auto own = std::as_bytes(std::span(words_));
    bytes.insert(bytes.end(), own.begin(), own.end());
  }

 private:
  std::vector<uint64_t> words_;
  int64_t at_ = 0;
};

/// Bits from anywhere; beyond the end there are zeros.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  /// At least kPeekBits of them.
  uint64_t peek(int64_t bit) const {
    const auto byte = static_cast<size_t>(bit / 8);
    uint64_t word = 0;
    if (byte + sizeof word <= bytes_.size()) [[likely]] {
      std::memcpy(&word, bytes_.data() + byte, sizeof word);
    } else if (byte < bytes_.size()) {
      std::memcpy(&word, bytes_.data() + byte, bytes_.size() - byte);
    }
    return word >> (bit % 8);
  }
  int64_t bits() const { return static_cast<int64_t>(bytes_.size()) * 8; }

 private:
  std::span<const std::byte> bytes_;
};

void put_number(uint64_t value, std::vector<std::byte>& bytes) {
  for (; value >= 128; value >>= 7) bytes.push_back(static_cast<std::byte>(value | 128));
  bytes.push_back(static_cast<std::byte>(value));
}

/// Takes the front of `bytes`; false where there is no number.
bool take_number(std::span<const std::byte>& bytes, uint64_t& value) {
  value = 0;
  for (size_t i = 0; i < bytes.size() && i < 9; ++i) {
    const auto byte = static_cast<uint64_t>(bytes[i]);
    value |= (byte & 127) << (7 * i);
    if (byte >= 128) continue;
    bytes = bytes.subspan(i + 1);
    return true;
  }
  return false;
}

void put_rows(std::span<const int64_t> rows, int64_t of, std::vector<std::byte>& bytes) {
  const auto held = static_cast<int64_t>(rows.size());
  if (held == 0) return;
  const int low = low_bits(held, of);
  BitWriter lows(held * low), highs(held + (of >> low) + 1);
  for (int64_t i = 0; i < held; ++i) {
    lows.put(static_cast<uint64_t>(rows[i]) & ones(low), low);
    highs.set((rows[i] >> low) + i);
  }
  lows.append_to(bytes);
  highs.append_to(bytes);
}

/// Fills a long list in blocks: each element is written once, which resize() would do before.
class ListFiller {
 public:
  ListFiller(int64_t size, std::vector<int64_t>& list) : list_(list) {
    list_.clear();
    list_.reserve(static_cast<size_t>(size));
    ask_for_huge_pages(list_.data(), list_.capacity() * sizeof(int64_t));
  }
  ~ListFiller() { flush(); }
  void push(int64_t value) {
    if (held_ == kBlock) flush();
    block_[held_++] = value;
  }

 private:
  void flush() {
    list_.insert(list_.end(), block_, block_ + held_);
    held_ = 0;
  }
  static constexpr int64_t kBlock = 512;
  std::vector<int64_t>& list_;
  int64_t block_[kBlock];
  int64_t held_ = 0;
};

Status take_rows(std::span<const std::byte> bytes, const ColumnSizes& sizes,
                 std::vector<int64_t>& rows) {
  const int low = low_bits(sizes.hot, sizes.rows);
  const auto low_bytes = static_cast<size_t>(words(sizes.hot * low) * 8);
  const BitReader lows(bytes.first(low_bytes));
  const auto highs = bytes.subspan(low_bytes);
  ListFiller filler(sizes.hot, rows);
  int64_t i = 0, before = -1, low_at = 0;
  for (size_t at = 0; at < highs.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, highs.data() + at, sizeof word);
    for (; word != 0; word &= word - 1, ++i, low_at += low) {
      if (i == sizes.hot) return Status::Failed("it lists more rows than it should");
      const int64_t high = static_cast<int64_t>(at) * 8 + std::countr_zero(word) - i;
      const int64_t row = (high << low) | static_cast<int64_t>(lows.peek(low_at) & ones(low));
      if (row <= before || row >= sizes.rows)
        return Status::Failed("it lists rows that do not ascend or are not in the table");
      filler.push(before = row);
    }
  }
  if (i != sizes.hot) return Status::Failed("it lists fewer rows than it should");
  return {};
}

void put_counts(std::span<const int64_t> counts, int64_t least, std::vector<std::byte>& bytes) {
  int64_t bits = 0;
  for (const int64_t count : counts) bits += count_bits(count - least + 1);
  BitWriter writer(bits);
  for (const int64_t count : counts) {
    const auto value = static_cast<uint64_t>(count - least + 1);
    const int low = std::bit_width(value) - 1;
    writer.put(uint64_t{1} << low, low + 1);
    writer.put(value & ones(low), low);
  }
  writer.append_to(bytes);
}

/// Takes the front of `bytes`.
Status take_counts(std::span<const std::byte>& bytes, const ColumnSizes& sizes,
                   std::vector<int64_t>& counts) {
  const BitReader reader(bytes);
  ListFiller filler(sizes.hot, counts);
  int64_t at = 0;
  uint64_t window = 0;  // the bits from `at` on, so many of them:
  int left = 0;
  for (int64_t i = 0; i < sizes.hot; ++i) {
    int low = std::countr_zero(window);
    if (2 * low + 1 > left) {
      window = reader.peek(at);
      left = kPeekBits;
      low = std::countr_zero(window);
      if (low >= kPeekBits - 1) return Status::Failed("a count is not one");
    }
    const bool loaded = 2 * low + 1 <= left;  // else its second part is loaded where it begins
    const uint64_t second = loaded ? window >> (low + 1) : reader.peek(at + low + 1);
    const auto value = static_cast<int64_t>((uint64_t{1} << low) | (second & ones(low)));
    const int taken = 2 * low + 1;
    at += taken;
    left = loaded ? left - taken : 0;
    window = loaded ? window >> taken : 0;
    const int64_t count = value - 1 + sizes.least;
    if (count >= kMostLookups) return Status::Failed("a count is too large");
    filler.push(count);
  }
  if (words(at) * 64 > reader.bits()) return Status::Failed("its counts are cut short");
  bytes = bytes.subspan(static_cast<size_t>(words(at) * 8));
  return {};
}

/// The numbers that are not 0, each after how many zeros are before it.
void put_sparse(std::span<const int64_t> numbers, std::vector<std::byte>& bytes) {
  const auto held = std::ranges::count_if(numbers, [](int64_t number) { return number != 0; });
  put_number(static_cast<uint64_t>(held), bytes);
  uint64_t zeros = 0;
  for (const int64_t number : numbers) {
    if (number == 0) {
      ++zeros;
      continue;
    }
    put_number(std::exchange(zeros, 0), bytes);
    put_number(static_cast<uint64_t>(number), bytes);
  }
}

Status take_sparse(std::span<const std::byte>& bytes, int64_t length,
                   std::vector<int64_t>& numbers) {
  const auto cut = Status::Failed("its lists are cut short or too long");
  uint64_t held = 0, at = 0;
  if (!take_number(bytes, held)) return cut;
  numbers.assign(static_cast<size_t>(length), 0);
  for (uint64_t i = 0; i < held; ++i, ++at) {
    uint64_t zeros = 0, value = 0;
    if (!take_number(bytes, zeros) || !take_number(bytes, value)) return cut;
    if (zeros >= static_cast<uint64_t>(length) - at) return cut;
    at += zeros;
    if (value == 0 || value >= uint64_t{kMostLookups})
      return Status::Failed("a number in its lists is out of bounds");
    numbers[at] = static_cast<int64_t>(value);
  }
  return {};
}

}  // namespace

int64_t row_list_bytes(int64_t held, int64_t rows) {
  if (held == 0) return 0;
  const int low = low_bits(held, rows);
  return (words(held * low) + words(held + (rows >> low) + 1)) * 8;
}

int64_t most_sparse_bytes(int64_t held, int64_t length, int64_t sum) {
  // A number takes another byte for each factor of 128 that it reaches; few can, of such a sum.
  const auto most = [held](int64_t of) {
    int64_t bytes = held;
    for (of >>= 7; of > 0; of >>= 7) bytes += std::min(held, of);
    return bytes;
  };
  constexpr int64_t kHeldBytes = 9;
  return kHeldBytes + most(length) + most(sum);
}

ColumnSizes sizes_of(const TableCounts& table) {
  ColumnSizes sizes;
  sizes.rows = table.rows;
  sizes.hot = std::ssize(table.hot_rows);
  if (sizes.hot > 0) sizes.least = *std::ranges::min_element(table.hot_counts);
  sizes.ranges = std::ssize(table.range_lookups);
  sizes.tail_counts = std::ssize(table.tail_rows_by_count);
  return sizes;
}

std::vector<std::byte> encode_columns(const TableCounts& table) {
  const ColumnSizes sizes = sizes_of(table);
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<size_t>(row_list_bytes(sizes.hot, sizes.rows)));
  put_rows(table.hot_rows, sizes.rows, bytes);
  put_counts(table.hot_counts, sizes.least, bytes);
  put_sparse(table.range_lookups, bytes);
  put_sparse(table.tail_rows_by_count, bytes);
  return bytes;
}

Status decode_columns(const ColumnSizes& sizes, std::span<const std::byte> bytes,
                      TableCounts& table) {
  const int64_t list_bytes = row_list_bytes(sizes.hot, sizes.rows);
  // A count takes a bit at least: what follows is never asked for more memory than it has bits.
  if (list_bytes + sizes.hot / 8 > std::ssize(bytes)) return Status::Failed("it is cut short");
  const auto list = static_cast<size_t>(list_bytes);
  RECMILL_RETURN_IF_ERROR(take_rows(bytes.first(list), sizes, table.hot_rows));
  bytes = bytes.subspan(list);
  RECMILL_RETURN_IF_ERROR(take_counts(bytes, sizes, table.hot_counts));
  RECMILL_RETURN_IF_ERROR(take_sparse(bytes, sizes.ranges, table.range_lookups));
  RECMILL_RETURN_IF_ERROR(take_sparse(bytes, sizes.tail_counts, table.tail_rows_by_count));
  return bytes.empty() ? Status() : Status::Failed("it is too long");
}

}  // namespace recmill::stats
