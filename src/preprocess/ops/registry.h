// SPDX-License-Identifier: Apache-2.0
// All stateless ops by name. The list is that of ops/CMakeLists.txt; an op "x" has a file pair
// x.{h,cc} that defines make_x().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "preprocess/ops/op.h"

namespace recmill::preprocess {

/// Errors name the op and the parameter.
Result<std::unique_ptr<Op>> make_op(const OpSpec& spec);

/// Names of all ops, sorted.
const std::vector<std::string>& op_names();

}  // namespace recmill::preprocess
