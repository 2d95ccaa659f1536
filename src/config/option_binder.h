// SPDX-License-Identifier: Apache-2.0
// Visitors of option structs (schema/options.h): one reads a configuration into them, one writes
// the resolved configuration, one the reference page.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "base/status.h"
#include "config/config_node.h"
#include "schema/option_ranges.h"
#include "schema/options.h"

namespace recmill::config {

/// "; did you mean 'that'?" of the candidate with the smallest edit distance, if it is near enough
/// to be meant; else empty.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

/// Reads a section of a configuration into an option struct. The first problem is kept: it names
/// place and key, for an unknown key the nearest known one, for an unknown name all of them.
/// Ranges are not its concern: bind_options() is what configurations are read by.
class OptionBinder {
 public:
  OptionBinder(const ConfigNode& section, std::string path)
      : section_(section), path_(std::move(path)) {}

  /// Binds all fields of `options`, then refuses keys that no field has.
  template <typename Options>
  Status bind(Options& options) {
    if (section_.table() == nullptr) return wrong(section_, path_, "must be a section");
    describe(*this, options);
    if (!status_.ok()) return status_;
    return refuse_unknown();
  }

  template <typename T, typename... Rest>
  void operator()(std::string_view key, T& field, std::string_view /*documentation*/,
                  const Rest&...) {
    known_.emplace_back(key);
    if (!status_.ok()) return;
    const auto entry = section_.table()->find(std::string(key));
    if (entry == section_.table()->end()) return;
    status_ = read(entry->second, path_.empty() ? std::string(key) : path_ + "." + std::string(key),
                   field);
  }

 private:
  static Status wrong(const ConfigNode& node, const std::string& path, const std::string& what) {
    return Status::BadRequest(node.place.text() + ": " + path + " " + what);
  }
  static Status wrong_type(const ConfigNode& node, const std::string& path, const char* expected) {
    return wrong(node, path, std::string("must be ") + expected + ", not " + node.type_name());
  }
  Status refuse_unknown() const;

  template <typename T>
  static Status read(const ConfigNode& node, const std::string& path, T& field) {
    if constexpr (internal::OptionStruct<T>) {
      return OptionBinder(node, path).bind(field);
    } else if constexpr (internal::is_vector<T>) {
      return read_list(node, path, field);
    } else if constexpr (internal::is_optional<T>) {
      return read(node, path, field.emplace());
    } else if constexpr (NamedEnum<T>) {
      return read_name(node, path, field);
    } else if constexpr (std::same_as<T, double>) {
      if (const auto* integer = std::get_if<int64_t>(&node.value)) {
        field = static_cast<double>(*integer);
        return {};
      }
      return read_exact(node, path, field, "a number");
    } else if constexpr (std::same_as<T, bool>) {
      return read_exact(node, path, field, "true or false");
    } else if constexpr (std::same_as<T, std::string>) {
      return read_exact(node, path, field, "text");
    } else {
      static_assert(std::same_as<T, int64_t>, "an option of this type cannot be configured");
      return read_exact(node, path, field, "an integer");
    }
  }

  template <typename T>
  static Status read_exact(const ConfigNode& node, const std::string& path, T& field,
                           const char* expected) {
    const auto* value = std::get_if<T>(&node.value);
    if (value == nullptr) return wrong_type(node, path, expected);
    field = *value;
    return {};
  }

  template <typename T>
  static Status read_list(const ConfigNode& node, const std::string& path, std::vector<T>& field) {
    field.clear();
    const auto* items = node.array();
    if (items == nullptr) {  // one value stands for a list of one
      T item{};
      RECMILL_RETURN_IF_ERROR(read(node, path, item));
      field.push_back(std::move(item));
      return {};
    }
    for (size_t i = 0; i < items->size(); ++i) {
      T item{};
      RECMILL_RETURN_IF_ERROR(read((*items)[i], path + "[" + std::to_string(i) + "]", item));
      field.push_back(std::move(item));
    }
    return {};
  }

  template <NamedEnum Enum>
  static Status read_name(const ConfigNode& node, const std::string& path, Enum& field) {
    std::string text;
    RECMILL_RETURN_IF_ERROR(read_exact(node, path, text, "text"));
    std::vector<std::string> names;
    for (const auto& [value, name] : EnumNames<Enum>::names) {
      if (name == text) {
        field = value;
        return {};
      }
      names.emplace_back(name);
    }
    return wrong_name(node, path, text, names);
  }
  static Status wrong_name(const ConfigNode& node, const std::string& path, const std::string& text,
                           const std::vector<std::string>& names);

  const ConfigNode& section_;
  const std::string path_;
  std::vector<std::string> known_;
  Status status_;
};

/// Reads a configuration into `options`, whose numbers are then in their ranges.
template <typename Options>
Status bind_options(const ConfigNode& root, Options& options) {
  RECMILL_RETURN_IF_ERROR(OptionBinder(root, "").bind(options));
  return locate(check_ranges(options), root);
}

/// Writes an option struct as a JSON object: the configuration as resolved.
class OptionWriter {
 public:
  template <typename Options>
  static Json write(const Options& options) {
    OptionWriter writer;
    describe(writer, const_cast<Options&>(options));  // visitors take fields by reference
    return std::move(writer.object_);
  }

  template <typename T, typename... Rest>
  void operator()(std::string_view key, T& field, std::string_view, Rest...) {
    if constexpr (internal::is_optional<T>) {
      if (field.has_value()) object_[std::string(key)] = value_of(*field);
    } else {
      object_[std::string(key)] = value_of(field);
    }
  }

  template <typename T>
  static Json value_of(const T& field) {
    if constexpr (internal::OptionStruct<T>) {
      return write(field);
    } else if constexpr (internal::is_vector<T>) {
      Json list = Json::array();
      for (const auto& item : field) list.push_back(value_of(item));
      return list;
    } else if constexpr (NamedEnum<T>) {
      return std::string(name_of(field));
    } else {
      return field;
    }
  }

 private:
  Json object_ = Json::object();
};

/// Writes the reference of an option struct as a Markdown table, nested structs as rows
/// "outer.inner".
class OptionReference {
 public:
  template <typename Options>
  static std::string markdown(const std::string& prefix) {
    OptionReference reference;
    Options options;
    reference.prefix_ = prefix;
    describe(reference, options);
    return "| key | default | meaning |\n|---|---|---|\n" + reference.rows_;
  }

  template <typename T, typename... Rest>
  void operator()(std::string_view key, T& field, std::string_view description,
                  const Rest&... rest) {
    constexpr bool kReal = std::is_floating_point_v<T> || std::same_as<T, std::vector<double>> ||
                           std::same_as<T, std::optional<double>>;
    const std::string documentation =
        with_range(description, internal::range_of<T>(rest...), kReal);
    const std::string path = prefix_.empty() ? std::string(key) : prefix_ + "." + std::string(key);
    if constexpr (internal::OptionStruct<T>) {
      nested(path, field);
    } else if constexpr (internal::is_vector<T>) {
      using Item = typename T::value_type;
      rows_ += row(path, field, documentation);
      if constexpr (internal::OptionStruct<Item>) {
        Item item{};
        nested(path + "[]", item);
      }
    } else if constexpr (internal::is_optional<T>) {
      rows_ += line(path, "", documentation);
    } else {
      rows_ += row(path, field, documentation);
    }
  }

  /// The row of one key, which is not a section: its value as the file has it.
  template <typename T>
  static std::string row(const std::string& path, const T& field, std::string_view documentation) {
    return line(path, OptionWriter::value_of(field).dump(), documentation);
  }

 private:
  template <typename T>
  void nested(const std::string& path, T& field) {
    const std::string outer = std::exchange(prefix_, path);
    describe(*this, field);
    prefix_ = outer;
  }
  /// Ranges are told of every real number, and of integers that may not be any from 0 on.
  static std::string with_range(std::string_view description, const Range& range, bool real);
  static std::string line(const std::string& path, const std::string& value,
                          std::string_view documentation) {
    return "| `" + path + "` | `" + value + "` | " + std::string(documentation) + " |\n";
  }
  std::string prefix_;
  std::string rows_;
};

}  // namespace recmill::config
