// SPDX-License-Identifier: Apache-2.0
// Reads the parameters of an op. Errors name the key.
#pragma once

#include <memory>
#include <string>

#include "base/json/json.h"
#include "base/status.h"
#include "preprocess/ops/op.h"

namespace recmill::preprocess {

inline Status wrong_parameter(const char* key, const char* expected) {
  return Status::Failed(std::string("parameter '") + key + "' must be " + expected);
}

inline Result<double> number_parameter(const Json& parameters, const char* key) {
  if (!parameters.contains(key) || !parameters[key].is_number()) {
    return wrong_parameter(key, "a number");
  }
  return parameters[key].get<double>();
}

/// An unsigned 64-bit integer; a negative one counts by two's complement.
inline Result<uint64_t> id_parameter(const Json& parameters, const char* key) {
  if (!parameters.contains(key) || !parameters[key].is_number_integer()) {
    return wrong_parameter(key, "an integer");
  }
  return parameters[key].is_number_unsigned()
             ? parameters[key].get<uint64_t>()
             : static_cast<uint64_t>(parameters[key].get<int64_t>());
}

/// An integer of at least 1.
inline Result<int64_t> count_parameter(const Json& parameters, const char* key) {
  RECMILL_ASSIGN_OR_RETURN(const uint64_t value, id_parameter(parameters, key));
  const auto count = static_cast<int64_t>(value);
  if (count < 1) return wrong_parameter(key, "at least 1");
  return count;
}

}  // namespace recmill::preprocess
