// SPDX-License-Identifier: Apache-2.0
#include "reader/synthetic_columns.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reader/portable_math.h"

namespace recmill::reader {
namespace {

/// Uniform in [0, 1) from the upper bits of a word.
double unit(uint64_t word) {
  return static_cast<double>(word >> 11) * 0x1p-53;
}

uint64_t low_half(const std::array<uint32_t, 4>& w) {
  return (uint64_t{w[1]} << 32) | w[0];
}
uint64_t high_half(const std::array<uint32_t, 4>& w) {
  return (uint64_t{w[3]} << 32) | w[2];
}

/// A bijection of 32 bits: two rounds of the finaliser of MurmurHash3 between keys.
uint32_t permute32(uint32_t x, uint64_t key) {
  for (uint32_t round_key : {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)}) {
    x ^= round_key;
    x ^= x >> 16;
    x *= 0x85EBCA6Bu;
    x ^= x >> 13;
    x *= 0xC2B2AE35u;
    x ^= x >> 16;
  }
  return x;
}

/// Weights q^0 ... q^(most-1) of lengths 1 ... most, with q such that the mean is `mean`.
std::vector<double> length_weights(double mean, int64_t most) {
  std::vector<double> weights(static_cast<size_t>(most));
  double low = -50.0, high = 50.0;  // of log q
  for (int step = 0; step < 80; ++step) {
    const double log_q = (low + high) * 0.5;
    double total = 0, lengths = 0;
    for (int64_t l = 0; l < most; ++l) {
      // Scaled so that the largest weight is 1.
      const double power = log_q > 0 ? static_cast<double>(l - most + 1) : static_cast<double>(l);
      weights[l] = portable_exp(log_q * power);
      total += weights[l];
      lengths += weights[l] * static_cast<double>(l + 1);
    }
    (lengths / total < mean ? low : high) = log_q;
  }
  return weights;
}

}  // namespace

DenseSource::DenseSource(const SyntheticDenseColumn& column, uint64_t seed, uint64_t stream)
    : law_(column.maximum + 1, column.zipf),
      random_(seed, Purpose::synthetic, stream),
      missing_share_(column.missing_share),
      negative_share_(column.negative_share) {
  const double present = 1.0 - missing_share_ - negative_share_;
  const auto log_count = [](double count) { return portable_log(1.0 + count); };
  log_mean_ = present * law_.mean(log_count);
  log_variance_ = present * law_.mean([&](double count) {
    return log_count(count) * log_count(count);
  }) - log_mean_ * log_mean_;
}

float DenseSource::value(int64_t row) const {
  const auto words = random_.block(static_cast<uint64_t>(row));
  if (missing_share_ + negative_share_ > 0) {
    const uint64_t kind_word = Random::mix(high_half(words));
    const double kind = unit(kind_word);
    if (kind < missing_share_) return std::numeric_limits<float>::quiet_NaN();
    if (kind < missing_share_ + negative_share_) return (kind_word & 3) == 0 ? -2.0f : -1.0f;
  }
  return static_cast<float>(law_.sample(low_half(words), high_half(words)));
}

Result<IdSource> IdSource::make(const SyntheticIdColumn& column, uint64_t seed, uint64_t stream,
                                int64_t id_bits) {
  double exponent = column.zipf;
  if (column.top_percent > 0) {
    auto fitted = ZipfLaw::exponent_for(column.cardinality, column.top_percent * 0.01,
                                        column.top_access_percent * 0.01);
    if (!fitted.ok()) return fitted.status().at("column " + column.name);
    exponent = *fitted;
  }
  return IdSource(column, ZipfLaw(column.cardinality, exponent), seed, stream, id_bits);
}

IdSource::IdSource(const SyntheticIdColumn& column, ZipfLaw law, uint64_t seed, uint64_t stream,
                   int64_t id_bits)
    : column_(column),
      law_(std::move(law)),
      random_(seed, Purpose::synthetic, stream),
      key_(Random::mix(Random::mix(seed) + stream)),
      id_bits_(id_bits) {
  if (column.max_length > 1) {
    lengths_.emplace(length_weights(column.mean_length, column.max_length));
  }
}

int64_t IdSource::length(int64_t row) const {
  if (one_each()) return 1;
  const uint64_t word = Random::mix(key_ ^ Random::mix(static_cast<uint64_t>(row)));
  if (unit(word) < column_.empty_share) return 0;
  return lengths_ ? lengths_->sample(Random::mix(word)) + int64_t{1} : 1;
}

int64_t IdSource::position(int64_t row, int64_t element) const {
  const auto words = random_.block(static_cast<uint64_t>(row), static_cast<uint64_t>(element));
  const int64_t rank = law_.sample(low_half(words), high_half(words));
  if (column_.drift == 0) return rank;
  // Popularity moves on by whole ranks; in between, each row is on one side or the other.
  const double moved = column_.drift * 1e-6 * static_cast<double>(row);
  auto shift = static_cast<int64_t>(moved);
  if (unit(Random::mix(high_half(words))) < moved - static_cast<double>(shift)) ++shift;
  const int64_t position = rank - shift % column_.cardinality;
  return position < 0 ? position + column_.cardinality : position;
}

uint64_t IdSource::raw_id(int64_t position) const {
  return id_bits_ == 32 ? permute32(static_cast<uint32_t>(position), key_)
                        : Random::mix(static_cast<uint64_t>(position) ^ key_);
}

double IdSource::mean_share(int64_t position, int64_t rows) const {
  const double moved = column_.drift * 1e-6 * static_cast<double>(rows);
  if (moved == 0) return law_.probability(position);
  const int64_t n = column_.cardinality;
  // C(x): probability of ranks [0, x) of the law repeated for ever.
  const auto before = [&](int64_t x) {
    return static_cast<double>(x / n) + law_.cumulative(x % n);
  };
  const auto whole = static_cast<int64_t>(moved);
  const double part = moved - static_cast<double>(whole);
  // The integral over the shift s in [0, moved] of the line between the shares at floor(s) and
  // floor(s) + 1: trapezoids, then the part of one.
  const double trapezoids = 0.5 * ((before(position + whole) - before(position)) +
                                   (before(position + whole + 1) - before(position + 1)));
  const double rest = share_at(position + whole) * (part - part * part * 0.5) +
                      share_at(position + whole + 1) * (part * part * 0.5);
  return (trapezoids + rest) / moved;
}

}  // namespace recmill::reader
