// SPDX-License-Identifier: Apache-2.0
#include "reader/row/text_layout.h"

#include <algorithm>

#include "base/key_text.h"
#include "base/log.h"
#include "reader/row/json_row.h"

namespace recmill::reader {
namespace {

constexpr size_t kLongestSeparator = 16;

// Numbers dense and id columns in file order and fills the schema.
Status assign_targets(bool needs_label, TextLayout& layout, const LabelRule& label) {
  for (TextColumn& column : layout.columns) {
    const ColumnSpec& spec = column.spec;
    column.missing = NamedValues(spec.missing);
    const auto once = [&](bool& seen) -> Status {
      if (!std::exchange(seen, true)) return {};
      return Status::BadRequest("data.columns: a second column of role " +
                                std::string(name_of(spec.role)) + ": " + spec.name);
    };
    bool seen_label = layout.column_of(ColumnRole::label) < &column - layout.columns.data();
    switch (spec.role) {
      case ColumnRole::label:
        RECMILL_RETURN_IF_ERROR(once(seen_label));
        column.label = label;
        break;
      case ColumnRole::dense:
        column.target = static_cast<int>(layout.schema.dense.size());
        layout.schema.dense.push_back(spec.name);
        break;
      case ColumnRole::id:
        column.target = static_cast<int>(layout.schema.ids.size());
        layout.schema.ids.push_back(spec.name);
        if (column.is_bag()) layout.schema.bags.push_back(spec.name);
        if (column.is_weighted()) layout.schema.weighted.push_back(spec.name);
        break;
      case ColumnRole::sample_weight:
        RECMILL_RETURN_IF_ERROR(once(layout.schema.has_sample_weight));
        break;
      case ColumnRole::time:
        RECMILL_RETURN_IF_ERROR(once(layout.schema.has_time));
        break;
      case ColumnRole::group:
        RECMILL_RETURN_IF_ERROR(once(layout.schema.has_group));
        break;
      case ColumnRole::ignore:
        break;
    }
    if (spec.list_separator.size() > kLongestSeparator || spec.weight_separator.size() > 1) {
      return Status::BadRequest(
          "data.columns: list_separator is one to 16 characters, weight_separator one: column " +
          spec.name);
    }
    if (!spec.weight_separator.empty() && spec.list_separator.empty()) {
      return Status::BadRequest("data.columns: weight_separator needs list_separator: column " +
                                spec.name);
    }
  }
  if (layout.column_of(ColumnRole::label) < 0 && needs_label) {
    return Status::BadRequest("data.columns: no column has the role label");
  }
  return {};
}

TextColumn column(std::string name, ColumnRole role) {
  TextColumn column;
  column.spec.name = std::move(name);
  column.spec.role = role;
  return column;
}

std::string numbered(char letter, int64_t number) {
  std::string name(1, letter);
  return name += std::to_string(number);
}

// Fills `layout` with what is around cells.
Status take_marks(const DataOptions& options, TextLayout& layout) {
  layout.delimiter = options.delimiter;
  if (options.delimiter.empty() || options.delimiter.size() > kLongestSeparator) {
    return Status::BadRequest("data.delimiter: must be one to 16 characters: '" +
                              options.delimiter + "'");
  }
  if (options.quote.size() > 1) {
    return Status::BadRequest("data.quote: must be one character: '" + options.quote + "'");
  }
  if (!options.quote.empty()) layout.quote = options.quote[0];
  if (options.delimiter.find_first_of("\r\n" + options.quote) == std::string::npos) return {};
  return Status::BadRequest("data.delimiter: must differ from data.quote and from a line end");
}

Status check_names(const std::vector<ColumnSpec>& columns) {
  for (size_t i = 0; i < columns.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (columns[i].name == columns[j].name && !columns[i].name.empty()) {
        return Status::BadRequest("data.columns: listed twice: " + columns[i].name);
      }
    }
  }
  return {};
}

}  // namespace

int TextLayout::column_of(ColumnRole role) const {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const TextColumn& c) { return c.spec.role == role; });
  return found == columns.end() ? -1 : static_cast<int>(found - columns.begin());
}

int TextLayout::column_named(std::string_view name) const {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const TextColumn& c) { return c.spec.name == name; });
  return found == columns.end() ? -1 : static_cast<int>(found - columns.begin());
}

void follow_schema(const DataSchema& schema, TextLayout& layout) {
  for (TextColumn& column : layout.columns) {
    if (column.spec.role != ColumnRole::dense && column.spec.role != ColumnRole::id) continue;
    const auto& names = column.spec.role == ColumnRole::dense ? schema.dense : schema.ids;
    const auto at = std::ranges::find(names, column.spec.name);
    RECMILL_CHECK(at != names.end(), column.spec.name);
    column.target = static_cast<int>(at - names.begin());
  }
  layout.schema = schema;
}

std::string fingerprint_of(const ColumnSpec& spec) {
  KeyText key;
  key.add(spec.name).add(name_of(spec.role)).add(name_of(spec.id_text));
  return key.add(spec.list_separator).add(spec.weight_separator).add_all(spec.missing).text();
}

std::string TextLayout::fingerprint() const {
  KeyText key;
  key.add(delimiter).add(quote).add(header).add(static_cast<int>(rows)).add_all(schema.ids);
  key.add(columns.size());
  for (const TextColumn& column : columns) {
    key.add(fingerprint_of(column.spec)).add(column.label.fingerprint());
    if (column.may_be_empty) key.add("may be empty");
    key.add(column.is_bag()).add(column.is_weighted());
  }
  return std::move(key).text();
}

Result<TextLayout> criteo_layout(const CriteoOptions& options, const LabelRule& label) {
  TextLayout layout;
  layout.columns.push_back(column("label", ColumnRole::label));
  for (int64_t i = 1; i <= options.dense; ++i) {
    layout.columns.push_back(column(numbered('I', i), ColumnRole::dense));
  }
  for (int64_t i = 1; i <= options.ids; ++i) {
    layout.columns.push_back(column(numbered('C', i), ColumnRole::id));
    layout.columns.back().spec.id_text = IdText::hex;
  }
  RECMILL_RETURN_IF_ERROR(assign_targets(true, layout, label));
  return layout;
}

Result<TextLayout> libsvm_layout(const LibsvmOptions& options, const LabelRule& label) {
  TextLayout layout;
  layout.rows = RowForm::libsvm;
  layout.libffm = options.fields > 0;
  layout.columns.push_back(column("label", ColumnRole::label));
  layout.columns.back().label = label;
  if (!layout.libffm) layout.schema.ids = {"features"};
  for (int64_t field = 0; field < options.fields; ++field) {
    layout.schema.ids.push_back("field" + std::to_string(field));
  }
  layout.schema.bags = layout.schema.weighted = layout.schema.ids;
  return layout;
}

bool accept_absent(const ColumnSpec& spec) {
  if (spec.role == ColumnRole::sample_weight) {
    log_warning_once("rows to score have no column '" + spec.name + "': each sample's weight is 1");
  }
  return spec.role == ColumnRole::label || spec.role == ColumnRole::sample_weight;
}

Result<TextLayout> csv_layout(const DataOptions& options, const std::vector<std::string>& header) {
  TextLayout layout;
  RECMILL_ASSIGN_OR_RETURN(const auto label, LabelRule::make(options.label));
  RECMILL_RETURN_IF_ERROR(take_marks(options, layout));
  layout.header = options.header;
  RECMILL_RETURN_IF_ERROR(check_names(options.columns));
  if (!options.header) {
    for (const ColumnSpec& spec : options.columns) {
      layout.columns.emplace_back().spec = spec;
    }
  } else {
    for (const std::string& name : header) {
      layout.columns.push_back(column(name, ColumnRole::ignore));
    }
    for (const ColumnSpec& spec : options.columns) {
      const int at = layout.column_named(spec.name);
      if (at < 0 && !options.scored.labels && accept_absent(spec)) continue;
      if (at < 0) {
        return Status::BadRequest("data.columns: the header has no column '" + spec.name + "'");
      }
      if (std::ranges::count(header, spec.name) > 1)
        return Status::BadRequest("data.columns: the header has '" + spec.name + "' twice");
      layout.columns[at].spec = spec;
    }
  }
  RECMILL_RETURN_IF_ERROR(assign_targets(options.scored.labels, layout, label));
  return layout;
}

Result<TextLayout> json_layout(const DataOptions& options, const std::vector<std::string>& heads) {
  RECMILL_RETURN_IF_ERROR(check_names(options.columns));
  RECMILL_ASSIGN_OR_RETURN(const auto label, LabelRule::make(options.label));
  TextLayout layout;
  const auto columns = std::make_shared<JsonColumns>();
  const auto add = [&](const ColumnSpec& spec) {
    columns->by_name[spec.name] = static_cast<int>(layout.columns.size());
    layout.columns.emplace_back().spec = spec;
  };
  for (const ColumnSpec& spec : options.columns) {
    if (spec.role != ColumnRole::ignore) add(spec);
  }
  const std::string split = options.split.by == SplitKind::hash ? options.split.column : "";
  for (const std::string& key : {split, options.scored.key}) {
    if (key.empty() || layout.column_named(key) >= 0) continue;
    add(column(key, ColumnRole::ignore).spec);
  }
  layout.rows = RowForm::json;
  layout.json = columns;
  std::vector<bool> seen(layout.columns.size());
  for (const std::string& head : heads) find_json_bags(head, layout, seen);
  const bool none = std::ranges::all_of(heads, &std::string::empty);
  for (size_t i = 0; i < seen.size() && !none; ++i) {
    ColumnRole& role = layout.columns[i].spec.role;
    if (seen[i]) continue;
    if (!options.scored.labels && accept_absent(layout.columns[i].spec)) {
      if (role == ColumnRole::sample_weight) role = ColumnRole::ignore;
      continue;
    }
    const std::string& name = layout.columns[i].spec.name;
    if (role == ColumnRole::ignore) {
      return Status::BadRequest((name == split ? "data.split.column" : "--key") +
                                std::string(": no first row of a file has the key '") + name + "'");
    }
    log_warning_once("data.columns: no first row of a file has the key '" + name +
                     "'; its values are missing until one has");
  }
  RECMILL_RETURN_IF_ERROR(assign_targets(options.scored.labels, layout, label));
  return layout;
}

}  // namespace recmill::reader
