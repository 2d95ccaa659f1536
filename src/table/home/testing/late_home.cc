// SPDX-License-Identifier: Apache-2.0
#include "table/home/testing/late_home.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace recmill::table::testing {

RowHome::Ticket LateHome::fetch(std::span<const FetchedRows> rows, int64_t fence) {
  Fetch fetch{tickets_, {rows.begin(), rows.end()}, fence, {}};
  for (const FetchedRows& of_table : rows) {
    std::ranges::fill(of_table.records, std::byte{0xDB});
    fetch.records.emplace_back(of_table.records.size());
  }
  fetches_.push_back(std::move(fetch));
  return called();
}

RowHome::Ticket LateHome::put(std::span<const PutRows> rows, int64_t step) {
  puts_.push_back({tickets_, {rows.begin(), rows.end()}, step, false});
  return called();
}

RowHome::Ticket LateHome::cut(int64_t step, std::span<const PutRows> changed) {
  puts_.push_back({tickets_, {changed.begin(), changed.end()}, step, true});
  return called();
}

RowHome::Ticket LateHome::called() {
  if (wake_) wake_();
  return tickets_++;
}

void LateHome::poll(std::vector<Answer>& answers) {
  send();
  std::vector<Answer> arrived;
  inner_.poll(arrived);
  for (Answer& answer : arrived) {
    const auto sent = sent_.find(answer.ticket);
    RECMILL_CHECK(sent != sent_.end(), "an answer to a ticket that has none, or its second");
    answer.ticket = sent->second;
    sent_.erase(sent);
    answers_.push_back(std::move(answer));
  }
  std::vector<Answer> later;
  for (; !answers_.empty();) {
    const auto next =
        answers_.begin() + static_cast<int64_t>(random_.below(answers_.size(), draws_++));
    if (coin()) {
      const auto fetch = arriving_.find(next->ticket);
      if (fetch != arriving_.end()) {
        for (size_t i = 0; next->status.ok() && i < fetch->second.rows.size(); ++i)
          std::ranges::copy(fetch->second.records[i], fetch->second.rows[i].records.begin());
        arriving_.erase(fetch);
      }
      answers.push_back(std::move(*next));
    } else {
      later.push_back(std::move(*next));
    }
    answers_.erase(next);
  }
  answers_ = std::move(later);
  const bool all_are_there = fetches_.empty() && puts_.empty() && sent_.empty() && answers_.empty();
  if (wake_ && !all_are_there) wake_();
}

// Some of the fetches, in any order, before, between and behind the first ones of the puts.
void LateHome::send() {
  for (size_t i = fetches_.size(); i > 1; --i)
    std::swap(fetches_[i - 1], fetches_[random_.below(i, draws_++)]);
  for (bool some_are_left = true; some_are_left;) {
    some_are_left = false;
    if (!puts_.empty() && coin()) {
      const PutOrCut next = std::move(puts_.front());
      puts_.pop_front();
      sent_[next.is_cut ? inner_.cut(next.step, next.rows) : inner_.put(next.rows, next.step)] =
          next.ticket;
      some_are_left = true;
    }
    if (!fetches_.empty() && coin()) {
      Fetch next = std::move(fetches_.back());
      fetches_.pop_back();
      send(std::move(next));
      some_are_left = true;
    }
  }
}

void LateHome::send(Fetch fetch) {
  const Ticket ticket = fetch.ticket;
  Fetch& arriving = arriving_[ticket] = std::move(fetch);
  std::vector<FetchedRows> rows = arriving.rows;
  for (size_t i = 0; i < rows.size(); ++i) rows[i].records = arriving.records[i];
  sent_[inner_.fetch(rows, arriving.fence)] = ticket;
}

}  // namespace recmill::table::testing
