// SPDX-License-Identifier: Apache-2.0
#include "reader/guess/guess_roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reader/label_rule.h"
#include "reader/row/number_text.h"

namespace recmill::reader {
namespace {

constexpr int64_t kFewRows = 30;       // from here on "all distinct" says something
constexpr double kTellsAll = 0.999;    // AUC of a column that must know the label
constexpr double kRanks = 0.08;        // of an AUC from 0.5: names do not rank rows so well, ...
constexpr int64_t kManyRanked = 1000;  // ... nor chance so many
constexpr double kMostlyDistinct = 0.99;
constexpr double kByChance = -13.8;  // ln of one in a million
constexpr double kLargestExact = 0x1p53;
constexpr double kLastSecond = 4.1e9;  // of the year 2099

bool among(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string lower(std::string_view text) {
  std::string low(text);
  for (char& c : low) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return low;
}

/// The words of a name: "userId", "USER_ID" and "user-id" are user, id.
std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool upper_after_lower =
        c >= 'A' && c <= 'Z' && i > 0 && name[i - 1] >= 'a' && name[i - 1] <= 'z';
    if (!letter || upper_after_lower) words.emplace_back();
    if (letter) words.back() += lower(name.substr(i, 1));
  }
  std::erase(words, "");
  return words;
}

bool any_word(const std::string& name, std::initializer_list<std::string_view> wanted) {
  return std::ranges::any_of(words_of(name), [&](const auto& word) { return among(word, wanted); });
}

bool named_as_id(const std::string& name) {
  return any_word(
      name, {"id",         "ids",       "uid",        "userid", "itemid",   "movieid", "user",
             "item",       "movie",     "product",    "code",   "zip",      "zipcode", "postal",
             "category",   "cate",      "cat",        "brand",  "shop",     "seller",  "store",
             "city",       "country",   "region",     "device", "site",     "app",     "os",
             "campaign",   "ad",        "adgroup",    "banner", "creative", "channel", "type",
             "occupation", "publisher", "advertiser", "genre",  "gender",   "sku",     "hash"});
}

bool named_as_measure(const std::string& name) {
  return any_word(
      name, {"age",      "count",       "cnt",     "num",       "number",  "amount",  "price",
             "cost",     "gain",        "loss",    "hours",     "minutes", "seconds", "days",
             "years",    "duration",    "size",    "length",    "width",   "height",  "weight",
             "income",   "salary",      "balance", "quantity",  "qty",     "rate",    "ratio",
             "avg",      "mean",        "sum",     "total",     "views",   "clicks",  "impressions",
             "distance", "temperature", "percent", "frequency", "tenure",  "budget"});
}

bool named_as_time(const std::string& name) {
  return any_word(name, {"time", "timestamp", "ts", "date", "datetime", "hour", "day", "unix",
                         "epoch", "created", "at"});
}

/// Places in the list of names that labels have; the earlier, the surer. -1: none of them.
int label_rank(const std::string& name) {
  static constexpr std::array kNames{
      "label",   "click",     "clicked",    "is_click",      "isclick",   "clk",      "target",
      "y",       "converted", "conversion", "is_attributed", "purchased", "purchase", "bought",
      "buy",     "liked",     "like",       "rating",        "ratings",   "stars",    "class",
      "outcome", "response",  "survived",   "churn",         "churned",   "exited",   "default",
      "fraud",   "is_fraud",  "isfraud",    "subscribed",    "deposit",   "income",   "score"};
  const std::string low = lower(without_spaces(name));
  const auto found = std::ranges::find(kNames, low);
  return found == kNames.end() ? -1 : static_cast<int>(found - kNames.begin());
}

bool is_affirmative(std::string_view word) {
  const std::string low = lower(without_spaces(word));
  return among(low, {"1", "yes", "y", "true", "t", "positive", "pos", "click", "clicked", "buy",
                     "purchase", "good", "like", "churn", "fraud", "spam"}) ||
         low.starts_with('>');
}

bool two_values(const ColumnFacts& f) {
  return f.distinct == 2 && f.type != CellType::unread && f.type != CellType::time && !f.list &&
         f.list_separator.empty();
}

bool zero_and_one(const ColumnFacts& f) {
  return f.number.has_value() && f.whole && f.number->minimum == 0 && f.number->maximum == 1;
}

constexpr int64_t kFewNumbers = 11;

/// Few numbers in even steps, as ratings are.
bool few_numbers(const ColumnFacts& f) {
  return f.number.has_value() && f.distinct >= 3 && f.distinct <= kFewNumbers;
}

LabelOptions rule_of(const ColumnFacts& f) {
  LabelOptions rule;
  if (zero_and_one(f)) return rule;
  if (f.number.has_value()) {
    const NumberFacts& n = *f.number;
    // Stars: 4 of 5 is liked. Else the upper half.
    rule.threshold = f.distinct == 2 ? n.maximum : n.maximum == 5 ? 4 : n.median;
    if (*rule.threshold == n.minimum && !n.cuts.empty()) rule.threshold = n.cuts.front();
    return rule;
  }
  const auto found = std::ranges::find_if(f.values, is_affirmative);
  rule.positive = {found == f.values.end() ? f.values.back() : *found};
  return rule;
}

std::string span_of(const ColumnFacts& f) {
  if (!f.number.has_value()) return fmt::format("{} distinct", f.distinct);
  return fmt::format("{}numbers from {} to {}, {} distinct", f.whole ? "whole " : "",
                     f.number->minimum, f.number->maximum, f.distinct);
}

LabelGuess label_at(const std::vector<ColumnFacts>& facts, size_t column, std::string why) {
  return {static_cast<int>(column), rule_of(facts[column]), 0.5, std::move(why)};
}

bool unix_times(const NumberFacts& n, bool named) {
  for (const double unit : {1.0, 1e3, 1e6, 1e9}) {
    const bool in_range = n.minimum >= 3e8 * unit && n.maximum <= kLastSecond * unit;
    const bool within_years = n.minimum >= 8e8 * unit && n.maximum - n.minimum < 6.4e8 * unit;
    if (in_range && (named || within_years)) return true;
  }
  return false;
}

/// 20171125, 2017112508, 14102108: month and day are where they should.
bool dates_in_digits(const NumberFacts& n) {
  for (const double value : {n.minimum, n.maximum, n.median}) {
    if (value < 1e6 || value > 3e13) return false;
    const std::string digits = fmt::format("{:.0f}", value);
    const size_t year = digits.starts_with("19") || digits.starts_with("20") ? 4 : 2;
    if (digits.size() < year + 4) return false;
    const int month = std::stoi(digits.substr(year, 2)),
              day = std::stoi(digits.substr(year + 2, 2));
    if (month < 1 || month > 12 || day < 1 || day > 31) return false;
  }
  return true;
}

bool is_time(const ColumnFacts& f) {
  if (f.type == CellType::time || f.iso_time) return true;
  if (!f.number.has_value()) return false;
  const bool named = named_as_time(f.name);
  if (!f.whole || f.points)  // seconds with a fraction
    return f.numbers && f.number->maximum <= kLastSecond && unix_times(*f.number, named);
  return unix_times(*f.number, named) || (named && dates_in_digits(*f.number));
}

/// Times are seconds where an hour or a weekday is made of them.
std::string unit_of(const ColumnFacts& f) {
  if (!f.number.has_value() || !unix_times(*f.number, true)) return "";
  if (f.number->maximum <= kLastSecond) return "";
  return ", in smaller units than seconds: a split by time takes it, derived columns would not";
}

/// Whether larger values go with one label, more than chance has it.
bool ranks(const ColumnFacts& f) {
  return std::abs(f.number->ranked - 0.5) > kRanks && f.rows >= kManyRanked;
}

/// Whether hardly any value comes again in `count` cells.
bool mostly_distinct(const ColumnFacts& f, int64_t count) {
  return static_cast<double>(f.distinct) >= kMostlyDistinct * static_cast<double>(count);
}

/// Whether integers measure or name. Names of columns decide, then how the values spread.
bool measures(const ColumnFacts& f) {
  const NumberFacts& n = *f.number;
  if (f.leading_zeros || std::abs(n.maximum) >= kLargestExact) return false;
  if (n.minimum < -1 && !named_as_id(f.name)) return true;
  if (named_as_id(f.name) != named_as_measure(f.name)) return named_as_measure(f.name);
  if (f.distinct <= 12) {
    const bool counts_up = n.in_range >= 0.85 && (n.minimum == 0 || n.minimum == 1);
    return counts_up && (f.distinct < 4 || n.neighbours >= 0.5);
  }
  if (n.most_common == 0 && n.common_share >= 0.4 && n.maximum > 20) return true;  // amounts
  if (n.roughness > 3) return false;
  if (ranks(f)) return true;
  if (n.neighbours >= 0.5) return true;
  const bool mostly_once = static_cast<double>(f.distinct) > 0.25 * static_cast<double>(f.cells);
  return mostly_once && n.unevenness > (mostly_distinct(f, f.cells) ? 0.1 : 0.2);
}

/// Rows are told apart by it: as a feature, hardly any value would come again.
bool is_key(const ColumnFacts& f) {
  if (f.rows < kFewRows || f.list || !f.list_separator.empty()) return false;
  if (!mostly_distinct(f, f.rows)) return false;
  if (!f.number.has_value()) return true;
  if (!f.whole || f.points) return false;
  if (f.distinct < f.rows && ranks(f)) return false;
  return f.number->unevenness < 0.1 || named_as_id(f.name);
}

/// A column that is filled only where the label is 1, or only where it is 0.
bool leaks_by_filling(const ColumnFacts& f, const LabelGuess& label) {
  if (label.column < 0 || f.cells == f.rows || f.filled_positive + f.filled_negative == 0)
    return false;
  const double cells = static_cast<double>(f.cells);
  if (f.filled_negative == 0) return cells * std::log(label.rate) < kByChance;
  if (f.filled_positive == 0) return cells * std::log(1 - label.rate) < kByChance;
  return std::abs(f.filled_positive - f.filled_negative) > 0.95;
}

/// A number other than 0 that only one kind of row has, as what a sale brought.
bool leaks_by_amount(const ColumnFacts& f, const LabelGuess& label) {
  if (label.column < 0 || f.distinct < 3 || f.amounts_positive == 0 || f.amounts_negative > 0)
    return false;
  const double amounts = f.amounts_positive * label.rate * static_cast<double>(f.rows);
  return amounts * std::log(label.rate) < kByChance;
}

class Decision {
 public:
  Decision(const std::vector<ColumnFacts>& facts, const LabelGuess& label, int time)
      : facts_(facts), label_(label), time_(time) {}

  std::vector<ColumnGuess> run() {
    for (size_t c = 0; c < facts_.size(); ++c) {
      ColumnGuess guess;
      guess.spec.name = facts_[c].name;
      guess.spec.missing = facts_[c].missing;
      std::erase_if(guess.spec.missing, is_no_number);  // which readers know themselves
      decide(c, guess);
      guesses_.push_back(std::move(guess));
    }
    return std::move(guesses_);
  }

 private:
  void decide(size_t c, ColumnGuess& guess) const {
    const ColumnFacts& f = facts_[c];
    if (static_cast<int>(c) == label_.column) return take(guess, ColumnRole::label, label_.why);
    const std::string left_out = why_left_out(c);
    if (static_cast<int>(c) == time_) {
      return take(guess, ColumnRole::time, span_of(f) + ": the time" + unit_of(f));
    }
    if (!left_out.empty()) {
      guess.kept = false;
      return take(guess, ColumnRole::ignore, left_out);
    }
    if (lower(f.name) == "sample_weight" && f.numbers) {
      return take(guess, ColumnRole::sample_weight, "by its name");
    }
    const bool dense = f.numbers && f.list_separator.empty() && (!f.whole || measures(f));
    take(guess, dense ? ColumnRole::dense : ColumnRole::id, span_of(f));
    if (f.auc > kTellsAll) {
      guess.warned = true;
      guess.why +=
          fmt::format("; tells the label alone (AUC {:.4f}): is it known beforehand?", f.auc);
    } else if (label_.column >= 0) {
      guess.why += fmt::format("; AUC alone {:.3f}", f.auc);
    }
    if (!dense) name_ids(f, guess.spec);
  }

  static void take(ColumnGuess& guess, ColumnRole role, std::string why) {
    guess.spec.role = role;
    guess.why = std::move(why);
  }

  static void name_ids(const ColumnFacts& f, ColumnSpec& spec) {
    const bool whole =
        !f.list_separator.empty() || f.list ? f.whole_items : f.whole && !f.leading_zeros;
    spec.id_text = whole ? IdText::integer : f.hexadecimal ? IdText::hex : IdText::text;
    spec.list_separator = f.list_separator;
    if (f.weight_separator != 0) spec.weight_separator = std::string(1, f.weight_separator);
  }

  std::string why_left_out(size_t c) const {
    const ColumnFacts& f = facts_[c];
    if (f.type == CellType::unread) return "of a type that is not read";
    if (f.name.empty()) return "has no name: row numbers, as pandas writes them";
    if (std::ranges::any_of(facts_.begin(), facts_.begin() + static_cast<long>(c),
                            [&](const ColumnFacts& other) { return other.name == f.name; })) {
      return "a second column of that name";
    }
    if (f.cells == 0) return "empty in the sample";
    if (f.distinct == 1 && f.cells == f.rows) return "constant in the sample";
    if (leaks_by_filling(f, label_)) {
      return fmt::format(
          "LEAK: filled in {:.1f} % of the positive rows and {:.1f} % of the negative ones, so it "
          "is written after the label",
          100 * f.filled_positive, 100 * f.filled_negative);
    }
    if (leaks_by_amount(f, label_)) {
      return fmt::format(
          "LEAK: other than 0 in {:.1f} % of the positive rows and in no negative one, so it is "
          "written after the label",
          100 * f.amounts_positive);
    }
    if (!f.unread.empty()) return f.unread;
    if (is_time(f)) return "a time, of which rows are not told apart";
    if (is_key(f)) {
      return fmt::format("a key: {} of {} values are distinct", f.distinct, f.cells);
    }
    if (f.mean_length > 60 && 2 * f.distinct > f.cells && f.list_separator.empty() && !f.numbers) {
      return "free text, which hardly comes again";
    }
    if (label_.column < 0) return "";
    if (f.auc > kTellsAll && (f.numbers || f.distinct <= 12) && has_others(c)) {
      return fmt::format("LEAK: tells the label alone (AUC {:.4f})", f.auc);
    }
    return "";
  }

  /// Whether there is a column that does not tell the label alone.
  bool has_others(size_t column) const {
    for (size_t c = 0; c < facts_.size(); ++c) {
      const ColumnFacts& f = facts_[c];
      if (c == column || static_cast<int>(c) == label_.column || f.distinct < 2 || is_key(f))
        continue;
      if (f.auc <= kTellsAll && !is_time(f)) return true;
    }
    return false;
  }

  const std::vector<ColumnFacts>& facts_;
  const LabelGuess& label_;
  const int time_;
  std::vector<ColumnGuess> guesses_;
};

}  // namespace

Result<LabelGuess> guess_label(const std::vector<ColumnFacts>& facts, const std::string& wanted) {
  std::vector<size_t> pairs;
  int best = -1, best_rank = 1000;
  for (size_t c = 0; c < facts.size(); ++c) {
    const ColumnFacts& f = facts[c];
    if (!wanted.empty() && f.name == wanted) {
      if (two_values(f) || few_numbers(f) || f.number.has_value()) {
        const bool many = f.number.has_value() && f.distinct > kFewNumbers;
        return label_at(facts, c,
                        span_of(f) + ": the label, as asked for" +
                            (many ? "; what is learned is whether it is above its median" : ""));
      }
      return Status::BadRequest(fmt::format(
          "--label: column '{}' has {} distinct values, which is not a label of two kinds", wanted,
          f.distinct));
    }
    if (two_values(f)) pairs.push_back(c);
    const int rank = label_rank(f.name);
    if (rank >= 0 && rank < best_rank && (two_values(f) || few_numbers(f))) {
      best = static_cast<int>(c);
      best_rank = rank;
    }
  }
  if (!wanted.empty()) {
    return Status::BadRequest("--label: the data has no column '" + wanted + "'");
  }
  if (best >= 0) {
    const auto c = static_cast<size_t>(best);
    return label_at(facts, c, span_of(facts[c]) + ": the label by its name");
  }
  if (pairs.size() == 1) {
    return label_at(facts, pairs[0], span_of(facts[pairs[0]]) + ": the only column of two values");
  }
  for (const size_t c : pairs) {
    if (c == 0 && zero_and_one(facts[c])) return label_at(facts, c, "the first column, of 0 and 1");
  }
  if (!pairs.empty() && pairs.back() + 1 == facts.size()) {
    return label_at(facts, pairs.back(), "the last column, of two values");
  }
  return LabelGuess();
}

std::vector<float> labels_of(const SampledColumn& column, const LabelOptions& options) {
  std::vector<float> labels(column.rows(), -1.0f);
  const auto rule = LabelRule::make(options);
  for (size_t row = 0; row < column.rows() && rule.ok(); ++row) {
    if (column[row].empty()) continue;
    const auto label = rule->read(column[row]);
    if (label.ok()) labels[row] = *label;
  }
  return labels;
}

int guess_time(const std::vector<ColumnFacts>& facts, int label) {
  int best = -1;
  for (size_t c = 0; c < facts.size(); ++c) {
    if (static_cast<int>(c) == label || facts[c].distinct < 2 || !is_time(facts[c])) continue;
    if (facts[c].cells < facts[c].rows) continue;  // a row without a time is on no side
    if (best < 0 || facts[c].distinct > facts[static_cast<size_t>(best)].distinct) {
      best = static_cast<int>(c);
    }
  }
  return best;
}

std::vector<ColumnGuess> guess_roles(const std::vector<ColumnFacts>& facts, const LabelGuess& label,
                                     int time) {
  return Decision(facts, label, time).run();
}

}  // namespace recmill::reader
