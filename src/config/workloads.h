// SPDX-License-Identifier: Apache-2.0
// The configurations of workloads/, which the program carries: a bare name stands for one wherever
// a configuration file may be named.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace recmill::config {

struct Workload {
  std::string_view name;  // of the file, without .toml
  std::string_view text;
};

/// All of them, by name.
std::span<const Workload> workloads();

/// "a, b, c": the names.
std::string workload_names();

/// The text of one; an unknown name is refused in one line, with the nearest known one and all.
Result<std::string_view> workload_text(const std::string& name);

}  // namespace recmill::config
