// SPDX-License-Identifier: Apache-2.0
#include "schema/option_ranges.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace recmill {
namespace {

std::string number_text(double value) {
  const bool whole = value == std::floor(value) && std::abs(value) < 0x1p63;
  return whole ? fmt::format("{:.0f}", value) : fmt::format("{:.12g}", value);
}

}  // namespace

std::string range_text(const Range& range) {
  const std::string from = (range.open_least ? "above " : "at least ") + number_text(range.least);
  const std::string to = (range.open_most ? "below " : "at most ") + number_text(range.most);
  if (range.has_least() && range.has_most()) return from + " and " + to;
  return range.has_least() ? from : range.has_most() ? to : "";
}

Status internal::outside(const std::string& path, int64_t value, const Range& range) {
  return Status::BadRequest(fmt::format("{}: must be {}, is {}", path, range_text(range), value));
}

Status internal::outside(const std::string& path, double value, const Range& range) {
  const bool too_large =
      std::isfinite(value) && std::abs(value) > std::numeric_limits<float>::max();
  std::string must = range_text(range);
  if (!std::isfinite(value) || must.empty())
    must = "a finite number" + (must.empty() ? "" : " " + must);
  return Status::BadRequest(fmt::format("{}: must be {}, is {:.12g}{}", path, must, value,
                                        too_large ? ", which is beyond float32's 3.4e38" : ""));
}

}  // namespace recmill
