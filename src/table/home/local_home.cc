// SPDX-License-Identifier: Apache-2.0
#include "table/home/local_home.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>

namespace recmill::table {

class LocalHome::Writer final : public RowHome {
 public:
  Writer(LocalHome& of, int64_t first_mark) : mark(first_mark), home_(of) {}

  Ticket fetch(std::span<const FetchedRows> rows, int64_t fence) override {
    return call([&](Ticket ticket) {
      Status status = home_.check(rows);
      if (!status.ok() || fence <= home_.least_mark()) {
        if (status.ok()) status = home_.rows_.read(rows);
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
        status = home_.rows_.replace(rows, step);
        if (status.ok()) mark = step;
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

  LocalHome& home_;
  std::function<void()> wake_;
  Ticket tickets_ = 0;
};

Status check_rows(const std::string& table, const RowShare& share, std::span<const int64_t> rows) {
  const auto named = [&](int64_t row) {
    return "table '" + table + "': row " + std::to_string(row);
  };
  for (const int64_t row : rows) {
    if (row < 0 || row >= share.rows())
      return Status::Failed(named(row) + " is outside of its " + std::to_string(share.rows()) +
                            " rows");
    if (!share.owns(row))
      return Status::Failed(named(row) + " is stored at rank " + std::to_string(share.owner(row)) +
                            ", not at rank " + std::to_string(share.rank()));
  }
  return {};
}

LocalHome::LocalHome(HomeRows& rows, int writers, int64_t mark) : rows_(rows) {
  for (int w = 0; w < writers; ++w) writers_.push_back(std::make_unique<Writer>(*this, mark));
}

LocalHome::~LocalHome() = default;

RowHome& LocalHome::writer(int number) {
  return *writers_[number];
}

template <class Rows>
Status LocalHome::check(std::span<const Rows> rows) const {
  for (const Rows& of : rows)
    RECMILL_RETURN_IF_ERROR(rows_.check(of.table, of.rows, of.records.size()));
  return {};
}

int64_t LocalHome::least_mark() const {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const auto& writer : writers_) least = std::min(least, writer->mark);
  return least;
}

void LocalHome::answer_fetches() {
  const int64_t least = least_mark();
  std::erase_if(waiting_, [&](const Waiting& fetch) {
    if (fetch.fence > least) return false;
    fetch.writer->answers.push_back({fetch.ticket, rows_.read(fetch.rows)});
    return true;
  });
}

Status LocalHome::join_cut(Writer& writer, RowHome::Ticket ticket, int64_t step,
                           std::span<const PutRows> changed) {
  const auto after = [](int64_t of) { return "a cut after step " + std::to_string(of); };
  if (writer.mark > step)
    return Status::Failed(after(step) + " comes behind the put of step " +
                          std::to_string(writer.mark));
  const int64_t number = writer.cuts - whole_cuts_;
  if (number == std::ssize(cuts_)) {
    RECMILL_ASSIGN_OR_RETURN(auto image, rows_.image(step));
    cuts_.push_back({step, std::move(image), {}});
  }
  Cut& cut = cuts_[number];
  if (cut.step != step)
    return Status::Failed(after(step) + " where another writer makes " + after(cut.step));
  RECMILL_RETURN_IF_ERROR(rows_.replace(changed, step));
  ++writer.cuts;
  cut.callers.emplace_back(&writer, ticket);
  if (cut.callers.size() < writers_.size()) return {};
  for (const auto& [caller, of_caller] : cut.callers)
    caller->answers.push_back({of_caller, {}, cut.image});
  cuts_.pop_front();
  ++whole_cuts_;
  return {};
}

}  // namespace recmill::table
