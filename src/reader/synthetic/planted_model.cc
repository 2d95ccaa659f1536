// SPDX-License-Identifier: Apache-2.0
#include "reader/synthetic/planted_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "reader/synthetic/portable_math.h"

namespace recmill::reader {
namespace {

// Streams of random numbers: one for each column and use.
enum class Use : uint64_t {
  dense = 1,
  ids,
  coefficient,
  effect,
  factor,
  label,
  group,
  line,
  rows,
  choice
};
constexpr uint64_t stream_of(Use use, uint64_t column = 0) {
  return (static_cast<uint64_t>(use) << 32) | column;
}

/// Close to standard normal, within [-6, 6), by sums alone: twelve uniform numbers less 6.
double bell(const Random& random, int64_t item) {
  double sum = -6.0;
  for (uint64_t block = 0; block < 3; ++block) {
    for (uint32_t word : random.block(static_cast<uint64_t>(item), block)) {
      sum += Random::unit(word);
    }
  }
  return sum;
}

/// Weight of id i of a cell of `length` ids.
double element_weight(const SyntheticIdColumn& column, int64_t i, int64_t length) {
  double weight = column.max_length == 1 ? 1.0 : 1.0 / std::sqrt(column.mean_length);
  if (column.sequence) {
    for (int64_t after = length - 1 - i; after > 0 && weight > 1e-12; --after) weight *= 0.5;
  }
  return weight;
}

}  // namespace

Result<PlantedModel> PlantedModel::build(const SyntheticOptions& options,
                                         const std::string& section) {
  PlantedModel model;
  RECMILL_ASSIGN_OR_RETURN(model.options_, resolve(options, section));
  const SyntheticOptions& o = model.options_;
  const auto seed = static_cast<uint64_t>(o.seed);
  for (size_t c = 0; c < o.dense.size(); ++c) {
    model.dense_.emplace_back(o.dense[c], seed, stream_of(Use::dense, c));
    model.schema_.dense.push_back(o.dense[c].name);
  }
  const std::string at = section.empty() ? "" : section + ".";
  model.pair_columns();
  RECMILL_RETURN_IF_ERROR(model.make_id_sources([&](size_t column) {
    const bool listed = options.shape == SyntheticShape::columns;
    return at + (listed ? "ids[" + std::to_string(column) + "]." : "") + "top_access_percent";
  }));
  model.choose_columns();
  model.schema_.has_group = o.groups > 0;
  model.schema_.has_time = o.time_step > 0;
  model.plant_dense();
  model.plant_effects();
  model.plant_crosses();
  if (o.popularity > 0) model.scale_effects();
  model.set_intercept();
  return model;
}

/// Crosses without factors.
void PlantedModel::pair_columns() {
  // The smallest columns, so that each pair of ids is seen often; smallest with largest.
  std::vector<size_t> columns;
  for (size_t c = 0; c < options_.ids.size(); ++c) {
    if (can_be_crossed(options_.ids[c])) columns.push_back(c);
  }
  std::stable_sort(columns.begin(), columns.end(), [&](size_t a, size_t b) {
    return options_.ids[a].cardinality < options_.ids[b].cardinality;
  });
  columns.resize(static_cast<size_t>(2 * options_.planted.crosses));
  for (size_t i = 0; i < columns.size() / 2; ++i) {
    crosses_.push_back({.columns = {columns[i], columns[columns.size() - 1 - i]}});
  }
}

Status PlantedModel::make_id_sources(const std::function<std::string(size_t)>& key_of_column) {
  SharedTables tables;
  std::vector<double> popularity(options_.ids.size(), options_.popularity);
  for (const Cross& cross : crosses_) popularity[cross.columns[0]] = 0;
  ids_.reserve(options_.ids.size());
  for (size_t c = 0; c < options_.ids.size(); ++c) {
    const SyntheticIdColumn& column = options_.ids[c];
    const uint64_t stream = stream_of(Use::ids, c);
    const auto line = static_cast<uint64_t>(column.line);
    const IdSource::Streams streams{static_cast<uint64_t>(options_.seed), stream,
                                    line > 0 ? stream_of(Use::line, line) : stream,
                                    stream_of(Use::rows), stream_of(Use::choice, c)};
    auto source = IdSource::make(column, streams, options_.id_bits, tables, popularity[c]);
    if (!source.ok()) return source.status().at(key_of_column(c));
    ids_.push_back(*std::move(source));
    schema_.ids.push_back(column.name);
    if (column.max_length > 1) schema_.bags.push_back(column.name);
  }
  return {};
}

/// The columns with effects: the middle one of each of planted.columns equal runs.
void PlantedModel::choose_columns() {
  const auto all = static_cast<int64_t>(ids_.size());
  const int64_t asked = options_.planted.columns;
  const int64_t chosen = asked > 0 ? std::min(asked, all) : all;
  has_effects_.assign(ids_.size(), false);
  for (int64_t i = 0; i < chosen; ++i) has_effects_[(2 * i + 1) * all / (2 * chosen)] = true;
  decides_ = has_effects_;
}

void PlantedModel::plant_dense() {
  double variance = 0;
  for (size_t c = 0; c < dense_.size(); ++c) {
    const Random random(static_cast<uint64_t>(options_.seed), Purpose::synthetic,
                        stream_of(Use::coefficient, c));
    const double deviation = std::sqrt(dense_[c].log_variance());
    const double size = 0.5 + random.uniform(0, 0);  // each column matters, none rules
    const double sign = random.uniform(0, 1) < 0.5f ? -1.0 : 1.0;
    coefficients_.push_back(deviation > 0 ? sign * size / deviation : 0.0);
    variance += deviation > 0 ? size * size : 0.0;
  }
  const double scale = variance > 0 ? std::sqrt(options_.planted.dense_variance / variance) : 0.0;
  for (double& coefficient : coefficients_) coefficient *= scale;
}

/// The ids that are expected often enough, with room for their values; `shares` beside the values.
PlantedModel::Learnable PlantedModel::learnable(size_t column, std::vector<double>& shares) const {
  const IdSource& source = ids_[column];
  const int64_t n = source.column().cardinality;
  const double lookups = source.expected_lookups(options_.rows);
  // Popularity falls on both sides of position 0: above it are ids less popular from the start,
  // below it (from the end of the circle) those that a drift makes popular later.
  std::vector<double> above, below;
  const auto enough = [&](double share) {
    return share * lookups >= options_.planted.learnable_count;
  };
  for (int64_t p = 0; p < n; ++p) {
    const double share = source.mean_share(p, options_.rows);
    if (!enough(share)) break;
    above.push_back(share);
  }
  const int64_t most = source.column().drift > 0 ? n - static_cast<int64_t>(above.size()) : 0;
  for (int64_t p = 1; p <= most; ++p) {
    const double share = source.mean_share(n - p, options_.rows);
    if (!enough(share)) break;
    below.push_back(share);
  }
  Learnable result;
  result.below = static_cast<int64_t>(below.size());
  result.values.resize(below.size() + above.size());
  shares.assign(below.rbegin(), below.rend());
  shares.insert(shares.end(), above.begin(), above.end());
  return result;
}

/// Draws values with mean 0 by `shares`; returns the mean of their squares by `shares`.
double PlantedModel::draw_centred(const Random& random, const std::vector<double>& shares,
                                  Learnable& column) {
  double mass = 0, mean = 0, square = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    column.values[i] = bell(random, static_cast<int64_t>(i) - column.below);
    mass += shares[i];
    mean += shares[i] * column.values[i];
  }
  for (size_t i = 0; i < shares.size(); ++i) {
    column.values[i] -= mean / mass;
    square += shares[i] * column.values[i] * column.values[i];
  }
  return square;
}

void PlantedModel::plant_effects() {
  std::vector<double> shares;
  double variance = 0;  // summed over columns
  for (size_t c = 0; c < ids_.size(); ++c) {
    const Random random(static_cast<uint64_t>(options_.seed), Purpose::synthetic,
                        stream_of(Use::effect, c));
    if (!has_effects_[c]) {
      effects_.emplace_back();
      continue;
    }
    Learnable column = learnable(c, shares);
    const double square = draw_centred(random, shares, column);
    const double mass = std::accumulate(shares.begin(), shares.end(), 0.0);
    // To variance 1 / sqrt(learnable ids) over the learnable lookups of the column: what a few ids
    // say counts for more than what many say, each of which is seen less often.
    const double wanted = 1.0 / std::sqrt(static_cast<double>(shares.size()));
    const double scale = square > 0 ? std::sqrt(wanted * mass / square) : 0.0;
    for (double& value : column.values) value *= scale;
    if (square > 0) variance += wanted * mass * (1.0 - ids_[c].column().empty_share);
    effects_.push_back(std::move(column));
  }
  const double scale = variance > 0 ? std::sqrt(options_.planted.id_variance / variance) : 0.0;
  for (Learnable& column : effects_) {
    for (double& value : column.values) value *= scale;
  }
}

uint64_t PlantedModel::group(int64_t row) const {
  const Random random(static_cast<uint64_t>(options_.seed), Purpose::synthetic,
                      stream_of(Use::group));
  return random.below(static_cast<uint64_t>(options_.groups), static_cast<uint64_t>(row));
}

std::vector<std::array<size_t, 2>> PlantedModel::crossed_columns() const {
  std::vector<std::array<size_t, 2>> pairs;
  for (const Cross& cross : crosses_) pairs.push_back(cross.columns);
  return pairs;
}

void PlantedModel::plant_crosses() {
  const double wanted =
      options_.planted.cross_variance / static_cast<double>(options_.planted.crosses);
  for (Cross& cross : crosses_) {
    decides_[cross.columns[0]] = decides_[cross.columns[1]] = true;
    double variance = 1;  // of the product: that of one factor times that of the other
    for (int side = 0; side < 2; ++side) {
      std::vector<double> shares;
      const size_t c = cross.columns[side];
      const Random random(static_cast<uint64_t>(options_.seed), Purpose::synthetic,
                          stream_of(Use::factor, c));
      cross.factors[side] = learnable(c, shares);
      variance *= draw_centred(random, shares, cross.factors[side]);
    }
    const double scale = variance > 0 ? std::sqrt(wanted / variance) : 0.0;
    for (double& factor : cross.factors[0].values) factor *= scale;
  }
}

/// Of rows spread evenly through the training rows.
std::vector<LogitParts> PlantedModel::sample_logits() const {
  constexpr int64_t blocks = 128, block_rows = 128;
  std::vector<LogitParts> logits;
  SyntheticRows rows;
  const int64_t count = std::min(block_rows, options_.rows);
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t first = (options_.rows - count) / (blocks - 1) * b;
    generate(first, count, rows);
    logits.insert(logits.end(), rows.logits.begin(), rows.logits.end());
  }
  return logits;
}

/// Gives the effects of ids their variance where ids depend on each other, by measuring it.
void PlantedModel::scale_effects() {
  double sum = 0, squares = 0;
  const std::vector<LogitParts> logits = sample_logits();
  for (const LogitParts& part : logits) {
    sum += part.ids;
    squares += part.ids * part.ids;
  }
  const auto count = static_cast<double>(logits.size());
  const double variance = squares / count - sum / count * (sum / count);
  const double scale = variance > 0 ? std::sqrt(options_.planted.id_variance / variance) : 0.0;
  for (Learnable& column : effects_) {
    for (double& value : column.values) value *= scale;
  }
}

void PlantedModel::set_intercept() {
  std::vector<double> logits;
  for (const LogitParts& part : sample_logits()) {
    logits.push_back(part.dense + part.ids + part.crosses);
  }
  double low = -40.0, high = 40.0;
  for (int step = 0; step < 50; ++step) {
    const double middle = (low + high) * 0.5;
    double clicks = 0;
    for (double logit : logits) clicks += portable_sigmoid(middle + logit);
    (clicks / static_cast<double>(logits.size()) < options_.planted.click_rate ? low : high) =
        middle;
  }
  intercept_ = high;
}

void PlantedModel::add_dense(SyntheticRows& rows) const {
  rows.dense.resize(dense_.size());
  for (size_t c = 0; c < dense_.size(); ++c) {
    rows.dense[c].resize(static_cast<size_t>(rows.count));
    for (int64_t i = 0; i < rows.count; ++i) {
      const float value = dense_[c].value(rows.first + i);
      rows.dense[c][i] = value;
      const double log_count = value > 0 ? portable_log(1.0 + value) : 0.0;  // NaN: 0
      rows.logits[i].dense += coefficients_[c] * (log_count - dense_[c].log_mean());
    }
  }
}

void PlantedModel::add_ids(SyntheticRows& rows) const {
  rows.offsets.resize(ids_.size());
  rows.positions.resize(ids_.size());
  for (size_t c = 0; c < ids_.size(); ++c) {
    if (!decides_[c]) continue;
    const IdSource& source = ids_[c];
    std::vector<int64_t>& offsets = rows.offsets[c];
    std::vector<int64_t>& positions = rows.positions[c];
    offsets.assign(1, 0);
    positions.clear();
    for (int64_t i = 0; i < rows.count; ++i) {
      const int64_t length = source.length(rows.first + i);
      for (int64_t k = 0; k < length; ++k) {
        const int64_t position = source.position(rows.first + i, k);
        positions.push_back(position);
        const double value = effect(c, position);
        if (value != 0) rows.logits[i].ids += element_weight(source.column(), k, length) * value;
      }
      offsets.push_back(static_cast<int64_t>(positions.size()));
    }
  }
}

void PlantedModel::add_crosses(SyntheticRows& rows) const {
  for (const Cross& cross : crosses_) {
    const auto [a, b] = cross.columns;
    for (int64_t i = 0; i < rows.count; ++i) {
      const int64_t in_a = rows.offsets[a][i], in_b = rows.offsets[b][i];
      if (rows.offsets[a][i + 1] == in_a || rows.offsets[b][i + 1] == in_b) continue;
      rows.logits[i].crosses +=
          cross.factors[0].at(rows.positions[a][in_a], ids_[a].column().cardinality) *
          cross.factors[1].at(rows.positions[b][in_b], ids_[b].column().cardinality);
    }
  }
}

void PlantedModel::generate(int64_t first, int64_t count, SyntheticRows& rows) const {
  rows.first = first;
  rows.count = count;
  rows.logits.assign(static_cast<size_t>(count), {});
  add_dense(rows);
  add_ids(rows);
  add_crosses(rows);
  const Random label(static_cast<uint64_t>(options_.seed), Purpose::synthetic,
                     stream_of(Use::label));
  rows.probabilities.resize(static_cast<size_t>(count));
  rows.labels.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const LogitParts& part = rows.logits[i];
    const double p = portable_sigmoid(intercept_ + part.dense + part.ids + part.crosses);
    rows.probabilities[i] = p;
    rows.labels[i] = label.uniform64(static_cast<uint64_t>(first + i)) < p ? 1.0f : 0.0f;
  }
}

}  // namespace recmill::reader
