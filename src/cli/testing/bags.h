// SPDX-License-Identifier: Apache-2.0
// A small run with tables of several sizes and dimensions, as a configuration.
#pragma once

#include <string>

namespace recmill::cli {

/// 6000 generated rows and 1000 held out, of three features of one id and three of bags, on 2
/// threads. `ids` and `bags`: further lines of their [[workload.lines]]; `rest`: of [train], and
/// sections after it.
inline std::string bags_config(const std::string& ids, const std::string& bags,
                               const std::string& rest) {
  return R"([data]
format = "synthetic"
[data.synthetic]
rows = 6000
eval_rows = 1000
shape = "columns"
planted.crosses = 0
[[workload.lines]]
kind = "fixed"
count = 3
mean = 1
dim_counts = [1, 1, 1]
)" + ids +
         R"([[workload.lines]]
kind = "normal"
count = 3
dims = [8, 32, 5]
dim_counts = [1, 1, 1]
)" + bags +
         R"([model]
kind = "mlp"
top = [8, 1]
[train]
batch_size = 256
threads = 2
)" + rest;
}

}  // namespace recmill::cli
