// SPDX-License-Identifier: Apache-2.0
#include "table/home/embedded_home.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/status.h"

namespace recmill::table {

class EmbeddedHome::Writer final : public RowHome {
 public:
  Writer(EmbeddedHome& of, int64_t first_mark) : mark(first_mark), home_(of) {}

  Ticket fetch(std::span<const FetchedRows> rows, int64_t fence) override {
    return call([&](Ticket ticket) {
      Status status = home_.check(rows);
      if (!status.ok() || fence <= home_.least_mark()) {
        if (status.ok()) home_.read(rows);
        answers.push_back({ticket, std::move(status)});
      } else {
        home_.waiting_.push_back({this, ticket, {rows.begin(), rows.end()}, fence});
      }
    });
  }

  Ticket put(std::span<const PutRows> rows, int64_t step) override {
    return call([&](Ticket ticket) {
      Status status = home_.check(rows);
      if (status.ok() && step > mark) {
        home_.replace(rows, step);
        mark = step;
        home_.answer_fetches();
      }
      answers.push_back({ticket, std::move(status)});
    });
  }

  Ticket cut(int64_t step, std::span<const PutRows> changed) override {
    return call([&](Ticket ticket) {
      Status status = home_.check(changed);
      if (status.ok()) status = home_.join_cut(*this, ticket, step, changed);
      if (!status.ok()) answers.push_back({ticket, std::move(status)});
    });
  }

  void poll(std::vector<Answer>& to) override {
    std::lock_guard lock(home_.mutex_);
    std::ranges::move(answers, std::back_inserter(to));
    answers.clear();
  }

  void set_wake(std::function<void()> wake) override {
    std::lock_guard lock(home_.mutex_);
    wake_ = std::move(wake);
  }

  // While the home's mutex is held:
  std::vector<Answer> answers;
  int64_t mark;
  int64_t cuts = 0;  // that it has called

 private:
  template <class Body>
  Ticket call(const Body& body) {
    std::lock_guard lock(home_.mutex_);
    const Ticket ticket = tickets_++;
    body(ticket);
    for (const auto& writer : home_.writers_)
      if (writer->wake_ && !writer->answers.empty()) writer->wake_();
    return ticket;
  }

  EmbeddedHome& home_;
  std::function<void()> wake_;
  Ticket tickets_ = 0;
};

EmbeddedHome::EmbeddedHome(std::vector<EmbeddingTable>& tables, int writers, ThreadPool& pool,
                           int64_t mark)
    : tables_(tables), pool_(pool), snapshots_(tables) {
  for (const EmbeddingTable& table : tables)
    records_.emplace_back(table.spec(), table.columns().count);
  for (int w = 0; w < writers; ++w) writers_.push_back(std::make_unique<Writer>(*this, mark));
}

EmbeddedHome::~EmbeddedHome() = default;

RowHome& EmbeddedHome::writer(int number) {
  return *writers_[number];
}

template <class Rows>
Status EmbeddedHome::check(std::span<const Rows> rows) const {
  for (const Rows& of_table : rows) {
    if (of_table.table < 0 || of_table.table >= std::ssize(tables_))
      return Status::Failed("there is no table " + std::to_string(of_table.table));
    const EmbeddingTable& table = tables_[of_table.table];
    const RowShare& share = table.share();
    const auto named = [&](int64_t row) {
      return "table '" + table.spec().name + "': row " + std::to_string(row);
    };
    RECMILL_CHECK(std::ssize(of_table.records) ==
                      std::ssize(of_table.rows) * records_[of_table.table].bytes(),
                  table.spec().name);
    for (const int64_t row : of_table.rows) {
      if (row < 0 || row >= share.rows())
        return Status::Failed(named(row) + " is outside of its " + std::to_string(share.rows()) +
                              " rows");
      if (!share.owns(row))
        return Status::Failed(named(row) + " is stored at rank " +
                              std::to_string(share.owner(row)) + ", not at rank " +
                              std::to_string(share.rank()));
    }
  }
  return {};
}

int64_t EmbeddedHome::least_mark() const {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const auto& writer : writers_) least = std::min(least, writer->mark);
  return least;
}

void EmbeddedHome::read(std::span<const FetchedRows> rows) const {
  for (const FetchedRows& of_table : rows) {
    const EmbeddingTable& table = tables_[of_table.table];
    const RowRecord& record = records_[of_table.table];
    std::byte* to = of_table.records.data();
    for (const int64_t row : of_table.rows) {
      record.pack(table.rows(), table.share().slot(row), to);
      to += record.bytes();
    }
  }
}

void EmbeddedHome::replace(std::span<const PutRows> rows, int64_t step) {
  for (const PutRows& of_table : rows) {
    TableSnapshots::Change change;
    if (snapshots_.wanted()) {
      std::vector<std::span<const int64_t>> changed(tables_.size());
      changed[of_table.table] = of_table.rows;
      change = snapshots_.before(changed, pool_, step);
    }
    const EmbeddingTable& table = tables_[of_table.table];
    const RowRecord& record = records_[of_table.table];
    const std::byte* from = of_table.records.data();
    for (const int64_t row : of_table.rows) {
      record.unpack(from, table.rows(), table.share().slot(row));
      from += record.bytes();
    }
  }
}

void EmbeddedHome::answer_fetches() {
  const int64_t least = least_mark();
  std::erase_if(waiting_, [&](const Waiting& fetch) {
    if (fetch.fence > least) return false;
    read(fetch.rows);
    fetch.writer->answers.push_back({fetch.ticket, {}});
    return true;
  });
}

Status EmbeddedHome::join_cut(Writer& writer, RowHome::Ticket ticket, int64_t step,
                              std::span<const PutRows> changed) {
  const auto after = [](int64_t of) { return "a cut after step " + std::to_string(of); };
  if (writer.mark > step)
    return Status::Failed(after(step) + " comes behind the put of step " +
                          std::to_string(writer.mark));
  const int64_t number = writer.cuts - whole_cuts_;
  if (number == std::ssize(cuts_)) {
    constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
    cuts_.push_back({step, snapshots_.take(kNoLimit, step), {}});
  }
  Cut& cut = cuts_[number];
  if (cut.step != step)
    return Status::Failed(after(step) + " where another writer makes " + after(cut.step));
  ++writer.cuts;
  replace(changed, step);
  cut.callers.emplace_back(&writer, ticket);
  if (cut.callers.size() < writers_.size()) return {};
  for (const auto& [caller, of_caller] : cut.callers)
    caller->answers.push_back({of_caller, {}, cut.image});
  cuts_.pop_front();
  ++whole_cuts_;
  return {};
}

std::shared_ptr<RowHome> make_embedded_home(std::vector<EmbeddingTable> tables, ThreadPool& pool) {
  struct Owner {
    Owner(std::vector<EmbeddingTable> rows, ThreadPool& threads)
        : tables(std::move(rows)), home(tables, 1, threads) {}
    std::vector<EmbeddingTable> tables;
    EmbeddedHome home;
  };
  auto owner = std::make_shared<Owner>(std::move(tables), pool);
  return {owner, &owner->home.writer(0)};
}

}  // namespace recmill::table
