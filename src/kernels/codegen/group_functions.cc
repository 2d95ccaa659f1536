// SPDX-License-Identifier: Apache-2.0
#include "kernels/codegen/group_functions.h"

#include <algorithm>
#include <tuple>

namespace recmill::kernels::codegen {
namespace {

auto order_of(const PoolFunction& of) {
  std::vector<int64_t> values;
  for (const ParameterValue& parameter : of.schedule.parameters) values.push_back(parameter.value);
  return std::tuple(of.schedule.of, of.dim, std::move(values), of.row_bytes, of.precision,
                    of.pooling, of.weighted, of.scratch_bytes, of.two_memories);
}

}  // namespace

std::vector<PoolFunction> distinct_functions(std::span<const PoolFunction> wanted) {
  std::vector<PoolFunction> functions(wanted.begin(), wanted.end());
  std::sort(functions.begin(), functions.end(),
            [](const auto& a, const auto& b) { return order_of(a) < order_of(b); });
  functions.erase(std::unique(functions.begin(), functions.end()), functions.end());
  return functions;
}

std::vector<std::vector<PoolFunction>> group_functions(std::span<const PoolFunction> functions,
                                                       int64_t most) {
  const auto count = static_cast<int64_t>(functions.size());
  const int64_t groups = std::max<int64_t>(1, (count + most - 1) / most);
  std::vector<std::vector<PoolFunction>> made;
  for (int64_t g = 0; g < groups; ++g)
    made.emplace_back(functions.begin() + g * count / groups,
                      functions.begin() + (g + 1) * count / groups);
  return made;
}

}  // namespace recmill::kernels::codegen
