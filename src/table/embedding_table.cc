// SPDX-License-Identifier: Apache-2.0
#include "table/embedding_table.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/row_values.h"
#include "table/initial_rows.h"
#include "table/optimizers/row_formulas.h"
#include "table/row_record.h"

namespace recmill::table {
namespace {

constexpr int64_t kFillRows = 4096;  // rows of one task

}  // namespace

RowState row_state(const TableSpec& spec) {
  return row_state(spec, spec.dim);
}

RowState row_state(const TableSpec& spec, int64_t columns) {
  RowState state;
  if (spec.frozen) return state;
  with_formula(spec.optimizer, {}, [&]<class Formula>(const Formula&) {
    static_assert(Formula::kState.size() ==
                  Formula::kElementColumns + (Formula::kRowState ? 1 : 0));
    for (const StateName& column : Formula::kState) {
      const double initial = column.from_accumulator ? spec.optimizer.initial_accumulator : 0.0;
      const bool by_row = state.size() == Formula::kElementColumns;
      state.push_back({column.name, by_row ? 1 : columns, static_cast<float>(initial)});
    }
  });
  return state;
}

kernels::RowStorage EmbeddingTable::layout(const TableSpec& spec, const TableShare& share) {
  kernels::RowStorage rows = RowRecord(spec, share.own_columns(spec.dim).count).storage();
  rows.count = share.rows.slots();
  return rows;
}

void EmbeddingTable::need(const TableSpec& spec, const TableShare& share, int device,
                          MemoryLedger& ledger) {
  const auto rows = layout(spec, share);
  const int64_t weights = rows.count * rows.dim * kernels::bytes_of(spec.precision);
  ledger.items.push_back({"table " + spec.name + ": weights", device, weights});
  const int64_t state = bytes(spec, share) - weights;
  if (state > 0)
    ledger.items.push_back({"table " + spec.name + ": optimizer state", device, state});
}

int64_t EmbeddingTable::bytes(const TableSpec& spec, const TableShare& share) {
  const auto rows = layout(spec, share);
  return rows.count * (rows.stride + (RowRecord(spec).has_row_state() ? 4 : 0));
}

int64_t EmbeddingTable::row_bytes(const TableSpec& spec) {
  return layout(spec, RowShare(spec.rows, 0, 1)).stride;
}

EmbeddingTable::MappedBytes EmbeddingTable::mapped_bytes(const TableSpec& spec,
                                                         const TableShare& share) {
  const auto rows = layout(spec, share);
  const int64_t by_row = RowRecord(spec).has_row_state() ? 4 : 0;
  MappedBytes mapped;
  for (const int64_t bytes_of_slot : {rows.stride, by_row}) {
    const auto bytes = static_cast<size_t>(rows.count * bytes_of_slot);
    const size_t room = SharedPages::room_of(bytes);
    mapped.shared += static_cast<int64_t>(room);
    if (room == 0) mapped.own += static_cast<int64_t>(Buffer::mapped_bytes(bytes));
  }
  return mapped;
}

EmbeddingTable EmbeddingTable::without_rows(const TableSpec& spec, uint64_t seed,
                                            const TableShare& share) {
  RECMILL_CHECK(share.rows.rows() == spec.rows, spec.name);
  EmbeddingTable table;
  table.spec_ = spec;
  table.share_ = share;
  table.seed_ = seed;
  table.state_ = row_state(spec, table.columns().count);
  table.rows_ = layout(spec, share);
  return table;
}

Status EmbeddingTable::allocate(SharedPages* pages, const TableRoom& room) {
  if (spec_.dim < 1 || spec_.rows < 1) {
    return Status::BadRequest("table " + spec_.name + ": rows and dim must be at least 1, are " +
                              std::to_string(spec_.rows) + " and " + std::to_string(spec_.dim));
  }
  const auto take = [&](int64_t bytes) {
    return pages != nullptr ? pages->take(static_cast<size_t>(bytes))
                            : Buffer::allocate(static_cast<size_t>(bytes));
  };
  rows_.data = room.records;
  if (room.records == nullptr) {
    auto own = take(rows_.count * rows_.stride);
    if (!own.ok()) return own.status().at("table " + spec_.name);
    records_ = *std::move(own);
    rows_.data = records_.data();
  }
  if (!RowRecord(spec_).has_row_state()) return {};
  rows_.row_state = room.row_state;
  if (room.row_state != nullptr) return {};
  auto by_row = take(rows_.count * 4);
  if (!by_row.ok()) return by_row.status().at("table " + spec_.name);
  row_state_ = *std::move(by_row);
  rows_.row_state = row_state_.as<float>().data();
  return {};
}

Result<EmbeddingTable> EmbeddingTable::create(const TableSpec& spec, uint64_t seed,
                                              const TableShare& share, ThreadPool& pool,
                                              SharedPages* pages) {
  EmbeddingTable table = without_rows(spec, seed, share);
  RECMILL_RETURN_IF_ERROR(table.allocate(pages));
  table.fill(pool);
  return table;
}

void EmbeddingTable::fill(ThreadPool& pool) {
  const InitialRows initial(spec_, seed_, columns());
  if (share().map() == nullptr) {
    pool.run_ranges(rows_.count, kFillRows, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) initial.make(share().row(slot), rows_, slot);
    });
  } else if (share().slots() > 0) {
    pool.run_ranges(spec_.rows, kFillRows, [&](int64_t begin, int64_t end) {
      for (int64_t row = share().next_held(begin, end); row < end;
           row = share().next_held(row + 1, end))
        initial.make(row, rows_, share().slot(row));
    });
  }
}

void EmbeddingTable::read(int64_t first, int64_t count, std::span<float> weights,
                          std::span<const std::span<float>> state) const {
  RECMILL_CHECK(first >= 0 && count >= 0 && first + count <= rows_.count, spec_.name);
  RECMILL_CHECK(static_cast<int64_t>(weights.size()) == count * rows_.dim, spec_.name);
  RECMILL_CHECK(state.empty() || state.size() == state_.size(), spec_.name);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t e = 0; e < rows_.dim; ++e)
      weights[i * rows_.dim + e] = kernels::weight_value(rows_, first + i, e);
    for (size_t c = 0; c < state.size(); ++c) {
      const float* from = state_column(first + i, c);
      std::copy_n(from, state_[c].width, state[c].data() + i * state_[c].width);
    }
  }
}

void EmbeddingTable::write(int64_t first, int64_t count, std::span<const float> weights,
                           std::span<const std::span<const float>> state) {
  RECMILL_CHECK(first >= 0 && count >= 0 && first + count <= rows_.count, spec_.name);
  RECMILL_CHECK(static_cast<int64_t>(weights.size()) == count * rows_.dim, spec_.name);
  RECMILL_CHECK(state.empty() || state.size() == state_.size(), spec_.name);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t e = 0; e < rows_.dim; ++e)
      kernels::set_weight(rows_, first + i, e, weights[i * rows_.dim + e]);
    for (size_t c = 0; c < state.size(); ++c)
      std::copy_n(state[c].data() + i * state_[c].width, state_[c].width,
                  state_column(first + i, c));
  }
}

float* EmbeddingTable::state_column(int64_t slot, size_t column) const {
  if (rows_.row_state != nullptr && column + 1 == state_.size()) return rows_.row_state + slot;
  return rows_.state(slot) + static_cast<int64_t>(column) * rows_.dim;
}

}  // namespace recmill::table
