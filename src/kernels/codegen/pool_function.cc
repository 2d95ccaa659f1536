// SPDX-License-Identifier: Apache-2.0
#include "kernels/codegen/pool_function.h"

#include <fmt/format.h>

namespace recmill::kernels::codegen {

std::string PoolFunction::name() const {
  return fmt::format("{}: {} of {}{} {} every {} bytes{}", schedule.name(), name_of(pooling),
                     weighted ? "weighted " : "", dim, name_of(precision), row_bytes,
                     two_memories ? " in two memories" : "");
}

}  // namespace recmill::kernels::codegen
