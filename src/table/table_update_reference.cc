// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "base/hash.h"
#include "kernels/row_update/apply_reference.h"
#include "table/optimizers/row_formulas.h"
#include "table/table_update.h"

namespace recmill::table {

Random rounding_of(const EmbeddingTable& table, const RowStep& step) {
  return rounding_of(table.seed(), hash_bytes(table.spec().name), step);
}

Random rounding_of(uint64_t seed, uint64_t table_key, const RowStep& step) {
  const uint64_t iteration = Random::mix(static_cast<uint64_t>(step.iteration));
  return Random(seed, Purpose::stochastic_rounding, table_key ^ iteration);
}

void update_tables_reference(std::span<const TableUpdate> updates, const RowStep& step) {
  for (const TableUpdate& update : updates) {
    EmbeddingTable& table = *update.table;
    if (table.spec().frozen) continue;
    const DistinctRows& distinct = *update.distinct;
    std::vector<float> sums(distinct.count() * table.rows().dim);
    const SliceRange whole{0, update.slices};
    kernels::sum_gradients_reference({update.distinct, update.gradients, table.rows().dim},
                                     {nullptr, 0, distinct.count()}, {&whole, 1}, sums.data());
    kernels::ApplyRange range{table.rows(), distinct.rows.data(), distinct.rows.data(),
                              sums.data(),  distinct.count(),     rounding_of(table, step)};
    range.l2 = l2_of_gradients(table.spec().optimizer);
    with_formula(table.spec().optimizer, step,
                 [&](const auto& formula) { kernels::apply_rows_reference(range, formula); });
  }
}

}  // namespace recmill::table
