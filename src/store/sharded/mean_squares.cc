// SPDX-License-Identifier: Apache-2.0
#include "store/sharded/mean_squares.h"

#include <algorithm>

#include "kernels/row_update/with_l2.h"
#include "kernels/row_values.h"
#include "table/optimizers/row_formulas.h"

namespace recmill::store {
namespace {

constexpr int64_t kRowsATask = 256;

/// To the gradient of this rank's columns of a row.
void add_l2(const table::EmbeddingTable& table, int64_t row, float l2, float* gradient) {
  const int64_t slot = table.share().slot(row);
  for (int64_t e = 0; e < table.rows().dim; ++e)
    gradient[e] = kernels::with_l2(gradient[e], kernels::weight_value(table.rows(), slot, e), l2);
}

}  // namespace

MeanSquares::MeanSquares(Communicator& communicator,
                         const std::vector<table::EmbeddingTable>& tables, ThreadPool& pool)
    : communicator_(communicator),
      tables_(tables),
      pool_(pool),
      lanes_(tables.size()),
      means_(tables.size()) {
  for (size_t t = 0; t < tables.size(); ++t) {
    const TableSpec& spec = tables[t].spec();
    const table::RowState state = table::row_state(spec);
    const bool by_row = !state.empty() && state[0].width < spec.dim;
    if (!by_row || !tables[t].column_split().is_split()) continue;
    split_.push_back(t);
    rounds_ = std::max(rounds_, tables[t].column_split().pieces());
  }
}

// In round k the owner of piece k of each table has its lanes as they are after that piece.
Status MeanSquares::exchange(std::span<const TableSums> gradients) {
  for (const size_t t : split_) {
    const bool owned = tables_[t].columns().count > 0;
    const auto rows = owned ? static_cast<int64_t>(gradients[t].parts.begins.size()) - 1 : 0;
    lanes_[t].assign(rows, {});
    means_[t].resize(rows);
    if (tables_[t].columns().first == 0) fold(t, gradients[t]);
  }
  for (int round = 0; round < rounds_; ++round) {
    std::vector<std::vector<float>> to_rank(communicator_.ranks());
    for (const size_t t : split_) append(t, round, to_rank);
    std::vector<std::span<const std::byte>> bytes;
    for (const auto& floats : to_rank) bytes.push_back(std::as_bytes(std::span(floats)));
    RECMILL_ASSIGN_OR_RETURN(const Received received, communicator_.all_to_all(bytes));
    std::vector<std::span<const std::byte>> from_rank;
    for (int rank = 0; rank < communicator_.ranks(); ++rank)
      from_rank.push_back(received.from(rank));
    for (const size_t t : split_) {
      RECMILL_RETURN_IF_ERROR(take(t, round, from_rank));
      const auto& split = tables_[t].column_split();
      if (split.piece_of(communicator_.rank()) == round + 1) fold(t, gradients[t]);
    }
  }
  return {};
}

// Adds this rank's columns to the lanes; at the last owner, these are the row's.
void MeanSquares::fold(size_t table, const TableSums& gradients) {
  const float l2 = table::l2_of_gradients(tables_[table].spec().optimizer);
  const ColumnRange columns = tables_[table].columns();
  const int64_t dim = tables_[table].spec().dim;
  const bool last = columns.end() == dim;
  const auto rows = static_cast<int64_t>(lanes_[table].size());
  pool_.run_ranges(rows, kRowsATask, [&](int64_t begin, int64_t end) {
    std::vector<float> sums((end - begin) * columns.count);
    kernels::sum_parts(gradients.parts, begin, end - begin, columns.count, sums.data());
    for (int64_t row = begin; row < end; ++row) {
      auto& lanes = lanes_[table][row];
      float* const sum = sums.data() + (row - begin) * columns.count;
      if (l2 != 0.0f) add_l2(tables_[table], gradients.rows[row], l2, sum);
      kernels::add_squares(sum, columns.count, lanes);
      if (last) means_[table][row] = kernels::mean_square(lanes, dim);
    }
  });
}

// What this rank sends of a table: lanes to the owner of the next piece, means to all others.
void MeanSquares::append(size_t table, int round, std::vector<std::vector<float>>& to_rank) const {
  const auto& split = tables_[table].column_split();
  if (split.piece_of(communicator_.rank()) != round) return;
  if (round + 1 < split.pieces()) {
    auto& to = to_rank[split.rank_of(round + 1)];
    for (const kernels::SquareLanes& lanes : lanes_[table])
      to.insert(to.end(), lanes.begin(), lanes.end());
    return;
  }
  for (int piece = 0; piece < round; ++piece) {
    auto& to = to_rank[split.rank_of(piece)];
    to.insert(to.end(), means_[table].begin(), means_[table].end());
  }
}

// Takes what the owner of this round's piece sent here off its message.
Status MeanSquares::take(size_t table, int round,
                         std::vector<std::span<const std::byte>>& from_rank) {
  const auto& split = tables_[table].column_split();
  const int piece = split.piece_of(communicator_.rank());
  const bool at_last = round + 1 == split.pieces();
  if (round >= split.pieces() || piece < 0 || piece == round) return {};
  if (!at_last && piece != round + 1) return {};
  auto& from = from_rank[split.rank_of(round)];
  const auto to = at_last ? std::as_writable_bytes(std::span(means_[table]))
                          : std::as_writable_bytes(std::span(lanes_[table]));
  if (from.size() < to.size()) {
    return Status::Failed(communicator_.name(split.rank_of(round)) +
                          " has sent too few sums of squares of table '" +
                          tables_[table].spec().name + "'");
  }
  std::copy_n(from.begin(), to.size(), to.begin());
  from = from.subspan(to.size());
  return {};
}

}  // namespace recmill::store
