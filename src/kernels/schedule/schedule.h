// SPDX-License-Identifier: Apache-2.0
// A schedule says how one feature's kernel goes about its work: a template and the values of its
// parameters. A plain value; what it computes is the family's business and the same for all of
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/schedule/feature_shape.h"
#include "schema/cluster_spec.h"

namespace recmill::kernels {

/// In which order a template sums. Deterministic mode admits only `contract`, the architecture's
/// one order of summation.
enum class Order { contract, reorders };

struct ParameterValue {
  std::string name;
  int64_t value = 0;
  bool operator==(const ParameterValue&) const = default;
};

struct Schedule {
  std::string of;                          // name of the template
  std::vector<ParameterValue> parameters;  // in the template's order

  /// States it whole: "bags_interleaved samples=4 prefetch=16".
  std::string name() const;
  bool operator==(const Schedule&) const = default;
};

/// What Schedule::name() made. A bad text is an error that quotes it.
Result<Schedule> parse_schedule(const std::string& text);

/// A parameter of a template and the values worth trying.
struct Tunable {
  std::string name;
  std::string meaning;
  std::vector<int64_t> values;
};

/// The values of one schedule's parameters in the order of the template's `tunables`.
using ParameterValues = std::span<const int64_t>;

/// What a template says of itself, whatever its family; the family adds the body.
struct TemplateSpec {
  std::string name;     // lower case and underscores
  std::string meaning;  // one line
  Order order = Order::contract;
  std::vector<Tunable> tunables;
  /// Whether these values make sense for the feature on the device. A schedule that is not valid is
  /// never run: validity is part of correctness, not of speed.
  std::function<bool(const FeatureShape&, ParameterValues, const DeviceSpec&)> valid;
  /// Bytes that one running task needs besides its arguments, aligned to 64; null: none.
  std::function<int64_t(const FeatureShape&, ParameterValues)> scratch_bytes;
};

/// Every valid schedule of the template for the feature: the product of the tunables' values, the
/// last one fastest.
std::vector<Schedule> candidates(const TemplateSpec& spec, const FeatureShape& shape,
                                 const DeviceSpec& device);

/// The values of `schedule` in the template's order. Fails, naming schedule and parameter, where
/// one is missing, foreign, or not among the template's values.
Result<std::vector<int64_t>> values_of(const Schedule& schedule, const TemplateSpec& spec);

}  // namespace recmill::kernels
