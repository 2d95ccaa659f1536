// SPDX-License-Identifier: Apache-2.0
#include "reader/guess/column_facts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/hash.h"
#include "base/split_mix.h"
#include "reader/guess/list_cells.h"
#include "reader/row/number_text.h"

namespace recmill::reader {
namespace {

constexpr double kMostRanges = 32;
constexpr size_t kFewValues = 12;

constexpr std::array<std::string_view, 14> kMissingWords{
    "NA", "N/A", "na", "n/a", "NaN", "nan", "NULL", "null", "None", "none", "\\N", "?", "-", "."};

bool says_missing(std::string_view cell) {
  return std::ranges::find(kMissingWords, cell) != kMissingWords.end();
}

bool says_null(std::string_view cell) {
  constexpr std::array<std::string_view, 6> kNull{"NULL", "null", "None", "NaN", "nan", "\\N"};
  return std::ranges::find(kNull, cell) != kNull.end();
}

bool is_hexadecimal(std::string_view cell) {
  return cell.size() >= 6 && cell.size() <= 16 &&
         cell.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

/// 2017-11-25, 2017-11-25 08:00:00, 2017-11-25T08:00:00Z
bool is_iso_time(std::string_view cell) {
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd";
  if (cell.size() < 10) return false;
  for (size_t i = 0; i < std::min(cell.size(), kShape.size()); ++i) {
    const bool fits = kShape[i] == 'd'   ? cell[i] >= '0' && cell[i] <= '9'
                      : kShape[i] == 'T' ? cell[i] == 'T' || cell[i] == ' '
                                         : cell[i] == kShape[i];
    if (!fits) return false;
  }
  return true;
}

/// "007": a code whose zeros count.
bool has_leading_zero(std::string_view cell) {
  return cell.size() > 1 && cell[0] == '0' && cell[1] >= '0' && cell[1] <= '9';
}

bool is_missing(const ColumnFacts& facts, std::string_view cell) {
  return cell.empty() || std::ranges::find(facts.missing, cell) != facts.missing.end();
}

/// "1,5", "-121,25": digits with one comma among them at most.
bool is_decimal_comma(std::string_view cell) {
  if (cell.starts_with('-')) cell.remove_prefix(1);
  const size_t comma = cell.find(',');
  return !cell.empty() && comma != 0 && comma + 1 != cell.size() &&
         cell.find_first_not_of("0123456789,") == std::string_view::npos &&
         cell.find(',', std::min(comma, cell.size() - 1) + 1) == std::string_view::npos;
}

/// "-12,5", "3,05": what is no list of ids, which have neither signs nor zeros in front.
bool is_no_list(std::string_view cell) {
  const size_t zero = cell.find(",0");
  return cell.starts_with('-') || (zero != std::string_view::npos && zero + 2 < cell.size());
}

/// What the cells look like, where a column of text is not read as that; empty: nothing such.
std::string unread_form(const SampledColumn& column, const ColumnFacts& facts) {
  int64_t brackets = 0, commas = 0, decimals = 0, no_lists = 0;
  for (size_t row = 0; row < column.rows(); ++row) {
    const std::string_view cell = without_spaces(column[row]);
    if (is_missing(facts, column[row])) continue;
    brackets += cell.starts_with('[') && cell.ends_with(']');
    decimals += is_decimal_comma(cell);
    commas += cell.find(',') != std::string_view::npos;
    no_lists += is_no_list(cell);
  }
  if (brackets == facts.cells)
    return "lists in brackets, which are not read in text: write 1|2 for [1, 2], or JSON lines";
  if (decimals == facts.cells && 2 * commas > facts.cells && no_lists > 0)
    return "numbers with a decimal comma, which are not read: write them with a point";
  return "";
}

void take_cell(std::string_view raw, ColumnFacts& facts) {
  const std::string_view cell = without_spaces(raw);
  const auto number = number_in(cell);
  const bool point = cell.find_first_of(".eE") != std::string_view::npos;
  // Digits beyond 64 bits are a name, not a number: no float holds them.
  const bool too_long = number.has_value() && !point && std::abs(*number) >= 0x1p63;
  facts.numbers = facts.numbers && number.has_value() && !too_long;
  facts.whole = facts.whole && number.has_value() && std::abs(*number) < 0x1p63 &&
                *number == std::floor(*number);
  facts.points = facts.points || (number.has_value() && point);
  facts.leading_zeros = facts.leading_zeros || (number.has_value() && has_leading_zero(cell));
  facts.hexadecimal = facts.hexadecimal && is_hexadecimal(raw);
  facts.iso_time = facts.iso_time && is_iso_time(cell);
  facts.mean_length += static_cast<double>(cell.size());
}

/// Words that mean "no value": among numbers any of them and blanks, among text those that are no
/// value of anything.
std::vector<std::string> missing_words(const SampledColumn& column) {
  std::set<std::string> words;
  bool numbers = false, text = false;
  for (size_t row = 0; row < column.rows(); ++row) {
    const std::string_view cell = column[row], bare = without_spaces(cell);
    if (cell.empty()) continue;
    if (bare.empty() || says_missing(bare)) {
      if (words.size() < kFewValues) words.emplace(cell);
    } else {
      (number_in(bare).has_value() ? numbers : text) = true;
    }
  }
  if (text) std::erase_if(words, [](const std::string& word) { return !says_null(word); });
  if (!numbers && !text) return {};
  return {words.begin(), words.end()};
}

double correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const double n = static_cast<double>(x.size());
  const double mean_x = std::reduce(x.begin(), x.end()) / n;
  const double mean_y = std::reduce(y.begin(), y.end()) / n;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

/// A value, and the rows that hold it.
struct Run {
  double value = 0, rows = 0, positives = 0;
};

/// Correlation between how often a value and the next larger one are there: near 1 where a
/// histogram is a curve, near 0 where numbers are names.
double neighbour_correlation(const std::vector<Run>& runs) {
  if (runs.size() < 4) return 0;
  std::vector<double> first, next;
  for (size_t i = 0; i + 1 < runs.size(); ++i) {
    first.push_back(std::log(runs[i].rows));
    next.push_back(std::log(runs[i + 1].rows));
  }
  return correlation(first, next);
}

/// Squared distance of a value's label rate from the middle of its neighbours', in units of what
/// chance makes it, on average.
double label_roughness(const std::vector<Run>& runs) {
  std::vector<Run> often;
  for (const Run& run : runs) {
    if (run.rows >= 5) often.push_back(run);
  }
  double sum = 0, count = 0;
  for (size_t i = 1; i + 1 < often.size(); ++i) {
    const Run &a = often[i - 1], &b = often[i], &c = often[i + 1];
    const double rate = (a.positives + b.positives + c.positives) / (a.rows + b.rows + c.rows);
    const double variance = rate * (1 - rate) * (1 / b.rows + 0.25 / a.rows + 0.25 / c.rows);
    if (variance <= 0) continue;
    const double middle = 0.5 * (a.positives / a.rows + c.positives / c.rows);
    const double distance = b.positives / b.rows - middle;
    sum += distance * distance / variance;
    ++count;
  }
  return count < 8 ? 1 : sum / count;
}

std::vector<Run> runs_of(std::vector<std::pair<double, float>>& cells) {
  std::ranges::sort(cells);
  std::vector<Run> runs;
  for (const auto& [value, label] : cells) {
    if (runs.empty() || runs.back().value != value) runs.push_back({value, 0, 0});
    ++runs.back().rows;
    runs.back().positives += label == 1.0f;
  }
  return runs;
}

/// Borders between cells: each value of its own where they are few, else in equal shares of the
/// cells; a value that more cells hold than a share is kept alone.
std::vector<double> cuts_of(const std::vector<Run>& runs, double cells) {
  double share = cells / kMostRanges, rest = cells, ranges = kMostRanges;
  for (const Run& run : runs) {
    if (run.rows < share) continue;
    rest -= run.rows;
    --ranges;
  }
  const bool few = static_cast<double>(runs.size()) <= kMostRanges;
  const double alone = share;
  share = rest / std::max(ranges, 1.0);
  std::vector<double> cuts;
  double since = 0;
  for (size_t i = 0; i + 1 < runs.size(); ++i) {
    since += runs[i].rows;
    const bool frequent = runs[i].rows >= alone || runs[i + 1].rows >= alone;
    if (!few && !frequent && since < share) continue;
    since = 0;
    cuts.push_back(runs[i].value + 0.5 * (runs[i + 1].value - runs[i].value));
  }
  return cuts;
}

NumberFacts number_facts(std::vector<std::pair<double, float>> numbers, double distinct) {
  const std::vector<Run> runs = runs_of(numbers);
  const double cells = static_cast<double>(numbers.size());
  NumberFacts facts;
  facts.minimum = runs.front().value;
  facts.maximum = runs.back().value;
  facts.median = numbers[numbers.size() / 2].first;
  const double range = facts.maximum - facts.minimum;
  double passed = 0;
  for (const Run& run : runs) {
    if (run.value < 0) facts.below_zero += run.rows / cells;
    if (run.rows / cells > facts.common_share) {
      facts.common_share = run.rows / cells;
      facts.most_common = run.value;
    }
    passed += run.rows / cells;
    const double even = range > 0 ? (run.value - facts.minimum) / range : 1;
    facts.unevenness = std::max(facts.unevenness, std::abs(passed - even));
  }
  facts.in_range = distinct / (range + 1);
  facts.neighbours = neighbour_correlation(runs);
  facts.roughness = label_roughness(runs);
  facts.cuts = cuts_of(runs, cells);
  return facts;
}

std::vector<std::pair<double, float>> numbers_of(const SampledColumn& column,
                                                 const ColumnFacts& facts,
                                                 std::span<const float> labels) {
  std::vector<std::pair<double, float>> numbers;
  for (size_t row = 0; row < column.rows(); ++row) {
    if (is_missing(facts, column[row])) continue;
    const auto number = number_in(without_spaces(column[row]));
    if (number.has_value()) numbers.emplace_back(*number, labels.empty() ? 0 : labels[row]);
  }
  return numbers;
}

/// The chance that a positive row's score is above a negative one's; ties count half.
double auc_of(std::vector<std::pair<double, float>> scores) {
  std::ranges::sort(scores);
  double positives = 0, negatives = 0, pairs = 0;
  for (size_t i = 0; i < scores.size();) {
    double up = 0, down = 0;
    const double score = scores[i].first;
    for (; i < scores.size() && scores[i].first == score; ++i) {
      (scores[i].second == 1.0f ? up : down) += 1;
    }
    pairs += up * (negatives + 0.5 * down);
    positives += up;
    negatives += down;
  }
  return positives > 0 && negatives > 0 ? pairs / (positives * negatives) : 0.5;
}

/// Half of the rows, drawn by their numbers: labels may alternate.
bool is_in_first_half(size_t row) {
  return split_mix(row) % 2 == 0;
}

/// Each value's label rate in one half of the rows scores the other.
double auc_of_values(const SampledColumn& column, std::span<const float> labels) {
  struct Count {
    double rows = 0, positives = 0;
  };
  std::unordered_map<uint64_t, Count> counts;
  Count all;
  for (size_t row = 0; row < column.rows(); ++row) {
    if (!is_in_first_half(row)) continue;
    if (labels[row] != 0 && labels[row] != 1) continue;
    for (Count* count : {&counts[hash_bytes(column[row])], &all}) {
      ++count->rows;
      count->positives += labels[row];
    }
  }
  const double rate = all.rows > 0 ? all.positives / all.rows : 0.5;
  std::vector<std::pair<double, float>> scores;
  for (size_t row = 0; row < column.rows(); ++row) {
    if (is_in_first_half(row)) continue;
    if (labels[row] != 0 && labels[row] != 1) continue;
    const auto found = counts.find(hash_bytes(column[row]));
    const Count count = found == counts.end() ? Count() : found->second;
    scores.emplace_back((count.positives + 2 * rate) / (count.rows + 2), labels[row]);
  }
  return auc_of(std::move(scores));
}

void count_distinct(const SampledColumn& column, ColumnFacts& facts) {
  std::unordered_set<uint64_t> seen;
  std::set<std::string> values;
  facts.whole_items = true;
  for (size_t row = 0; row < column.rows(); ++row) {
    if (row == column.rows() / 2) facts.distinct_in_half = static_cast<int64_t>(seen.size());
    const std::string_view cell = column[row];
    if (is_missing(facts, cell)) continue;
    if (values.size() <= kFewValues) values.emplace(cell);
    for_each_item(cell, facts, [&](std::string_view id) {
      ++facts.items;
      const std::string_view bare = without_spaces(id);  // around integers they are not read
      seen.insert(hash_bytes(is_integer(bare) ? bare : id));
      facts.whole_items = facts.whole_items && is_integer(bare) && !has_leading_zero(bare);
    });
  }
  facts.distinct = static_cast<int64_t>(seen.size());
  if (values.size() <= kFewValues) facts.values.assign(values.begin(), values.end());
}

}  // namespace

std::string_view without_spaces(std::string_view cell) {
  const size_t first = cell.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return cell.substr(first, cell.find_last_not_of(" \t") - first + 1);
}

std::optional<double> number_in(std::string_view cell) {
  const auto number = parse_double(cell);
  return number.has_value() && std::isfinite(*number) ? number : std::nullopt;
}

bool is_integer(std::string_view cell) {
  if (cell.starts_with('-')) cell.remove_prefix(1);
  return !cell.empty() && cell.size() <= 19 &&
         cell.find_first_not_of("0123456789") == std::string_view::npos;
}

ColumnFacts facts_of(const SampledColumn& column) {
  ColumnFacts facts;
  facts.name = column.name;
  facts.type = column.type;
  facts.rows = static_cast<int64_t>(column.rows());
  facts.list = column.list;
  facts.weighted = column.weighted;
  const bool text = column.type == CellType::unsaid && !column.list;
  if (text) facts.missing = missing_words(column);
  facts.whole = facts.numbers = !column.list && column.type != CellType::hashed;
  facts.hexadecimal = facts.iso_time = text;
  for (size_t row = 0; row < column.rows(); ++row) {
    if (is_missing(facts, column[row])) continue;
    ++facts.cells;
    if (!column.list) take_cell(column[row], facts);
  }
  if (facts.cells == 0) {
    facts.whole = facts.numbers = facts.hexadecimal = facts.iso_time = false;
    return facts;
  }
  facts.mean_length /= static_cast<double>(facts.cells);
  if (text && !facts.numbers && !facts.iso_time) find_separators(column, facts);
  if (text && !facts.numbers) facts.unread = unread_form(column, facts);
  count_distinct(column, facts);
  if (facts.numbers) {
    facts.number = number_facts(numbers_of(column, facts, {}), static_cast<double>(facts.distinct));
  }
  return facts;
}

void add_label_facts(const SampledColumn& column, std::span<const float> labels,
                     ColumnFacts& facts) {
  double filled[2] = {0, 0}, rows[2] = {0, 0}, amounts[2] = {0, 0};
  for (size_t row = 0; row < column.rows(); ++row) {
    if (labels[row] != 0 && labels[row] != 1) continue;
    const size_t kind = labels[row] == 1 ? 1 : 0;
    ++rows[kind];
    if (is_missing(facts, column[row])) continue;
    ++filled[kind];
    if (facts.number.has_value()) amounts[kind] += number_in(without_spaces(column[row])) != 0.0;
  }
  if (rows[0] == 0 || rows[1] == 0 || facts.cells == 0) return;
  facts.filled_negative = filled[0] / rows[0];
  facts.filled_positive = filled[1] / rows[1];
  facts.amounts_negative = amounts[0] / rows[0];
  facts.amounts_positive = amounts[1] / rows[1];
  facts.auc = auc_of_values(column, labels);
  if (!facts.number.has_value()) return;
  auto numbers = numbers_of(column, facts, labels);
  std::erase_if(numbers, [](const auto& cell) { return cell.second != 0 && cell.second != 1; });
  const double ranked = auc_of(numbers);
  facts.auc = std::max({facts.auc, ranked, 1 - ranked});
  facts.number->ranked = ranked;
  const std::vector<Run> runs = runs_of(numbers);
  facts.number->roughness = label_roughness(runs);
}

}  // namespace recmill::reader
