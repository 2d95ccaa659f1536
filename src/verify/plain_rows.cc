// SPDX-License-Identifier: Apache-2.0
#include "verify/plain_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <string>

#include "comm/gather_values.h"
#include "table/embedding_table.h"

namespace recmill::train {
namespace {

template <typename T>
std::vector<T> values_of(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// Both [count][columns], of elements from `first` on.
Status compare_column(const std::string& what, const store::RowBlock& block, int64_t first,
                      std::span<const float> engine, std::span<const float> plain) {
  for (size_t at = 0; at < engine.size(); ++at) {
    if (std::bit_cast<uint32_t>(engine[at]) == std::bit_cast<uint32_t>(plain[at])) continue;
    const auto width = static_cast<int64_t>(engine.size()) / block.count;
    const auto place = static_cast<int64_t>(at);
    return Status::Failed(fmt::format("{}, row {}, element {}: engine {}, plain {}", what,
                                      block.row(place / width), first + place % width, engine[at],
                                      plain[at]));
  }
  return {};
}

}  // namespace

Result<PlainRows> PlainRows::blank(const ModelSpec& spec) {
  PlainRows made;
  for (const TableSpec& table : spec.tables) {
    auto& columns = made.tables_.emplace_back();
    const auto add = [&](int64_t width) -> Status {
      auto values = Buffer::allocate(static_cast<size_t>(table.rows * width) * sizeof(float));
      if (!values.ok())
        return values.status().at("table " + table.name + ", rows of the plain run");
      columns.push_back({width, *std::move(values)});
      return {};
    };
    RECMILL_RETURN_IF_ERROR(add(table.dim));
    for (const table::StateColumn& column : table::row_state(table))
      RECMILL_RETURN_IF_ERROR(add(column.width));
  }
  return made;
}

void PlainRows::keep(const store::RowBlock& block) {
  auto& columns = tables_[block.table];
  for (size_t c = 0; c < columns.size(); ++c) {
    const std::span<const float> from = c == 0 ? block.weights : block.state[c - 1];
    const int64_t width = columns[c].width;
    const auto to = columns[c].values.as<float>();
    for (int64_t i = 0; i < block.count; ++i)
      std::ranges::copy(from.subspan(i * width, width), to.begin() + block.row(i) * width);
  }
}

void PlainRows::append(int table, std::span<const int64_t> rows, ColumnRange columns,
                       std::vector<float>& to) const {
  for (const Column& column : tables_[table]) {
    const auto values = column.values.as<const float>();
    const ColumnRange of = ColumnRange{0, column.width}.common(columns);
    for (const int64_t row : rows) {
      const auto from =
          values.subspan(row * column.width, column.width).subspan(of.first, of.count);
      to.insert(to.end(), from.begin(), from.end());
    }
  }
}

RowComparison::RowComparison(const ModelSpec& spec, const PlainRows* plain,
                             Communicator& communicator)
    : spec_(spec), plain_(plain), communicator_(communicator) {}

// A round: rank 0 gets the requests, a table, columns and rows of it each, from ranks that are
// through none, and every rank its answer: whether there was any request, then the rows' values.
Result<RowComparison::Answer> RowComparison::ask(std::span<const int64_t> request) {
  std::vector<std::span<const std::byte>> outgoing(communicator_.ranks());
  outgoing[0] = std::as_bytes(request);
  RECMILL_ASSIGN_OR_RETURN(const Received requests, communicator_.all_to_all(outgoing));
  std::vector<std::vector<float>> answered(outgoing.size());
  if (plain_ != nullptr) answered = answers(requests);
  for (size_t rank = 0; rank < outgoing.size(); ++rank)
    outgoing[rank] = std::as_bytes(std::span(answered[rank]));
  RECMILL_ASSIGN_OR_RETURN(const Received received, communicator_.all_to_all(outgoing));
  auto values = values_of<float>(received.from(0));
  const bool some_asked = values.at(0) != 0.0f;
  values.erase(values.begin());
  return Answer{some_asked, std::move(values)};
}

std::vector<std::vector<float>> RowComparison::answers(const Received& requests) const {
  std::vector<std::vector<float>> answers(communicator_.ranks(),
                                          {requests.bytes.empty() ? 0.0f : 1.0f});
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    const auto request = values_of<int64_t>(requests.from(rank));
    if (request.empty()) continue;
    plain_->append(static_cast<int>(request[0]), std::span(request).subspan(3),
                   {request[1], request[2]}, answers[rank]);
  }
  return answers;
}

Status RowComparison::compare(const store::RowBlock& block) {
  const TableSpec& table = spec_.tables[block.table];
  const ColumnRange columns = block.columns_of(table.dim);
  std::vector<int64_t> request{block.table, columns.first, columns.count};
  for (int64_t i = 0; i < block.count; ++i) request.push_back(block.row(i));
  RECMILL_ASSIGN_OR_RETURN(const Answer answer, ask(request));
  std::span<const float> plain = answer.values;
  const auto next = [&](std::span<const float> engine, const std::string& what) {
    const auto column = plain.first(engine.size());
    plain = plain.subspan(engine.size());
    return compare_column("table " + table.name + what, block, columns.first, engine, column);
  };
  RECMILL_RETURN_IF_ERROR(next(block.weights, ""));
  const table::RowState state = table::row_state(table);
  for (size_t c = 0; c < state.size(); ++c)
    RECMILL_RETURN_IF_ERROR(next(block.state[c], fmt::format(", state {}", state[c].name)));
  compared_ += block.count * columns.count;
  return {};
}

Status RowComparison::finish() {
  bool some_asked = true;
  while (some_asked) {
    RECMILL_ASSIGN_OR_RETURN(const Answer answer, ask({}));
    some_asked = answer.some_asked;
  }
  RECMILL_ASSIGN_OR_RETURN(const auto counts, gather_values(compared_, communicator_));
  const auto compared = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  int64_t there = 0;
  for (const TableSpec& table : spec_.tables) there += table.rows * table.dim;
  if (compared == there) return {};
  return Status::Failed(fmt::format("ranks own {} weights of {}", compared, there));
}

}  // namespace recmill::train
