// SPDX-License-Identifier: Apache-2.0
#include "table/initial_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/hash.h"
#include "base/uniform_weight.h"
#include "kernels/row_values.h"

namespace recmill::table {
namespace {

float scale_of(const TableSpec& spec) {
  return static_cast<float>(spec.initial_scale != 0.0
                                ? spec.initial_scale
                                : 1.0 / std::sqrt(static_cast<double>(spec.rows)));
}

}  // namespace

InitialRows::InitialRows(const TableSpec& spec, uint64_t seed, ColumnRange columns)
    : record_(spec, columns.count),
      state_(row_state(spec, columns.count)),
      random_(seed, Purpose::initial_row, hash_bytes(spec.name)),
      first_column_(columns.first),
      scale_(scale_of(spec)) {}

void InitialRows::make(int64_t row, const kernels::RowStorage& rows, int64_t slot) const {
  std::array<uint32_t, 4> words{};
  for (int64_t e = 0; e < rows.dim; ++e) {
    if (e % 4 == 0) words = random_.block(static_cast<uint64_t>(row), (first_column_ + e) / 4);
    kernels::set_weight(rows, slot, e, uniform_weight(words[e % 4], scale_));
  }
  const bool by_row = record_.has_row_state();
  if (by_row) rows.row_state[slot] = state_.back().initial;
  for (size_t c = 0; c + (by_row ? 1 : 0) < state_.size(); ++c)
    std::fill_n(rows.state(slot) + static_cast<int64_t>(c) * rows.dim, rows.dim, state_[c].initial);
}

void InitialRows::make(int64_t row, std::byte* record) const {
  std::memset(record, 0, static_cast<size_t>(record_.bytes()));
  make(row, record_.in_place(record), 0);
}

}  // namespace recmill::table
