// SPDX-License-Identifier: Apache-2.0
#include "store/row_exchange.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <string>

#include "kernels/embedding_pool/embedding_pool.h"
#include "table/table_update.h"

namespace recmill::store {
namespace {

constexpr size_t kMessageUnit = 8;   // words: a message ends where another may begin
constexpr int64_t kRowsATask = 256;  // rows summed by one task of the pool

// Words of a message; at least its counts.
size_t message_words(std::span<const int64_t> counts, std::span<const int64_t> widths) {
  int64_t rows = 0, values = 0;
  for (size_t t = 0; t < counts.size(); ++t) {
    rows += counts[t];
    values += counts[t] * widths[t];
  }
  const size_t words = counts.size() + rows + (values + 1) / 2;
  return (words + kMessageUnit - 1) / kMessageUnit * kMessageUnit;
}

}  // namespace

void RowsByOwner::group(std::span<const int64_t> rows, const table::EmbeddingTable& table) {
  const table::RowShare& share = table.share();
  const int64_t count = static_cast<int64_t>(rows.size());
  of.assign(share.ranks(), {});
  order.resize(count);
  place.resize(count);
  slots.resize(count);
  if (table.column_split().is_split()) {
    for (int rank = 0; rank < share.ranks(); ++rank)
      if (table.columns_of(rank).count > 0) of[rank].end = count;
    std::iota(order.begin(), order.end(), 0);
    std::iota(place.begin(), place.end(), 0);
    std::ranges::copy(rows, slots.begin());
    return;
  }
  std::vector<table::RowShare::Home> homes(count);
  for (int64_t i = 0; i < count; ++i) {
    homes[i] = share.home(rows[i]);
    ++of[homes[i].rank].end;
  }
  for (size_t rank = 1; rank < of.size(); ++rank) {
    of[rank].begin = of[rank - 1].end;
    of[rank].end += of[rank].begin;
  }
  std::vector<table::RowRange> left = of;
  for (int64_t i = 0; i < count; ++i) {
    place[i] = left[homes[i].rank].begin++;
    order[place[i]] = i;
    slots[place[i]] = homes[i].slot;
  }
}

void RowMessage::reset(std::span<const int64_t> counts, std::span<const int64_t> widths) {
  words_.resize(message_words(counts, widths));
  std::fill(words_.end() - kMessageUnit, words_.end(), 0);  // what the values leave of it
  std::copy(counts.begin(), counts.end(), words_.begin());
  point_into(words_.data(), widths);
}

Result<RowMessage> RowMessage::parse(std::span<const std::byte> bytes,
                                     std::span<const int64_t> widths) {
  const size_t words = bytes.size() / sizeof(int64_t);
  // Nobody writes through the pointers of a parsed message: its accessors are const.
  auto* data = reinterpret_cast<int64_t*>(const_cast<std::byte*>(bytes.data()));
  if (words < widths.size() || words != message_words({data, widths.size()}, widths)) {
    return Status::Failed("a message of rows has another size: " + std::to_string(bytes.size()) +
                          " bytes");
  }
  RowMessage message;
  message.point_into(data, widths);
  return message;
}

void RowMessage::point_into(int64_t* words, std::span<const int64_t> widths) {
  const size_t tables = widths.size();
  counts_.assign(words, words + tables);
  rows_.resize(tables);
  values_.resize(tables);
  words += tables;
  for (size_t t = 0; t < tables; ++t) {
    rows_[t] = words;
    words += counts_[t];
  }
  auto* floats = reinterpret_cast<float*>(words);
  for (size_t t = 0; t < tables; ++t) {
    values_[t] = floats;
    floats += counts_[t] * widths[t];
  }
}

RowExchange::RowExchange(Communicator& communicator, std::vector<table::EmbeddingTable>& tables,
                         TableSnapshots& snapshots, Pool& pool)
    : communicator_(communicator),
      tables_(tables),
      snapshots_(snapshots),
      pool_(pool),
      slots_(communicator, tables.size()),
      wanted_(communicator.ranks()),
      outgoing_(communicator.ranks()),
      replies_(communicator.ranks()),
      fetched_(tables.size()),
      distinct_(tables.size()),
      parts_(tables.size()),
      mean_squares_(communicator, tables, pool) {}

Result<std::vector<kernels::RowStorage>> RowExchange::fetch(std::span<const RowsByOwner> wanted) {
  const size_t tables = tables_.size();
  for (size_t rank = 0; rank < wanted_.size(); ++rank) {
    auto& [ends, slots] = wanted_[rank];
    ends.clear();
    slots.clear();
    for (const RowsByOwner& rows : wanted) {
      slots.insert(slots.end(), rows.slots.begin() + rows.of[rank].begin,
                   rows.slots.begin() + rows.of[rank].end);
      ends.push_back(static_cast<int64_t>(slots.size()));
    }
  }
  RECMILL_ASSIGN_OR_RETURN(
      const Received received,
      slots_.fetch(wanted_, [&](std::span<const GroupedIds> asked) { return answer(asked); }));
  for (size_t t = 0; t < tables; ++t) {
    fetched_[t].resize(wanted[t].order.size() * tables_[t].spec().dim);
  }
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    std::span<const std::byte> rows = received.from(rank);
    for (size_t t = 0; t < tables; ++t) RECMILL_RETURN_IF_ERROR(take(wanted[t], t, rank, rows));
  }
  std::vector<kernels::RowStorage> storage;
  for (size_t t = 0; t < tables; ++t) {
    storage.push_back(kernels::RowStorage::of(
        fetched_[t].data(), static_cast<int64_t>(wanted[t].order.size()), tables_[t].spec().dim));
  }
  return storage;
}

// The rows in the slots that each rank asked for, as float32.
std::vector<std::span<const std::byte>> RowExchange::answer(std::span<const GroupedIds> asked) {
  const size_t ranks = asked.size(), tables = tables_.size();
  std::vector<std::array<int64_t, 2>> offsets(ranks * tables);
  std::vector<kernels::PoolTask> tasks;
  std::vector<std::span<const std::byte>> bytes;
  for (size_t rank = 0; rank < ranks; ++rank) {
    int64_t floats = 0;
    for (size_t t = 0; t < tables; ++t) {
      floats += static_cast<int64_t>(asked[rank].of(t).size()) * tables_[t].columns().count;
    }
    replies_[rank].resize(floats);
    float* out = replies_[rank].data();
    for (size_t t = 0; t < tables; ++t) {
      const std::span<const int64_t> slots = asked[rank].of(t);
      const auto count = static_cast<int64_t>(slots.size());
      const int64_t dim = tables_[t].columns().count;
      if (count == 0) continue;
      auto& bag = offsets[rank * tables + t] = {0, count};
      tasks.push_back({{bag.data(), slots.data(), nullptr, 1, count == 1},
                       tables_[t].rows(),
                       Pooling::none,
                       out,
                       dim});
      out += count * dim;
    }
    bytes.push_back(std::as_bytes(std::span(replies_[rank])));
  }
  kernels::embedding_pool(tasks, pool_);
  return bytes;
}

// Takes one table's rows off what `rank` answered.
Status RowExchange::take(const RowsByOwner& wanted, size_t table, int rank,
                         std::span<const std::byte>& rows) {
  const int64_t dim = tables_[table].spec().dim;
  const ColumnRange columns = tables_[table].columns_of(rank);
  const auto [begin, end] = wanted.of[rank];
  const size_t piece = columns.count * sizeof(float), bytes = (end - begin) * piece;
  if (rows.size() < bytes) {
    return Status::Failed(communicator_.name(rank) + " has answered with too few rows of table '" +
                          tables_[table].spec().name + "'");
  }
  if (bytes == 0) return {};
  float* to = fetched_[table].data() + begin * dim + columns.first;
  if (columns.count == dim) {
    std::memcpy(to, rows.data(), bytes);
  } else {
    for (int64_t i = begin; i < end; ++i, to += dim)
      std::memcpy(to, rows.data() + (i - begin) * piece, piece);
  }
  rows = rows.subspan(bytes);
  return {};
}

// Floats that a rank sends with a row, by table: a sum for each of its subtrees, of the columns
// that the other one has.
std::vector<int64_t> RowExchange::widths(int from, int to, int shards) const {
  const auto own = subtrees(shards_of_rank(from, communicator_.ranks(), shards));
  std::vector<int64_t> widths;
  for (const auto& table : tables_) {
    widths.push_back(static_cast<int64_t>(own.size()) * table.columns_of(to).count);
  }
  return widths;
}

Result<int64_t> RowExchange::update(std::span<const TableGradients> sources, int shards,
                                    const table::RowStep& step) {
  address(sources, shards);
  sum_subtrees(sources, shards);
  std::vector<std::span<const std::byte>> bytes;
  for (const RowMessage& message : outgoing_) bytes.push_back(message.bytes());
  RECMILL_ASSIGN_OR_RETURN(const Received received, communicator_.all_to_all(bytes));
  std::vector<RowMessage> messages;
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    RECMILL_ASSIGN_OR_RETURN(
        auto message,
        RowMessage::parse(received.from(rank), widths(rank, communicator_.rank(), shards)));
    messages.push_back(std::move(message));
  }
  return apply(messages, shards, step);
}

// Begins a message to each owner: its rows, and room for their sums.
void RowExchange::address(std::span<const TableGradients> sources, int shards) {
  for (size_t rank = 0; rank < outgoing_.size(); ++rank) {
    std::vector<int64_t> counts;
    for (size_t t = 0; t < tables_.size(); ++t) {
      counts.push_back(tables_[t].spec().frozen ? 0 : sources[t].by_owner->of[rank].size());
    }
    outgoing_[rank].reset(counts, widths(communicator_.rank(), static_cast<int>(rank), shards));
    for (size_t t = 0; t < tables_.size(); ++t) {
      const RowsByOwner& by_owner = *sources[t].by_owner;
      const auto rows = outgoing_[rank].rows(t);
      for (size_t i = 0; i < rows.size(); ++i) {
        rows[i] = sources[t].distinct->rows[by_owner.order[by_owner.of[rank].begin + i]];
      }
    }
  }
}

void RowExchange::sum_subtrees(std::span<const TableGradients> sources, int shards) {
  struct Task {
    size_t table;
    int64_t begin, count;  // of RowsByOwner::order
    ColumnRange columns;
    float* out;
  };
  const auto own = subtrees(shards_of_rank(communicator_.rank(), communicator_.ranks(), shards));
  std::vector<Task> tasks;
  for (size_t rank = 0; rank < outgoing_.size(); ++rank) {
    for (size_t t = 0; t < tables_.size(); ++t) {
      const ColumnRange columns = tables_[t].columns_of(static_cast<int>(rank));
      const int64_t width = static_cast<int64_t>(own.size()) * columns.count;
      const int64_t count = outgoing_[rank].count(t);
      for (int64_t i = 0; i < count; i += kRowsATask) {
        tasks.push_back({t, sources[t].by_owner->of[rank].begin + i,
                         std::min(kRowsATask, count - i), columns,
                         outgoing_[rank].values(t) + i * width});
      }
    }
  }
  pool_.run(static_cast<int64_t>(tasks.size()), [&](int64_t index) {
    const Task& task = tasks[index];
    const TableGradients& source = sources[task.table];
    kernels::SumRange range;
    range.order = source.by_owner->order.data() + task.begin;
    range.count = task.count;
    std::vector<kernels::GradientRows> gradients(source.gradients.begin(), source.gradients.end());
    for (auto& rows : gradients) rows.data += task.columns.first;
    kernels::sum_gradients({source.distinct, gradients, task.columns.count, source.ahead}, range,
                           own, task.out);
  });
}

Result<int64_t> RowExchange::apply(const std::vector<RowMessage>& messages, int shards,
                                   const table::RowStep& step) {
  const size_t ranks = messages.size(), tables = tables_.size();
  // A rank is a feature, and its list of rows the one bag of the one sample.
  std::vector<std::array<int64_t, 2>> offsets(ranks * tables);
  std::vector<std::vector<kernels::FeatureBags>> lists(tables);
  std::vector<kernels::TableLookups> lookups(tables);
  for (size_t t = 0; t < tables; ++t) {
    for (size_t rank = 0; rank < ranks; ++rank) {
      auto& bag = offsets[t * ranks + rank] = {0, messages[rank].count(t)};
      lists[t].push_back(
          {{bag.data(), messages[rank].rows(t).data(), nullptr, 1, false}, Pooling::none});
    }
    lookups[t] = {tables_[t].spec().rows, lists[t]};
  }
  constexpr std::array<int64_t, 2> kOneSample{0, 1};
  finder_.find(lookups, {0, kOneSample}, distinct_, pool_);
  std::vector<kernels::RowParts> parts(tables);
  for (size_t t = 0; t < tables; ++t) {
    if (tables_[t].spec().frozen) continue;
    collect_parts(t, messages, shards);
    parts[t] = {parts_[t].begins, parts_[t].parts};
  }
  RECMILL_RETURN_IF_ERROR(mean_squares_.exchange(parts));
  std::vector<table::TableParts> updates;
  std::vector<std::span<const int64_t>> changed(tables);
  int64_t rows = 0;
  for (size_t t = 0; t < tables; ++t) {
    if (tables_[t].spec().frozen || tables_[t].columns().count == 0) continue;
    changed[t] = distinct_[t].rows;
    updates.push_back({&tables_[t], distinct_[t].rows, parts[t], mean_squares_.of(t)});
    if (tables_[t].columns().first == 0) rows += distinct_[t].count();
  }
  const auto change = snapshots_.before(changed, pool_);
  table::update_tables_from_parts(updates, step, pool_);
  return rows;
}

void RowExchange::collect_parts(size_t table, const std::vector<RowMessage>& messages, int shards) {
  const int64_t dim = tables_[table].columns().count;
  const DistinctRows& distinct = distinct_[table];
  std::vector<std::vector<ShardRange>> trees;
  trees.reserve(communicator_.ranks());
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    trees.push_back(subtrees(shards_of_rank(rank, communicator_.ranks(), shards)));
  }
  Parts& parts = parts_[table];
  parts.parts.clear();
  parts.begins.assign(1, 0);
  for (int64_t row = 0; row < distinct.count(); ++row) {
    for (int64_t i = distinct.begins[row]; i < distinct.begins[row + 1]; ++i) {
      const LookupSource& source = distinct.sources[i];
      const auto& own = trees[source.feature];
      const float* sums = messages[source.feature].values(table) +
                          source.gradient_row * static_cast<int64_t>(own.size()) * dim;
      for (size_t tree = 0; tree < own.size(); ++tree) {
        parts.parts.push_back({sums + tree * dim, own[tree].begin});
      }
    }
    parts.begins.push_back(static_cast<int64_t>(parts.parts.size()));
  }
}

}  // namespace recmill::store
