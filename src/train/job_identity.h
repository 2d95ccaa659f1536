// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace recmill::train {

/// What ranks of a job have in common beside the data.
struct JobIdentity {
  std::string build;   // what computes and carries answers: name and version, a line each
  std::string config;  // the configuration as resolved
};

}  // namespace recmill::train
