// SPDX-License-Identifier: Apache-2.0
#include "run/checkpoint/row_digest.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/hash.h"
#include "base/json/json.h"

namespace recmill::train {
namespace {

/// A visitor of options that writes them out, those aside that change no row of the data.
struct OptionsText {
  std::string text;

  template <typename T, typename... Rest>
  void operator()(std::string_view key, T& value, std::string_view, Rest...) {
    if (key == "prefetch" || key == "cache" || key == "eval") return;
    text += fmt::format("{}=", key);
    write(value);
    text += ';';
  }

 private:
  template <typename T>
  void write(std::vector<T>& values) {
    for (T& value : values) {
      write(value);
      text += ',';
    }
  }
  template <typename T>
  void write(std::optional<T>& value) {
    if (value) write(*value);
  }
  template <typename T>
  void write(T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      text += fmt::format("{}:{}", value.size(), value);
    } else if constexpr (NamedEnum<T>) {
      text += name_of(value);
    } else if constexpr (std::is_arithmetic_v<T>) {
      text += fmt::format("{}", value);
    } else {
      text += '{';
      describe(*this, value);
      text += '}';
    }
  }
};

std::string text_of_data(DataOptions options) {
  OptionsText writer;
  describe(writer, options);
  return writer.text;
}

/// What the order of ids in dictionaries follows from.
std::string text_of_data(const RunOptions& options) {
  return fmt::format("{} {} {}", options.train.seed, options.train.negative_keep,
                     text_of_data(options.data));
}

}  // namespace

std::string data_digest(const DataOptions& options) {
  DataOptions rows = options;
  // A data set may be elsewhere now, and be read in another order, beside other evaluation rows.
  rows.path.clear();
  rows.train.clear();
  rows.shuffle = {};
  rows.synthetic.eval_rows = 0;
  return fmt::format("{:016x}", hash_bytes(text_of_data(rows)));
}

std::string row_digest(const ResolvedRun& run) {
  std::string text;
  for (const TableSpec& table : run.spec.tables) text += fmt::format("table {}\n", table.rows);
  for (const FeatureSpec& feature : run.spec.features)
    text += fmt::format("feature of {} {}\n", feature.table, feature.same_ids_as);
  for (const preprocess::Chain& chain : run.graph.features) {
    text += fmt::format("column {}\n", chain.column);
    for (const preprocess::OpSpec& op : chain.ops)
      text += fmt::format("{} {}\n", op.op, op.parameters->dump());
  }
  for (const preprocess::DictionarySpec& dictionary : run.graph.dictionaries)
    text += fmt::format(
        "dictionary {} {}{}\n", dictionary.rows, dictionary.when_full,
        dictionary.min_count > 1 ? fmt::format(" from {}", dictionary.min_count) : std::string());
  if (!run.graph.dictionaries.empty()) text += text_of_data(run.options);
  return fmt::format("{:016x}", hash_bytes(text));
}

}  // namespace recmill::train
