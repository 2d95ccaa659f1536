// SPDX-License-Identifier: Apache-2.0
#include "table/home/testing/home_trace.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/random.h"
#include "table/home/testing/plain_home.h"
#include "table/row_record.h"

namespace recmill::table::testing {
namespace {

using Key = PlainHome::Key;
using Ticket = RowHome::Ticket;

/// Rows of some tables and their records.
struct Lists {
  std::vector<int> tables;
  std::vector<std::vector<int64_t>> rows;
  std::vector<std::vector<std::byte>> records;

  template <class Rows>
  std::vector<Rows> views() {
    std::vector<Rows> views;
    for (size_t i = 0; i < tables.size(); ++i) views.push_back({tables[i], rows[i], records[i]});
    return views;
  }
};

/// What a writer has called and not heard of, on both sides.
struct Call {
  Lists here, plain;
  std::set<Key> taken, looked_at;  // of a fetch
  int cut = -1;                    // which one
};

struct Row {
  int holder = -1;  // who alone may put it, or is fetching it
  bool is_there = false;
  int looked_at = 0;  // fetches under way that only look
  int64_t last_put = -1;
};

struct WriterState {
  int64_t mark = -1;
  size_t cuts = 0;  // called
  std::map<Ticket, Call> calls;
  std::map<Ticket, RowHome::Answer> plain_answers;
};

struct CutState {
  int64_t step = 0;
  bool is_there = false;               // some writer has it
  std::shared_ptr<RowSnapshot> image;  // that is to be read
};

std::string name_of(const Key& key) {
  return "table " + std::to_string(key.first) + ", row " + std::to_string(key.second);
}

class Driver {
 public:
  Driver(const HomeTrace& trace, const WriterOf& writer)
      : trace_(trace),
        writer_(writer),
        random_(trace.seed, Purpose::test),
        pool_(1),
        plain_(tables_of(trace.specs, trace.seed, pool_), trace.writers),
        writers_(trace.writers) {
    for (const auto& [key, record] : plain_.as_after(-1)) rows_[key] = {};
    for (const TableSpec& spec : trace.specs) records_.emplace_back(spec);
  }

  std::string run() {
    for (int i = 0; i < trace_.actions && difference_.empty(); ++i) act();
    finish();
    return difference_;
  }

 private:
  int64_t draw(int64_t below) {
    return static_cast<int64_t>(random_.below(static_cast<uint64_t>(below), draws_++));
  }

  void act() {
    const int w = static_cast<int>(draw(trace_.writers));
    switch (draw(8)) {
      case 0:
      case 1:
        return put(w, writers_[w].mark + 1 + draw(3) / 2);
      case 2:
      case 3:
        return fetch(w);
      case 4:
        return draw(4) == 0 ? plan_cut() : repeat(w);
      default:
        return poll(w);
    }
  }

  void differ(const std::string& what) {
    if (difference_.empty()) difference_ = what;
  }

  // Random bytes in every part of a record, and 0 between.
  void fill(int table, std::span<std::byte> record) {
    const RowRecord& shape = records_[table];
    for (const auto& [first, count] : shape.parts({0, trace_.specs[table].dim}, true))
      for (int64_t i = 0; i < count; ++i) record[first + i] = static_cast<std::byte>(draw(256));
  }

  static void add(Lists& lists, const Key& key, std::span<const std::byte> record) {
    if (lists.tables.empty() || lists.tables.back() != key.first) {
      lists.tables.push_back(key.first);
      lists.rows.emplace_back();
      lists.records.emplace_back();
    }
    lists.rows.back().push_back(key.second);
    lists.records.back().insert(lists.records.back().end(), record.begin(), record.end());
  }

  void add_random(Lists& lists, const Key& key) {
    std::vector<std::byte> record(records_[key.first].bytes());
    fill(key.first, record);
    add(lists, key, record);
  }

  // Some of the rows that a writer holds; most of them it gives up with that.
  void put(int w, int64_t step) {
    WriterState& writer = writers_[w];
    for (; writer.cuts < cuts_.size() && cuts_[writer.cuts].step < step; ++writer.cuts) {
      const int64_t of = cuts_[writer.cuts].step;
      Call cut;
      cut.cut = static_cast<int>(writer.cuts);
      for (auto& [key, row] : rows_) {
        if (row.holder != w || !row.is_there || draw(3) > 0) continue;
        add_random(cut.here, key);
      }
      cut.plain = cut.here;
      called(w, std::move(cut),
             [&](RowHome& home, Lists& lists) { return home.cut(of, lists.views<PutRows>()); });
    }
    Call call;
    for (auto& [key, row] : rows_) {
      if (row.holder != w || !row.is_there || draw(3) == 0) continue;
      const int64_t times = 1 + draw(8) / 7;
      for (int64_t i = 0; i < times; ++i) add_random(call.here, key);
      row.last_put = step;
      if (draw(4) > 0) row.holder = -1;
    }
    call.plain = call.here;
    writer.mark = step;
    called(w, std::move(call),
           [&](RowHome& home, Lists& lists) { return home.put(lists.views<PutRows>(), step); });
  }

  // A put of other rows at a step that is over.
  void repeat(int w) {
    Call call;
    add_random(call.here, std::next(rows_.begin(), draw(std::ssize(rows_)))->first);
    call.plain = call.here;
    const int64_t step = writers_[w].mark - draw(2);
    called(w, std::move(call),
           [&](RowHome& home, Lists& lists) { return home.put(lists.views<PutRows>(), step); });
  }

  // Rows that nobody holds: to take them, or to look at them, some twice.
  void fetch(int w) {
    Call call;
    int64_t fence = draw(2) == 0 ? RowHome::kNoFence : writers_[w].mark;
    auto at = std::next(rows_.begin(), draw(std::ssize(rows_)));
    const bool takes = draw(4) > 0;
    for (int64_t count = draw(12); count > 0 && at != rows_.end(); --count, ++at) {
      auto& [key, row] = *at;
      if (row.holder >= 0 || (takes && row.looked_at > 0)) continue;
      const std::vector<std::byte> room(records_[key.first].bytes());
      const int64_t times = 1 + draw(6) / 5;
      for (int64_t i = 0; i < times; ++i) add(call.here, key, room);
      fence = std::max(fence, row.last_put);
      if (takes) row.holder = w;
      row.is_there = false;
      if (!takes) ++row.looked_at;
      (takes ? call.taken : call.looked_at).insert(key);
    }
    call.plain = call.here;
    called(w, std::move(call), [&](RowHome& home, Lists& lists) {
      return home.fetch(lists.views<FetchedRows>(), fence);
    });
  }

  // Of a step that no writer is beyond, and behind all others.
  void plan_cut() {
    int64_t step = cuts_.empty() ? -1 : cuts_.back().step + 1;
    for (const WriterState& writer : writers_) step = std::max(step, writer.mark);
    cuts_.push_back({step + draw(3), false, nullptr});
  }

  // The same on both sides. What was asked of the home is in writers_ before anything is answered.
  template <class Body>
  void called(int w, Call call, const Body& body) {
    WriterState& writer = writers_[w];
    const Ticket ticket = next_ticket_[w]++;
    Call& kept = writer.calls[ticket] = std::move(call);
    const Ticket here = body(writer_(w), kept.here);
    const Ticket there = body(plain_.writer(w), kept.plain);
    if (here != ticket || there != ticket)
      differ("writer " + std::to_string(w) + ": ticket " + std::to_string(here) + ", not " +
             std::to_string(ticket));
  }

  void poll(int w) {
    for (int of = 0; of < trace_.writers; ++of) {
      std::vector<RowHome::Answer> answers;
      plain_.writer(of).poll(answers);
      for (auto& answer : answers) writers_[of].plain_answers[answer.ticket] = std::move(answer);
    }
    std::vector<RowHome::Answer> answers;
    writer_(w).poll(answers);
    for (const auto& answer : answers) take(w, answer);
  }

  void take(int w, const RowHome::Answer& answer) {
    WriterState& writer = writers_[w];
    const std::string who =
        "writer " + std::to_string(w) + ", ticket " + std::to_string(answer.ticket);
    const auto plain = writer.plain_answers.find(answer.ticket);
    if (plain == writer.plain_answers.end())
      return differ(who + " is answered too early, or twice");
    const Call call = std::move(writer.calls[answer.ticket]);
    if (answer.status.message() != plain->second.status.message())
      differ(who + ": " + answer.status.message() + ", not " + plain->second.status.message());
    for (size_t i = 0; i < call.here.records.size(); ++i)
      if (call.here.records[i] != call.plain.records[i])
        differ(who + ": records of table " + std::to_string(call.here.tables[i]));
    for (const Key& key : call.taken) rows_[key].is_there = true;
    for (const Key& key : call.looked_at) --rows_[key].looked_at;
    writer.plain_answers.erase(plain);
    writer.calls.erase(answer.ticket);
    if (call.cut >= 0) take_image(who, call.cut, answer.image);
  }

  // Of the first writer: to read it at once, to read it at the end, or to let it go.
  void take_image(const std::string& who, int number, const std::shared_ptr<RowSnapshot>& image) {
    if (image == nullptr) return differ(who + ": a cut without an image");
    CutState& cut = cuts_[number];
    if (std::exchange(cut.is_there, true)) return;
    const int64_t what = draw(3);
    if (what > 0) cut.image = image;
    if (what == 1) read(cut);
  }

  // While work goes on, unless it does already.
  void read(CutState& cut) {
    const auto image = std::exchange(cut.image, nullptr);
    const int64_t step = cut.step;
    const auto expected = plain_.as_after(step);
    auto next = expected.begin();
    const bool works = !std::exchange(is_reading_, true);
    const Status status = image->read([&](const RowBlock& block) -> Status {
      for (int64_t i = 0; i < block.count; ++i, ++next) {
        const Key key{block.table, block.row(i)};
        if (next == expected.end() || next->first != key)
          return Status::Failed("rows of an image do not come in order");
        if (!equal(block, i, next->second))
          differ("image after step " + std::to_string(step) + ": " + name_of(key));
      }
      if (works && draw(3) == 0) act();
      return {};
    });
    if (works) is_reading_ = false;
    if (!status.ok()) differ(status.message());
    if (next != expected.end()) differ("an image without " + name_of(next->first));
  }

  // By bits.
  bool equal(const RowBlock& block, int64_t i, const PlainHome::Record& record) const {
    const TableSpec& spec = trace_.specs[block.table];
    std::vector<float> weights(spec.dim);
    std::vector<std::vector<float>> columns;
    for (const StateColumn& column : row_state(spec)) columns.emplace_back(column.width);
    const std::vector<std::span<float>> state(columns.begin(), columns.end());
    records_[block.table].read(record.data(), weights, state);
    const auto same = [&](std::span<const float> values, std::span<const float> of_block) {
      return std::memcmp(values.data(), of_block.data() + i * std::ssize(values),
                         values.size_bytes()) == 0;
    };
    bool all = same(weights, block.weights) && block.state.size() == columns.size();
    for (size_t c = 0; all && c < columns.size(); ++c) all = same(columns[c], block.state[c]);
    return all;
  }

  // All writers come to the same step, and everything is answered.
  void finish() {
    is_reading_ = true;  // nothing new is done
    int64_t last = cuts_.empty() ? 0 : cuts_.back().step;
    for (const WriterState& writer : writers_) last = std::max(last, writer.mark);
    for (int w = 0; w < trace_.writers; ++w) put(w, last + 1);
    poll_all();
    for (int w = 0; w < trace_.writers; ++w) put(w, last + 2);  // rows that came only now
    poll_all();
    for (CutState& cut : cuts_)
      if (cut.image != nullptr) read(cut);
    poll_all();
    Call call;
    for (const auto& [key, row] : rows_)
      add(call.here, key, std::vector<std::byte>(records_[key.first].bytes()));
    call.plain = call.here;
    called(0, std::move(call), [&](RowHome& home, Lists& lists) {
      return home.fetch(lists.views<FetchedRows>(), last + 2);
    });
    poll_all();
  }

  void poll_all() {
    constexpr int kPolls = 10000;
    const auto calls = [&] {
      size_t sum = 0;
      for (const WriterState& writer : writers_) sum += writer.calls.size();
      return sum;
    };
    for (int i = 0; i < kPolls && calls() > 0; ++i)
      for (int w = 0; w < trace_.writers; ++w) poll(w);
    if (calls() > 0) differ(std::to_string(calls()) + " calls are not answered");
  }

  const HomeTrace& trace_;
  const WriterOf& writer_;
  const Random random_;
  uint64_t draws_ = 0;
  ThreadPool pool_;
  PlainHome plain_;
  std::vector<RowRecord> records_;  // [tables]
  std::map<Key, Row> rows_;
  std::vector<WriterState> writers_;
  std::map<int, Ticket> next_ticket_;
  std::deque<CutState> cuts_;
  bool is_reading_ = false;
  std::string difference_;
};

}  // namespace

std::vector<TableSpec> home_tables() {
  constexpr int64_t kDims[] = {1, 16, 33, 2, 100, 1024, 4};
  std::vector<TableSpec> specs;
  const auto add = [&](OptimizerKind kind, RowPrecision precision) -> TableSpec& {
    TableSpec spec;
    spec.name = "t" + std::to_string(specs.size());
    spec.rows = 3 + static_cast<int64_t>(specs.size()) % 9;
    spec.dim = kDims[specs.size() % std::size(kDims)];
    spec.precision = precision;
    spec.optimizer.kind = kind;
    return specs.emplace_back(spec);
  };
  for (const auto& [precision, precision_name] : EnumNames<RowPrecision>::names) {
    for (const auto& [kind, kind_name] : EnumNames<OptimizerKind>::names) add(kind, precision);
    add(OptimizerKind::adam, precision).optimizer.correction = BiasCorrection::row;
    add(OptimizerKind::adagrad, precision).frozen = true;
    add(OptimizerKind::rowwise_adagrad, precision);
  }
  return specs;
}

std::vector<EmbeddingTable> tables_of(const std::vector<TableSpec>& specs, uint64_t seed,
                                      ThreadPool& pool) {
  std::vector<EmbeddingTable> tables;
  for (const TableSpec& spec : specs)
    tables.push_back(*EmbeddingTable::create(spec, seed, RowShare(spec.rows, 0, 1), pool));
  return tables;
}

std::string difference_from_plain(const HomeTrace& trace, const WriterOf& writer) {
  return Driver(trace, writer).run();
}

}  // namespace recmill::table::testing
