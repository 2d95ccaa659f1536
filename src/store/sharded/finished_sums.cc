// SPDX-License-Identifier: Apache-2.0
#include "store/sharded/finished_sums.h"

#include <algorithm>
#include <numeric>

#include "table/row_map.h"

namespace recmill::store {
namespace {

constexpr int64_t kRowsATask = 256;

}  // namespace

FinishedSums::FinishedSums(Communicator& communicator,
                           const std::vector<table::EmbeddingTable>& tables, ThreadPool& pool,
                           bool shared)
    : communicator_(communicator),
      tables_(tables),
      pool_(pool),
      copied_(tables.size()),
      mail_(communicator, shared),
      incoming_(tables.size()) {
  for (const auto& table : tables) widths_.push_back(table.spec().dim);
}

Result<std::vector<TableSums>> FinishedSums::pass_on(
    std::span<const TableSums> sums, std::span<const std::span<const table::RowPlace>> places) {
  address(sums, places);
  for (size_t t = 0; t < tables_.size(); ++t) fill(sums[t], t);
  RECMILL_RETURN_IF_ERROR(mail_.exchange());
  return collect();
}

// Begins a message to each other holder: the rows, and room for their gradients.
void FinishedSums::address(std::span<const TableSums> sums,
                           std::span<const std::span<const table::RowPlace>> places) {
  for (size_t t = 0; t < tables_.size(); ++t) {
    Copied& copied = copied_[t];
    copied.indices.clear();
    const table::RowShare& share = tables_[t].share();
    for (size_t i = 0; share.has_copies() && i < sums[t].rows.size(); ++i)
      if (share.map()->is_copied(places[t][i])) copied.indices.push_back(static_cast<int64_t>(i));
    NamedRows rows;
    if (!copied.indices.empty()) rows = {sums[t].rows, places[t], copied.indices};
    copied.by_rank.to_recipients(rows, tables_[t], {false, Recipients::holders});
    copied.by_rank.of[communicator_.rank()] = {};  // it has them
  }
  std::vector<RowExchange::Shape> shapes(communicator_.ranks());
  for (size_t rank = 0; rank < shapes.size(); ++rank) {
    shapes[rank].widths = widths_;
    for (const Copied& copied : copied_)
      shapes[rank].counts.push_back(copied.by_rank.of[rank].size());
  }
  mail_.begin(shapes);
}

void FinishedSums::fill(const TableSums& sums, size_t table) {
  const Copied& copied = copied_[table];
  const auto count = static_cast<int64_t>(copied.indices.size());
  const int64_t dim = widths_[table];
  std::vector<float> finished(count * dim);
  pool_.run_ranges(count, kRowsATask, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      kernels::sum_parts(sums.parts, copied.indices[i], 1, dim, finished.data() + i * dim);
  });
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    const auto [begin, end] = copied.by_rank.of[rank];
    const auto rows = mail_.to(rank).rows(table);
    float* values = mail_.to(rank).values(table);
    for (int64_t at = begin; at < end; ++at, values += dim) {
      const int64_t i = copied.by_rank.order[at];
      rows[at - begin] = sums.rows[copied.indices[i]];
      std::copy_n(finished.data() + i * dim, dim, values);
    }
  }
}

Result<std::vector<TableSums>> FinishedSums::collect() {
  for (Incoming& incoming : incoming_) {
    incoming.rows.clear();
    incoming.parts.clear();
  }
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    RECMILL_ASSIGN_OR_RETURN(const RowMessage message, mail_.from(rank, widths_));
    for (size_t t = 0; t < tables_.size(); ++t) {
      const auto rows = message.rows(t);
      incoming_[t].rows.insert(incoming_[t].rows.end(), rows.begin(), rows.end());
      for (int64_t i = 0; i < message.count(t); ++i)
        incoming_[t].parts.push_back({message.values(t) + i * widths_[t], 0});
    }
  }
  std::vector<TableSums> sums(tables_.size());
  for (size_t t = 0; t < tables_.size(); ++t) {
    Incoming& incoming = incoming_[t];
    incoming.begins.resize(incoming.rows.size() + 1);
    std::iota(incoming.begins.begin(), incoming.begins.end(), 0);
    sums[t] = {incoming.rows, {incoming.begins, incoming.parts}};
  }
  return sums;
}

}  // namespace recmill::store
