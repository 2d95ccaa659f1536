// SPDX-License-Identifier: Apache-2.0
#include "store/exchange/gradient_exchange.h"

#include <algorithm>
#include <numeric>

namespace recmill::store {
namespace {

constexpr int64_t kRowsATask = 256;  // rows summed by one task of the pool

}  // namespace

GradientExchange::GradientExchange(Communicator& communicator,
                                   const std::vector<table::EmbeddingTable>& tables,
                                   ThreadPool& pool, bool shared)
    : communicator_(communicator),
      tables_(tables),
      pool_(pool),
      mail_(communicator, shared),
      outs_(tables.size()),
      distinct_(tables.size()),
      parts_(tables.size()) {}

Result<std::vector<TableSums>> GradientExchange::exchange(std::span<const TableGradients> sources,
                                                          std::span<const SentSums* const> sent,
                                                          int slices, SentUnit unit) {
  const int ranks = communicator_.ranks(), rank = communicator_.rank();
  const auto own = sent_ranges(slices_of_rank(rank, ranks, slices), unit);
  address(sent, own.size());
  sum(sources, sent, own);
  RECMILL_RETURN_IF_ERROR(mail_.exchange());
  std::vector<RowMessage> messages;
  for (int from = 0; from < ranks; ++from) {
    const auto ranges = sent_ranges(slices_of_rank(from, ranks, slices), unit).size();
    RECMILL_ASSIGN_OR_RETURN(auto message, mail_.from(from, widths(rank, ranges)));
    messages.push_back(std::move(message));
  }
  find_rows(messages, slices, unit);
  std::vector<TableSums> sums(tables_.size());
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].spec().frozen) continue;
    const auto values = given(t, messages);
    if (unit == SentUnit::lookup) {
      sum_lookups(distinct_[t], values, slices, parts_[t]);
    } else {
      collect_parts(distinct_[t], values, parts_[t]);
    }
    sums[t] = {distinct_[t].rows, {parts_[t].begins, parts_[t].parts}};
  }
  return sums;
}

// Floats that go to a rank with a row, by group: its columns.
std::vector<int64_t> GradientExchange::widths(int to, size_t ranges) const {
  std::vector<int64_t> widths;
  for (const auto& table : tables_) widths.insert(widths.end(), ranges, table.columns_of(to).count);
  return widths;
}

// Begins a message to each rank: its rows, and room for their gradients.
void GradientExchange::address(std::span<const SentSums* const> sent, size_t ranges) {
  std::vector<RowExchange::Shape> shapes(communicator_.ranks());
  pool_.run(communicator_.ranks(), [&](int64_t rank) {
    auto& counts = shapes[rank].counts;
    counts.assign(tables_.size() * ranges, 0);
    for (size_t t = 0; t < tables_.size(); ++t) {
      if (tables_[t].spec().frozen) continue;
      const auto [begin, end] = sent[t]->by_rank().of[rank];
      const auto order = std::span(sent[t]->by_rank().order).subspan(begin, end - begin);
      auto at = order.begin();
      for (size_t range = 0; range < ranges; ++range) {
        const auto next = std::lower_bound(at, order.end(), sent[t]->range_begins()[range + 1]);
        counts[t * ranges + range] = next - at;
        at = next;
      }
    }
    shapes[rank].widths = widths(static_cast<int>(rank), ranges);
  });
  mail_.begin(shapes);
  pool_.run(communicator_.ranks(), [&](int64_t rank) {
    for (size_t t = 0; t < tables_.size(); ++t) {
      if (tables_[t].spec().frozen) continue;
      const auto [begin, end] = sent[t]->by_rank().of[rank];
      // Groups of a table adjoin.
      int64_t* rows = mail_.to(static_cast<int>(rank)).rows(t * ranges).data();
      for (int64_t i = begin; i < end; ++i)
        rows[i - begin] = sent[t]->entries().rows[sent[t]->by_rank().order[i]];
    }
  });
}

// In the order in which gradients were found, wherever a sum goes: what goes to several ranks is
// summed once, and copied.
void GradientExchange::sum(std::span<const TableGradients> sources,
                           std::span<const SentSums* const> sent,
                           std::span<const SliceRange> ranges) {
  const auto tables = static_cast<int64_t>(tables_.size());
  pool_.run(tables, [&](int64_t t) {
    if (!tables_[t].spec().frozen && !is_split(t)) point_sums(*sent[t], t, ranges.size());
  });
  std::vector<SumTask> tasks;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].spec().frozen) continue;
    for (size_t range = 0; range < ranges.size(); ++range) {
      const int64_t begin = sent[t]->range_begins()[range];
      const int64_t end = sent[t]->range_begins()[range + 1];
      if (is_split(t)) {
        add_columns(t, range, begin, ranges.size(), tasks);
      } else {
        add_tasks({t, range, begin, end - begin, tables_[t].columns(), nullptr}, tasks);
      }
    }
  }
  run(tasks, sources, sent, ranges);
  pool_.run(tables, [&](int64_t t) {
    for (const auto& [from, to] : outs_[t].copies)
      std::copy_n(from, tables_[t].columns().count, to);
  });
}

bool GradientExchange::is_split(size_t table) const {
  return tables_[table].column_split().is_split();
}

// Of a table without split columns: where each entry's sum goes first, and where else.
void GradientExchange::point_sums(const SentSums& sent, size_t table, size_t ranges) {
  Outs& outs = outs_[table];
  outs.first.assign(sent.entries().count(), nullptr);
  outs.copies.clear();
  const RowsByRank& by_rank = sent.by_rank();
  const int64_t dim = tables_[table].columns().count;
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    int64_t at = by_rank.of[rank].begin;
    for (size_t group = table * ranges; group < (table + 1) * ranges; ++group) {
      float* sum = mail_.to(rank).values(group);
      for (const int64_t end = at + mail_.to(rank).count(group); at < end; ++at, sum += dim) {
        float*& first = outs.first[by_rank.order[at]];
        if (first == nullptr) {
          first = sum;
        } else {
          outs.copies.emplace_back(first, sum);
        }
      }
    }
  }
}

// Of split columns each rank gets its own.
void GradientExchange::add_columns(size_t table, size_t range, int64_t begin, size_t ranges,
                                   std::vector<SumTask>& tasks) {
  const size_t group = table * ranges + range;
  for (int rank = 0; rank < communicator_.ranks(); ++rank) {
    RowMessage& message = mail_.to(rank);
    add_tasks({table, range, begin, message.count(group), tables_[table].columns_of(rank),
               message.values(group)},
              tasks);
  }
}

void GradientExchange::add_tasks(SumTask of, std::vector<SumTask>& tasks) {
  const int64_t end = of.begin + of.count;
  for (; of.begin < end; of.begin += kRowsATask) {
    of.count = std::min(kRowsATask, end - of.begin);
    tasks.push_back(of);
    if (of.out != nullptr) of.out += of.count * of.columns.count;
  }
}

void GradientExchange::run(std::span<const SumTask> tasks, std::span<const TableGradients> sources,
                           std::span<const SentSums* const> sent,
                           std::span<const SliceRange> ranges) {
  pool_.run(std::ssize(tasks), [&](int64_t index) {
    const SumTask& task = tasks[index];
    const TableGradients& source = sources[task.table];
    std::vector<kernels::GradientRows> gradients(source.gradients.begin(), source.gradients.end());
    for (auto& rows : gradients) rows.data += task.columns.first;
    const kernels::GradientSource of{&sent[task.table]->entries(), gradients, task.columns.count,
                                     source.ahead};
    if (task.out == nullptr) {
      const auto outs = std::span(outs_[task.table].first).subspan(task.begin);
      kernels::sum_gradients(of, task.begin, task.count, outs.data());
    } else {
      kernels::sum_gradients(of, {nullptr, task.begin, task.count}, ranges.subspan(task.range, 1),
                             task.out);
    }
  });
}

// A rank is a feature, a slice a sample, and the rows that the rank sends of a range of slices the
// bag of the first of them.
void GradientExchange::find_rows(std::span<const RowMessage> messages, int slices, SentUnit unit) {
  const size_t ranks = messages.size();
  std::vector<std::vector<int64_t>> offsets;  // [tables * ranks]
  offsets.reserve(tables_.size() * ranks);
  std::vector<std::vector<kernels::FeatureBags>> lists(tables_.size());
  std::vector<kernels::TableLookups> lookups(tables_.size());
  for (size_t t = 0; t < tables_.size(); ++t) {
    for (size_t rank = 0; rank < ranks; ++rank) {
      const auto ranges = sent_ranges(
          slices_of_rank(static_cast<int>(rank), static_cast<int>(ranks), slices), unit);
      auto& ends = offsets.emplace_back(slices + 1, 0);
      for (size_t range = 0; range < ranges.size(); ++range)
        ends[ranges[range].begin + 1] = messages[rank].count(t * ranges.size() + range);
      std::partial_sum(ends.begin(), ends.end(), ends.begin());
      const int64_t* rows = messages[rank].rows(t * ranges.size()).data();
      lists[t].push_back({{ends.data(), rows, nullptr, slices, false}, Pooling::none});
    }
    lookups[t] = {tables_[t].spec().rows, lists[t]};
  }
  std::vector<int64_t> begins(slices + 1);
  std::iota(begins.begin(), begins.end(), 0);
  finder_.find(lookups, {0, begins}, distinct_, pool_);
}

// The values that each rank sent of a table, as the gradients of a feature.
std::vector<kernels::GradientRows> GradientExchange::given(size_t table,
                                                           std::span<const RowMessage> messages) {
  std::vector<kernels::GradientRows> values;
  for (const RowMessage& message : messages) {
    const size_t ranges = message.groups() / tables_.size();
    values.push_back({message.values(table * ranges), tables_[table].columns().count});
  }
  return values;
}

// A rank's sum over a subtree is a part as it is.
void GradientExchange::collect_parts(const DistinctRows& distinct,
                                     std::span<const kernels::GradientRows> given, Parts& parts) {
  parts.begins.assign(distinct.begins.begin(), distinct.begins.end());
  parts.parts.clear();
  for (const LookupSource& source : distinct.sources) {
    const auto& [values, columns] = given[source.feature];
    parts.parts.push_back({values + source.gradient_row * columns, source.slice});
  }
}

// Of lookups that came one by one the sum over all slices is the only part.
void GradientExchange::sum_lookups(const DistinctRows& distinct,
                                   std::span<const kernels::GradientRows> given, int slices,
                                   Parts& parts) {
  const int64_t rows = distinct.count(), columns = given[0].stride;
  const SliceRange all{0, slices};
  parts.sums.resize(rows * columns);
  pool_.run_ranges(rows, kRowsATask, [&](int64_t begin, int64_t end) {
    kernels::sum_gradients({&distinct, given, columns}, {nullptr, begin, end - begin}, {&all, 1},
                           parts.sums.data() + begin * columns);
  });
  parts.begins.resize(rows + 1);
  std::iota(parts.begins.begin(), parts.begins.end(), 0);
  parts.parts.clear();
  for (int64_t row = 0; row < rows; ++row)
    parts.parts.push_back({parts.sums.data() + row * columns, 0});
}

}  // namespace recmill::store
