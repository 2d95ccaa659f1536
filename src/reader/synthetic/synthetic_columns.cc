// SPDX-License-Identifier: Apache-2.0
#include "reader/synthetic/synthetic_columns.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reader/synthetic/portable_math.h"

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

/// Weights of 0 ... most: of each, how much of a normal law lies between it and the next number.
std::vector<double> normal_weights(double mean, double deviation, int64_t most) {
  // By Simpson's rule in steps of at most 1/16 deviation; what ends at `most` has measure 0.
  const auto density = [&](double x) {
    const double z = (x - mean) / deviation;
    return portable_exp(-0.5 * z * z);
  };
  const auto steps = std::clamp<int64_t>(static_cast<int64_t>(16.0 / deviation) + 1, 1, 100000);
  const double width = 1.0 / static_cast<double>(steps);
  std::vector<double> weights(static_cast<size_t>(most));
  constexpr double kFar = 38.0;  // deviations, from which on the density is 0
  const auto first = static_cast<int64_t>(std::max(0.0, std::floor(mean - kFar * deviation)));
  const auto end =
      static_cast<int64_t>(std::min(static_cast<double>(most), std::ceil(mean + kFar * deviation)));
  for (int64_t l = first; l < end; ++l) {
    for (int64_t i = 0; i < steps; ++i) {
      const double x = static_cast<double>(l) + static_cast<double>(i) * width;
      weights[l] += density(x) + 4.0 * density(x + 0.5 * width) + density(x + width);
    }
  }
  return weights;
}

std::vector<double> weights_of(const SyntheticIdColumn& column) {
  return column.lengths == LengthLaw::normal
             ? normal_weights(column.mean_length, column.deviation, column.max_length)
             : length_weights(column.mean_length, column.max_length);
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

LengthTable::LengthTable(const SyntheticIdColumn& column)
    : LengthTable(column.lengths == LengthLaw::normal ? 0 : 1, weights_of(column)) {}

LengthTable::LengthTable(int64_t least, std::span<const double> weights)
    : least_(least), table_(weights) {
  double total = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    total += weights[i];
    mean_ += weights[i] * static_cast<double>(least + static_cast<int64_t>(i));
  }
  mean_ /= total;
}

std::shared_ptr<const ZipfLaw> SharedTables::zipf(int64_t ranks, double exponent) {
  auto& law = zipf_[{ranks, exponent}];
  if (law == nullptr) law = std::make_shared<const ZipfLaw>(ranks, exponent);
  return law;
}

std::shared_ptr<const LengthTable> SharedTables::lengths(const SyntheticIdColumn& column) {
  if (column.lengths == LengthLaw::fixed ||
      (column.lengths == LengthLaw::geometric && column.max_length == 1)) {
    return nullptr;
  }
  auto& table = lengths_[{column.lengths, column.mean_length, column.deviation, column.max_length}];
  if (table == nullptr) table = std::make_shared<const LengthTable>(column);
  return table;
}

Result<IdSource> IdSource::make(const SyntheticIdColumn& column, const Streams& streams,
                                int64_t id_bits, SharedTables& tables, double popularity) {
  IdSource source(column, streams, id_bits);
  source.common_ = static_cast<uint64_t>(popularity * 0x1p32);
  source.lengths_ = tables.lengths(column);
  if (column.law != IdLaw::zipf) return source;
  double exponent = column.zipf;
  if (column.top_percent > 0) {
    auto fitted = ZipfLaw::exponent_for(column.cardinality, column.top_percent * 0.01,
                                        column.top_access_percent * 0.01);
    if (!fitted.ok()) return fitted.status().at("column " + column.name);
    exponent = *fitted;
  }
  source.zipf_ = tables.zipf(column.cardinality, exponent);
  return source;
}

IdSource::IdSource(const SyntheticIdColumn& column, const Streams& streams, int64_t id_bits)
    : column_(column),
      random_(streams.seed, Purpose::synthetic, streams.column),
      rows_(streams.seed, Purpose::synthetic, streams.rows),
      choices_(streams.seed, Purpose::synthetic, streams.choices),
      scatter_(column.direct ? column.cardinality : 1, streams.column),
      key_(Random::mix(Random::mix(streams.seed) + streams.column)),
      length_key_(Random::mix(Random::mix(streams.seed) + streams.line)),
      id_bits_(id_bits) {}

int64_t IdSource::length(int64_t row) const {
  if (one_each()) return 1;
  const uint64_t word = Random::mix(length_key_ ^ Random::mix(static_cast<uint64_t>(row)));
  if (unit(word) < column_.empty_share) return 0;
  return lengths_ ? lengths_->sample(Random::mix(word)) : column_.max_length;
}

int64_t IdSource::rank_at(uint64_t quantile) const {
  switch (column_.law) {
    case IdLaw::zipf:
      return zipf_->quantile(quantile);
    case IdLaw::uniform:
      return UniformLaw{column_.cardinality}.quantile(quantile);
    case IdLaw::power:
      return PowerLaw{column_.cardinality}.quantile(quantile);
  }
  return 0;
}

int64_t IdSource::drifted(int64_t rank, int64_t row, uint64_t word) const {
  if (column_.drift == 0) return rank;
  // Popularity moves on by whole ranks; in between, each row is on one side or the other.
  const double moved = column_.drift * 1e-6 * static_cast<double>(row);
  auto shift = static_cast<int64_t>(moved);
  if (unit(Random::mix(word)) < moved - static_cast<double>(shift)) ++shift;
  const int64_t position = rank - shift % column_.cardinality;
  return position < 0 ? position + column_.cardinality : position;
}

int64_t IdSource::position(int64_t row, int64_t element) const {
  if (common_ > 0 && takes_common(row, element)) {
    const auto words = rows_.block(static_cast<uint64_t>(row));
    return drifted(rank_at(low_half(words)), row, high_half(words));
  }
  if (column_.law != IdLaw::zipf) {
    const uint32_t word = random_.bits(static_cast<uint64_t>(row), static_cast<uint64_t>(element));
    return column_.law == IdLaw::uniform ? UniformLaw{column_.cardinality}.sample(word)
                                         : PowerLaw{column_.cardinality}.sample(word);
  }
  const auto words = random_.block(static_cast<uint64_t>(row), static_cast<uint64_t>(element));
  return drifted(zipf_->sample(low_half(words), high_half(words)), row, high_half(words));
}

uint64_t IdSource::raw_id(int64_t position) const {
  if (column_.direct) return scatter_(position);
  return id_bits_ == 32 ? permute32(static_cast<uint32_t>(position), key_)
                        : Random::mix(static_cast<uint64_t>(position) ^ key_);
}

namespace {

/// The ids of a cell: four of a block of random words.
template <typename Law, typename Name>
void draw_cell(const Law& law, const Name& name, const Random& random, int64_t row,
               std::span<uint64_t> ids) {
  const auto item = static_cast<uint64_t>(row);
  size_t i = 0;
  for (; i + 4 <= ids.size(); i += 4) {
    const auto words = random.block(item, i / 4);
    for (size_t k = 0; k < 4; ++k) ids[i + k] = name(law.sample(words[k]));
  }
  if (i == ids.size()) return;
  const auto words = random.block(item, i / 4);
  for (size_t k = 0; i < ids.size(); ++i, ++k) ids[i] = name(law.sample(words[k]));
}

}  // namespace

/// position() and raw_id() of all elements.
template <typename Law>
void IdSource::even_cell(const Law& law, int64_t row, std::span<uint64_t> ids) const {
  if (column_.direct) return draw_cell(law, Scatter(scatter_), random_, row, ids);
  draw_cell(
      law, [this](int64_t position) { return raw_id(position); }, random_, row, ids);
}

void IdSource::cell(int64_t row, std::span<uint64_t> ids) const {
  const auto one_by_one = [&] {
    for (size_t i = 0; i < ids.size(); ++i) {
      ids[i] = raw_id(position(row, static_cast<int64_t>(i)));
    }
  };
  if (common_ > 0) return one_by_one();
  switch (column_.law) {
    case IdLaw::zipf:
      return one_by_one();
    case IdLaw::uniform:
      return even_cell(UniformLaw{column_.cardinality}, row, ids);
    case IdLaw::power:
      return even_cell(PowerLaw{column_.cardinality}, row, ids);
  }
}

double IdSource::mean_length() const {
  switch (column_.lengths) {
    case LengthLaw::geometric:
      return column_.mean_length;
    case LengthLaw::fixed:
      return static_cast<double>(column_.max_length);
    case LengthLaw::normal:
      return lengths_->mean();
  }
  return 0;
}

double IdSource::probability(int64_t rank) const {
  switch (column_.law) {
    case IdLaw::zipf:
      return zipf_->probability(rank);
    case IdLaw::uniform:
      return UniformLaw{column_.cardinality}.probability(rank);
    case IdLaw::power:
      return PowerLaw{column_.cardinality}.probability(rank);
  }
  return 0;
}

double IdSource::mean_share(int64_t position, int64_t rows) const {
  const double moved = column_.drift * 1e-6 * static_cast<double>(rows);
  if (moved == 0) return probability(position);
  const int64_t n = column_.cardinality;
  // C(x): probability of ranks [0, x) of the law repeated for ever.
  const auto before = [&](int64_t x) {
    return static_cast<double>(x / n) + zipf_->cumulative(x % n);
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
