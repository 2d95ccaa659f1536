// SPDX-License-Identifier: Apache-2.0
#include "reader/guess/schema_guess.h"

#include <algorithm>
#include <cmath>

namespace recmill::reader {
namespace {

ColumnRole criteo_role(size_t column) {
  return column == 0 ? ColumnRole::label : column < 14 ? ColumnRole::dense : ColumnRole::id;
}

/// Columns whose roles their format gives, or the file itself.
std::vector<ColumnGuess> given_roles(const Sample& sample, const std::vector<ColumnFacts>& facts) {
  std::vector<ColumnGuess> columns;
  for (size_t c = 0; c < facts.size(); ++c) {
    ColumnGuess guess;
    guess.spec.name = facts[c].name;
    guess.spec.role = sample.declared ? sample.columns[c].declared : criteo_role(c);
    columns.push_back(std::move(guess));
  }
  return columns;
}

/// The columns that sequences have beside the target and its histories, which are made of the log.
std::vector<ColumnFacts> columns_of_sequences() {
  struct Made {
    const char* name;
    std::vector<double> cuts;
  };
  const Made made[] = {
      {"seconds_since_last", {10, 30, 60, 120, 300, 900, 3600, 14400, 43200, 86400}},
      {"history_length", {1.5, 2.5, 4.5, 8.5, 12.5, 16.5, 19.5}},
      {"item_seen", {0.5, 1.5, 2.5, 4.5}},
      {"category_seen", {0.5, 1.5, 2.5, 4.5, 8.5, 12.5}},
  };
  std::vector<ColumnFacts> columns;
  for (const Made& one : made) {
    ColumnFacts facts;
    facts.name = one.name;
    facts.numbers = facts.whole = true;
    facts.rows = facts.cells = 1;
    facts.number.emplace();
    facts.number->maximum = 1e6;
    facts.number->median = 1;
    facts.number->cuts = one.cuts;
    columns.push_back(std::move(facts));
  }
  return columns;
}

/// Stray times, of which logs have some, are outside the middle 99.8 %, and far outside.
void bound_times(const SampledColumn& times, BehaviorLogOptions& options) {
  std::vector<double> seconds;
  for (size_t row = 0; row < times.rows(); ++row) {
    seconds.push_back(number_in(times[row]).value_or(0));
  }
  std::ranges::sort(seconds);
  const size_t last = seconds.size() - 1;
  const double low = seconds[last / 1000], high = seconds[last - last / 1000];
  const double margin = 0.1 * (high - low) + 3600;
  if (seconds[0] < low - margin) options.first_time = static_cast<int64_t>(low - margin);
  if (seconds[last] > high + margin) options.last_time = static_cast<int64_t>(high + margin);
}

void decide_behavior_log(const Sample& sample, std::vector<ColumnFacts> facts, SchemaGuess& guess,
                         TrainingInput& input) {
  guess.options.behavior_log.columns = {"user"};
  input.ids.assign(facts.begin(), facts.begin() + 3);
  input.dense = columns_of_sequences();
  for (const ColumnFacts& made : input.dense) {
    guess.options.behavior_log.columns.push_back(made.name);
  }
  bound_times(sample.columns[4], guess.options.behavior_log);
  input.rows *= 2;  // a negative for each event
  input.has_time = input.histories = true;
}

void decide_columns(const Sample& sample, std::vector<ColumnFacts>& facts, SchemaGuess& guess) {
  const int time = guess_time(facts, guess.label.column);
  if (guess.label.column >= 0) {
    const auto labels =
        labels_of(sample.columns[static_cast<size_t>(guess.label.column)], guess.label.rule);
    const auto positives = std::ranges::count(labels, 1.0f);
    const auto negatives = std::ranges::count(labels, 0.0f);
    guess.options.label = guess.label.rule;
    guess.label.rate = static_cast<double>(positives) /
                       static_cast<double>(std::max<int64_t>(positives + negatives, 1));
    for (size_t c = 0; c < facts.size(); ++c) add_label_facts(sample.columns[c], labels, facts[c]);
  }
  guess.columns = guess_roles(facts, guess.label, time);
}

}  // namespace

Result<SchemaGuess> decide(const Sample& sample, const std::string& label) {
  SchemaGuess guess;
  guess.options = sample.data;
  guess.sampled_rows = sample.rows();
  guess.estimated_rows = sample.estimated_rows;
  guess.whole = sample.whole;
  std::vector<ColumnFacts> facts;
  for (const SampledColumn& column : sample.columns) facts.push_back(facts_of(column));
  TrainingInput input;
  input.sampled_rows = guess.sampled_rows;
  input.rows = guess.estimated_rows;
  input.whole = guess.whole;
  const bool libsvm = sample.data.format == DataFormat::libsvm;
  const bool given = sample.declared || sample.data.format == DataFormat::criteo_tsv ||
                     sample.data.format == DataFormat::behavior_log;
  if (given && !label.empty()) {
    return Status::BadRequest("--label: the data says itself what its label is");
  }
  if (sample.data.format == DataFormat::behavior_log) {
    decide_behavior_log(sample, std::move(facts), guess, input);
  } else {
    if (given) {
      guess.columns = given_roles(sample, facts);
    } else {
      RECMILL_ASSIGN_OR_RETURN(guess.label, guess_label(facts, label));
      decide_columns(sample, facts, guess);
    }
    for (size_t c = 0; c < facts.size(); ++c) {
      const ColumnSpec& spec = guess.columns[c].spec;
      if (spec.role == ColumnRole::dense) input.dense.push_back(facts[c]);
      if (spec.role == ColumnRole::id) input.ids.push_back(facts[c]);
      input.has_time = input.has_time || spec.role == ColumnRole::time;
      const bool listed =
          guess.columns[c].kept || (sample.data.format == DataFormat::csv && !sample.data.header);
      if (!given && !libsvm && listed) guess.options.columns.push_back(spec);
    }
  }
  guess.training = guess_training(input);
  guess.tables = guess.training.tables;
  return guess;
}

}  // namespace recmill::reader
