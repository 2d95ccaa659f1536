// SPDX-License-Identifier: Apache-2.0
#include "table/home/testing/plain_home.h"

#include <algorithm>
#include <limits>
#include <string>

#include "table/row_record.h"

namespace recmill::table::testing {

class PlainHome::Writer final : public RowHome {
 public:
  Writer(PlainHome& of, int64_t first_mark) : mark(first_mark), home_(of) {}

  Ticket fetch(std::span<const FetchedRows> rows, int64_t fence) override {
    for (const FetchedRows& of_table : rows)
      if (Status status = home_.check(of_table.table, of_table.rows); !status.ok())
        return answer(std::move(status));
    home_.unanswered_.push_back({this, tickets_, {rows.begin(), rows.end()}, fence, false});
    return called();
  }

  Ticket put(std::span<const PutRows> rows, int64_t step) override {
    for (const PutRows& of_table : rows)
      if (Status status = home_.check(of_table.table, of_table.rows); !status.ok())
        return answer(std::move(status));
    if (step <= mark) return answer({});
    home_.replace(rows, step);
    mark = step;
    return answer({});
  }

  Ticket cut(int64_t step, std::span<const PutRows> changed) override {
    for (const PutRows& of_table : changed)
      if (Status status = home_.check(of_table.table, of_table.rows); !status.ok())
        return answer(std::move(status));
    const auto after = [](int64_t of) { return "a cut after step " + std::to_string(of); };
    if (mark > step)
      return answer(
          Status::Failed(after(step) + " comes behind the put of step " + std::to_string(mark)));
    home_.replace(changed, step);
    home_.unanswered_.push_back({this, tickets_, {}, step, true});
    return called();
  }

  void poll(std::vector<Answer>& to) override {
    std::ranges::move(answers, std::back_inserter(to));
    answers.clear();
  }
  void set_wake(std::function<void()> wake) override { wake_ = std::move(wake); }

  void wake() const {
    if (wake_ && !answers.empty()) wake_();
  }

  std::vector<Answer> answers;
  int64_t mark;

 private:
  Ticket answer(Status status) {
    answers.push_back({tickets_, std::move(status)});
    return called();
  }
  Ticket called() {
    home_.answer();
    return tickets_++;
  }

  PlainHome& home_;
  std::function<void()> wake_;
  Ticket tickets_ = 0;
};

// A copy of all rows.
class PlainHome::Image final : public RowSnapshot {
 public:
  Image(std::vector<TableSpec> specs, std::map<Key, Record> rows)
      : specs_(std::move(specs)), rows_(std::move(rows)) {}

  Status read(const std::function<Status(const RowBlock&)>& sink) override {
    for (const auto& [key, record] : rows_) {
      const TableSpec& spec = specs_[key.first];
      std::vector<float> weights(spec.dim);
      std::vector<std::vector<float>> columns;
      for (const StateColumn& column : row_state(spec)) columns.emplace_back(column.width);
      const std::vector<std::span<float>> state(columns.begin(), columns.end());
      RowRecord(spec).read(record.data(), weights, state);
      const std::vector<std::span<const float>> views(columns.begin(), columns.end());
      RECMILL_RETURN_IF_ERROR(sink({key.first, key.second, 1, weights, views}));
    }
    return {};
  }

 private:
  const std::vector<TableSpec> specs_;
  const std::map<Key, Record> rows_;
};

PlainHome::PlainHome(const std::vector<EmbeddingTable>& tables, int writers, int64_t mark) {
  for (const EmbeddingTable& table : tables) {
    const RowRecord record(table.spec());
    for (int64_t row = 0; row < table.spec().rows; ++row) {
      auto& initial = initial_[{static_cast<int>(specs_.size()), row}];
      initial.resize(record.bytes());
      record.pack(table.rows(), table.share().slot(row), initial.data());
    }
    specs_.push_back(table.spec());
  }
  now_ = initial_;
  for (int w = 0; w < writers; ++w) writers_.push_back(std::make_unique<Writer>(*this, mark));
}

PlainHome::~PlainHome() = default;

RowHome& PlainHome::writer(int number) {
  return *writers_[number];
}

std::map<PlainHome::Key, PlainHome::Record> PlainHome::as_after(int64_t step) const {
  auto rows = initial_;
  for (const Put& put : puts_)
    if (put.step <= step) rows[put.key] = put.record;
  return rows;
}

Status PlainHome::check(int table, std::span<const int64_t> rows) const {
  if (table < 0 || table >= std::ssize(specs_))
    return Status::Failed("there is no table " + std::to_string(table));
  const TableSpec& spec = specs_[table];
  for (const int64_t row : rows)
    if (row < 0 || row >= spec.rows)
      return Status::Failed("table '" + spec.name + "': row " + std::to_string(row) +
                            " is outside of its " + std::to_string(spec.rows) + " rows");
  return {};
}

void PlainHome::replace(std::span<const PutRows> rows, int64_t step) {
  for (const PutRows& of_table : rows) {
    const auto bytes = RowRecord(specs_[of_table.table]).bytes();
    for (size_t i = 0; i < of_table.rows.size(); ++i) {
      const auto record = of_table.records.subspan(i * bytes, bytes);
      puts_.push_back({step, {of_table.table, of_table.rows[i]}, {record.begin(), record.end()}});
      now_[puts_.back().key] = puts_.back().record;
    }
  }
}

// A fetch when all marks have reached its fence; the n-th cuts of all writers when all have called
// theirs. Then wakes.
void PlainHome::answer() {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const auto& writer : writers_) least = std::min(least, writer->mark);
  std::erase_if(unanswered_, [&](const Call& call) {
    if (call.is_cut || call.step > least) return false;
    for (const FetchedRows& of_table : call.rows) {
      std::byte* to = of_table.records.data();
      for (const int64_t row : of_table.rows)
        to = std::ranges::copy(now_.at({of_table.table, row}), to).out;
    }
    call.writer->answers.push_back({call.ticket, {}});
    return true;
  });
  std::vector<Call> first_cuts;  // of each writer that has called one
  for (const Call& call : unanswered_)
    if (call.is_cut &&
        std::ranges::find(first_cuts, call.writer, &Call::writer) == first_cuts.end())
      first_cuts.push_back(call);
  if (first_cuts.size() == writers_.size()) {
    const auto image = std::make_shared<Image>(specs_, as_after(first_cuts[0].step));
    for (const Call& cut : first_cuts) {
      const bool fits = cut.step == first_cuts[0].step;
      cut.writer->answers.push_back(
          {cut.ticket, fits ? Status() : Status::Failed("another cut"), fits ? image : nullptr});
      std::erase_if(unanswered_, [&](const Call& call) {
        return call.writer == cut.writer && call.ticket == cut.ticket;
      });
    }
  }
  for (const auto& writer : writers_) writer->wake();
}

}  // namespace recmill::table::testing
