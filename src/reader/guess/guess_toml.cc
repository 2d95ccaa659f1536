// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/json/json_lines.h"
#include "reader/guess/schema_guess.h"
#include "reader/row_split.h"

namespace recmill::reader {
namespace {

std::string quoted(const std::string& text) {
  return *quote(text);
}

/// "[a, b]" of what `text_of` makes of each.
template <typename T, typename TextOf>
std::string list_of(const std::vector<T>& values, TextOf text_of) {
  std::string list;
  for (const T& value : values) list += (list.empty() ? "" : ", ") + text_of(value);
  return "[" + list + "]";
}

std::string list_of(const std::vector<std::string>& texts) {
  return list_of(texts, quoted);
}

std::string list_of(const std::vector<int64_t>& numbers) {
  return list_of(numbers, [](int64_t number) { return std::to_string(number); });
}

std::string real(double number) {
  const std::string text = fmt::format("{}", number);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string list_of(const std::vector<double>& numbers) {
  return list_of(numbers, real);
}

/// Bytes of a comment that TOML takes: no control characters.
std::string in_comment(std::string text) {
  std::erase_if(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  return text;
}

// Names are the file's, which may hold any bytes; TOML is UTF-8.
Status check_names(const SchemaGuess& guess) {
  const DataOptions& data = guess.options;
  const std::string file = (std::filesystem::path(data.path) / data.train[0]).string();
  for (const std::string& name : data.train) {
    RECMILL_RETURN_IF_ERROR(quote(name).status().at("the name of the data"));
  }
  RECMILL_RETURN_IF_ERROR(quote(data.path).status().at("the name of the data"));
  for (size_t c = 0; c < guess.columns.size(); ++c) {
    const ColumnSpec& spec = guess.columns[c].spec;
    const std::string place = file + ": the name of column " + std::to_string(c + 1);
    RECMILL_RETURN_IF_ERROR(quote(spec.name).status().at(place));
    for (const std::string& word : guess.options.label.positive) {
      RECMILL_RETURN_IF_ERROR(quote(word).status().at(file + ": a label"));
    }
  }
  return {};
}

class Text {
 public:
  explicit Text(const SchemaGuess& guess) : guess_(guess), training_(guess.training) {}

  std::string write() {
    data();
    columns();
    preprocess();
    embedding();
    model();
    training();
    return std::move(text_);
  }

 private:
  void line(const std::string& line) { text_ += line + "\n"; }

  void data() {
    const DataOptions& data = guess_.options;
    line(guess_.whole ? fmt::format("# Guessed by `recmill init` from all {} rows. Look it over.",
                                    guess_.sampled_rows)
                      : fmt::format("# Guessed by `recmill init` from {} rows of some {}. Look it "
                                    "over.",
                                    guess_.sampled_rows, guess_.estimated_rows));
    line("[data]");
    line("format = " + quoted(std::string(name_of(data.format))));
    if (!data.path.empty()) line("path = " + quoted(data.path));
    line("train = " + list_of(data.train));
    if (data.format == DataFormat::csv) {
      line("delimiter = " + quoted(data.delimiter));
      line(std::string("header = ") + (data.header ? "true" : "false"));
    }
    const double share = eval_fraction();
    if (training_.by_time) {
      line("split.by = \"time\"  # the last tenth evaluates: what a model is for comes later");
    } else if (share > 0.1) {
      line("split.by = \"fraction\"  # no column of times; of so few rows a tenth may be none");
    } else {
      line("split.by = \"fraction\"  # no column of times: a tenth of the rows, drawn, evaluates");
    }
    line(fmt::format("split.eval_fraction = {}", share));
    if (data.label.threshold.has_value()) {
      line(fmt::format("label.threshold = {}  # labels from here on are 1, the others 0",
                       real(*data.label.threshold)));
    }
    if (!data.label.positive.empty()) {
      line("label.positive = " + list_of(data.label.positive) + "  # these are 1, the others 0");
    }
    line("shuffle.kind = \"window\"  # neighbouring rows are often alike");
    if (data.format == DataFormat::behavior_log) behavior_log();
  }

  /// The least share, from a tenth on, of which some row is drawn and some row is not.
  double eval_fraction() const {
    SplitOptions split;
    split.by = SplitKind::fraction;
    if (training_.by_time || !guess_.whole || guess_.options.train.size() != 1) return 0.1;
    const std::string file = std::filesystem::path(guess_.options.train[0]).filename().string();
    for (split.eval_fraction = 0.1; split.eval_fraction < 0.9; split.eval_fraction *= 2) {
      const auto drawn = RowSplit::make(split, Subset::eval);
      if (!drawn.ok()) break;
      int64_t rows = 0;
      for (int64_t row = 0; row < guess_.sampled_rows; ++row)
        rows += drawn->keeps_number(file, row) ? 1 : 0;
      if (rows > 0 && rows < guess_.sampled_rows) return split.eval_fraction;
    }
    return 0.1;
  }

  void behavior_log() {
    const BehaviorLogOptions& log = guess_.options.behavior_log;
    line("\n[data.behavior_log]  # the next item of a user, against one drawn at random");
    line("columns = " + list_of(log.columns));
    if (log.first_time != 0)
      line(fmt::format("first_time = {}  # before it: strays", log.first_time));
    if (log.last_time != 0) line(fmt::format("last_time = {}  # after it: strays", log.last_time));
  }

  void columns() {
    if (guess_.options.columns.empty()) return;
    if (guess_.label.column < 0) {
      line(
          "\n# No column looks like the label. Give one of them role = \"label\" below, or run "
          "init "
          "with\n# --label COLUMN, which looks at what the others tell of it too.");
    }
    for (const ColumnGuess& column : guess_.columns) {
      const ColumnSpec& spec = column.spec;
      const bool listed = std::ranges::any_of(
          guess_.options.columns, [&](const ColumnSpec& other) { return other.name == spec.name; });
      if (!column.kept && (guess_.options.header || !listed)) {
        line(fmt::format("\n# Left out: {}: {}",
                         spec.name.empty() ? "a column" : in_comment(quoted(spec.name)),
                         in_comment(column.why)));
        continue;
      }
      line("\n[[data.columns]]  # " + in_comment(column.why));
      if (column.warned) line("# To be looked at.");
      line("name = " + quoted(spec.name));
      line("role = " + quoted(std::string(name_of(spec.role))));
      if (spec.role == ColumnRole::id)
        line("id_text = " + quoted(std::string(name_of(spec.id_text))));
      if (!spec.list_separator.empty()) line("list_separator = " + quoted(spec.list_separator));
      if (!spec.weight_separator.empty()) {
        line("weight_separator = " + quoted(spec.weight_separator));
      }
      if (!spec.missing.empty()) line("missing = " + list_of(spec.missing));
    }
  }

  void preprocess() {
    if (training_.dense_ops.empty()) return;
    line("\n[preprocess]");
    line("dense = " + list_of(training_.dense_ops) + "  # " + training_.dense_why);
    if (training_.fill_value != 0) {
      line(fmt::format(
          "fill_value = {:.1f}  # below all values: what is missing has a range of its own",
          training_.fill_value));
    }
  }

  void embedding() {
    const bool hashed = std::ranges::any_of(guess_.tables, &TableGuess::hashed);
    line("\n[embedding]");
    line(fmt::format("dim = {}", training_.dim));
    line(fmt::format("initial_scale = {}  # small: a row that was seldom or never seen says little",
                     training_.initial_scale));
    line("mapping = \"dictionary\"  # a row for each id of the training rows: no two share one");
    if (!guess_.whole) {
      line("out_of_range = \"clamp\"  # more ids than a table was given rows for share row 0");
    }
    if (hashed) line("# Tables with mapping = \"hash\" have too many ids for a dictionary.");
    line("\n[embedding.optimizer]");
    line("kind = \"rowwise_adagrad\"  # a rate for each row: rare ids learn as well");
    line(fmt::format("learning_rate = {}", training_.row_rate));
    line(fmt::format(
        "initial_accumulator = {:.1g}  # a row's first steps are small: few lookups may "
        "mislead",
        training_.row_accumulator));
    for (const TableGuess& table : guess_.tables) {
      line(fmt::format("\n[[tables]]  # {} distinct ids in the sample", table.distinct));
      line("name = " + quoted(table.column));
      line(fmt::format("rows = {}", table.rows));
      if (table.hashed) line("mapping = \"hash\"");
    }
    features();
  }

  void features() {
    if (guess_.options.format == DataFormat::behavior_log) {
      line("\n# A history's rows are those of its target's table, averaged.");
      for (const std::string target : {"user", "item", "category"}) {
        line("[[features]]\nname = " + quoted(target) + "\n");
        if (target == "user") continue;
        line("[[features]]\nname = " + quoted(target + "_history") + "\ntable = " + quoted(target) +
             "\npooling = \"mean\"\n");
      }
    }
    bool told = false;
    for (const FeatureGuess& feature : training_.features) {
      if (!feature.borders.empty() && !std::exchange(told, true)) {
        line(
            "\n# Dense columns once more, cut into ranges with a row each: what is no straight "
            "line "
            "shows.");
      }
      line("\n[[features]]");
      line("name = " + quoted(feature.name));
      if (!feature.column.empty()) line("column = " + quoted(feature.column));
      if (!feature.pooling.empty()) line("pooling = " + quoted(feature.pooling));
      if (!feature.borders.empty()) line("borders = " + list_of(feature.borders));
    }
  }

  void model() {
    line("\n[model]");
    line("kind = " + quoted(training_.model) + "  # " + training_.model_why);
    if (!training_.bottom.empty()) line("bottom = " + list_of(training_.bottom));
    if (!training_.top.empty()) line("top = " + list_of(training_.top));
    if (!training_.deep.empty()) line("deep = " + list_of(training_.deep));
    if (!training_.deep_input.empty()) line("deep_input = " + quoted(training_.deep_input));
    line("\n[optimizer]");
    line("kind = \"adam\"  # finds its own step for each weight");
    line(fmt::format("learning_rate = {}", training_.layer_rate));
    if (training_.weight_decay != 0) {
      line(fmt::format("weight_decay = {}  # few rows", training_.weight_decay));
    }
  }

  void training() {
    line("\n[train]");
    line(fmt::format("batch_size = {}  # some {} steps an epoch", training_.batch_size,
                     training_.steps));
    line(fmt::format("epochs = {}  # at most: it stops early", training_.epochs));
    line(fmt::format("evaluate_every = {}", training_.evaluate_every));
    line(fmt::format("early_stop.patience = {}  # evaluations in a row without gain: an epoch",
                     training_.patience));
    line("early_stop.metric = " + quoted(training_.metric));
    line("checkpoint.keep_best = true  # eval and predict take the best evaluation's model");
  }

  const SchemaGuess& guess_;
  const TrainingGuess& training_;
  std::string text_;
};

}  // namespace

Result<std::string> toml_of(const SchemaGuess& guess) {
  RECMILL_RETURN_IF_ERROR(check_names(guess));
  return Text(guess).write();
}

}  // namespace recmill::reader
