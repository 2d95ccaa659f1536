// SPDX-License-Identifier: Apache-2.0
// Inputs whose counts are known: input i looks up rows i mod (1 + i mod 50), (7i + 3) mod
// (1 + 3i mod 80) and i mod 7 of three tables.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>

namespace recmill::cli {

/// The first inputs as t.csv or e.csv has them.
inline std::string three_columns(int64_t inputs) {
  std::ostringstream rows;
  rows << "label,a,b,c\n";
  for (int64_t i = 0; i < inputs; ++i)
    rows << i % 2 << ',' << i % (1 + i % 50) << ',' << (7 * i + 3) % (1 + 3 * i % 80) << ','
         << i % 7 << '\n';
  return rows.str();
}

/// Trains on t.csv and is judged by e.csv; `top` keys, those of [data] and those behind [train] are
/// added.
inline std::string three_columns_config(const std::string& top, const std::string& data,
                                        const std::string& train) {
  return top + R"([data]
format = 'csv'
train = ['t.csv']
eval = ['e.csv']
columns = [{ name = 'label', role = 'label' },
           { name = 'a', role = 'id', id_text = 'integer' },
           { name = 'b', role = 'id', id_text = 'integer' },
           { name = 'c', role = 'id', id_text = 'integer' }]
)" + data +
         R"([embedding]
mapping = 'direct'
dim = 16
optimizer = { kind = 'sgd' }
[[tables]]
name = 'a'
rows = 20000
[[tables]]
name = 'b'
rows = 20000
[[tables]]
name = 'c'
rows = 7
[model]
kind = 'mlp'
top = [4, 1]
[train]
batch_size = 100
)" + train;
}

}  // namespace recmill::cli
