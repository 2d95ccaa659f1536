// SPDX-License-Identifier: Apache-2.0
#include "config/option_binder.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace recmill::config {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

/// Empty: none is near enough to be meant.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 2) + 1;
  for (const auto& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string near = nearest(word, candidates);
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

std::string OptionReference::with_range(std::string_view description, const Range& range,
                                        bool real) {
  std::string text = range_text(range);
  if (real && text.empty()) text = "any finite number";
  if (text.empty() || (!real && text == "at least 0")) return std::string(description);
  return fmt::format("{}{}{}", description, description.empty() ? "" : "; ", text);
}

Status OptionBinder::refuse_unknown() const {
  for (const auto& [key, node] : *section_.table()) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
      return wrong(node, path_.empty() ? key : path_ + "." + key,
                   "is not a known key" + suggestion(key, known_));
    }
  }
  return {};
}

Status OptionBinder::wrong_name(const ConfigNode& node, const std::string& path,
                                const std::string& text, const std::vector<std::string>& names) {
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
  return wrong(node, path, "must be one of " + list + ", not '" + text + "'");
}

}  // namespace recmill::config
