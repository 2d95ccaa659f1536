// SPDX-License-Identifier: Apache-2.0
#include "store/cached/testing/row_service_simulation.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "base/split_mix.h"
#include "remote/row_client.h"
#include "remote/testing/simulated_network.h"
#include "table/initial_rows.h"

namespace recmill::store::testing {
namespace {

using remote::Message;
using remote::MessageKind;
using remote::RowClient;
using table::RowHome;
using Record = std::vector<uint32_t>;

constexpr int64_t kRowsOfA = 5, kRowsOfB = 7, kRows = kRowsOfA + kRowsOfB;

std::vector<TableSpec> tables() {
  std::vector<TableSpec> specs(2);
  specs[0].name = "a";
  specs[0].rows = kRowsOfA;
  specs[0].dim = 1;
  specs[1].name = "b";
  specs[1].rows = kRowsOfB;
  specs[1].dim = 2;
  for (TableSpec& spec : specs) spec.optimizer.kind = OptimizerKind::sgd;
  return specs;
}
int table_of(int64_t row) {
  return row < kRowsOfA ? 0 : 1;
}
int64_t row_of_table(int64_t row) {
  return row < kRowsOfA ? row : row - kRowsOfA;
}
size_t words_of(int64_t row) {
  return row < kRowsOfA ? 1 : 2;
}

/// What all steps use, and what synchronous training makes of it.
struct Stream {
  std::vector<std::set<int64_t>> uses;      // [steps]
  std::vector<std::vector<Record>> before;  // [steps + 1][rows]: rows as they are before each step

  int64_t steps() const { return std::ssize(uses); }
  static Record updated(const Record& record, int64_t step) {
    Record to = record;
    for (uint32_t& word : to)
      word = static_cast<uint32_t>(split_mix(word ^ static_cast<uint64_t>(step + 1) << 32));
    return to;
  }
};

Stream make_stream(std::mt19937_64& random, uint64_t seed) {
  Stream stream;
  std::vector<Record> rows;
  for (int64_t row = 0; row < kRows; ++row) {
    const table::InitialRows initial(tables()[static_cast<size_t>(table_of(row))], seed);
    Record& record = rows.emplace_back(words_of(row));
    initial.make(row_of_table(row), reinterpret_cast<std::byte*>(record.data()));
  }
  stream.before.push_back(rows);
  const auto steps = static_cast<int64_t>(4 + random() % 12);
  for (int64_t step = 0; step < steps; ++step) {
    auto& uses = stream.uses.emplace_back();
    for (auto lookups = random() % 6; lookups > 0; --lookups)
      uses.insert(static_cast<int64_t>(random() % kRows * (random() % 3) / 2));
    for (const int64_t row : uses)
      rows[static_cast<size_t>(row)] = Stream::updated(rows[static_cast<size_t>(row)], step);
    stream.before.push_back(rows);
  }
  return stream;
}

/// Rows as calls of a home name them, by table.
struct Lists {
  std::vector<int64_t> rows[2];
  std::vector<uint32_t> words[2];
  std::vector<int64_t> order;  // rows of both tables, as words are

  void add(int64_t row, const Record& record) {
    const int table = table_of(row);
    rows[table].push_back(row_of_table(row));
    words[table].insert(words[table].end(), record.begin(), record.end());
  }
  template <class View>
  std::vector<View> views() {
    std::vector<View> of;
    for (int t = 0; t < 2; ++t)
      if (!rows[t].empty()) of.push_back({t, rows[t], std::as_writable_bytes(std::span(words[t]))});
    return of;
  }
  std::map<int64_t, Record> records() const {
    std::map<int64_t, Record> of;
    for (int t = 0; t < 2; ++t)
      for (size_t i = 0; i < rows[t].size(); ++i) {
        const int64_t row = rows[t][i] + (t == 0 ? 0 : kRowsOfA);
        const size_t words_each = words_of(row);
        const auto first = words[t].begin() + static_cast<std::ptrdiff_t>(i * words_each);
        of[row] = {first, first + static_cast<std::ptrdiff_t>(words_each)};
      }
    return of;
  }
};

/// Who has each row when: from a first use to the last one before another rank's, or a long pause.
std::vector<std::vector<Mover::Plan>> make_plans(const Stream& stream, int64_t first, int ranks,
                                                 std::mt19937_64& random) {
  const auto steps = stream.steps() - first;
  const auto pause = static_cast<int64_t>(random() % 4),
             prefetch = static_cast<int64_t>(random() % 4);
  const uint64_t salt = random();
  std::vector<std::vector<LookaheadStep>> plans(static_cast<size_t>(ranks));
  for (auto& of_rank : plans)
    for (int64_t x = 0; x < steps; ++x)
      of_rank.push_back({.step = x, .filled_after = x - prefetch - 1});
  for (int64_t row = 0; row < kRows; ++row) {
    int64_t last = -1;
    size_t holder = 0;
    const auto slot = static_cast<int32_t>(row);
    for (int64_t x = 0; x < steps; ++x) {
      if (!stream.uses[static_cast<size_t>(first + x)].contains(row)) continue;
      const auto user =
          split_mix(salt ^ static_cast<uint64_t>(x * kRows + row)) % static_cast<uint64_t>(ranks);
      LookaheadStep& plan = plans[user][static_cast<size_t>(x)];
      plan.uses.push_back({row, slot});
      if (last < 0 || user != holder || x - last > pause + 1) {
        if (last >= 0) plans[holder][static_cast<size_t>(last)].evict.push_back({row, slot});
        plan.fetch.push_back({row, slot});
        plan.fence = std::max(plan.fence, last);
      }
      last = x;
      holder = user;
    }
    if (last >= 0) plans[holder][static_cast<size_t>(last)].evict.push_back({row, slot});
  }
  std::vector<std::vector<Mover::Plan>> shared(plans.size());
  for (size_t r = 0; r < plans.size(); ++r)
    for (auto& plan : plans[r])
      shared[r].push_back(std::make_shared<const LookaheadStep>(std::move(plan)));
  return shared;
}

/// Images are read by RowClient::call() here; what is left is to let them go.
class Images final : public remote::ImageAccess {
 public:
  RowClient* client = nullptr;
  Result<Message> ask(int, Message) override { return Status::Failed("not so"); }
  bool may_write_below(const std::string&) const override { return false; }
  void release(int64_t step) override {
    if (client != nullptr) client->release(step);
  }
};

/// One start of a rank.
struct Rank {
  Rank(remote::RowClientOptions options, const MoverWaits& waits, std::vector<Mover::Plan> of)
      : number(options.rank),
        images_of(std::make_shared<Images>()),
        plans(std::move(of)),
        mover(waits) {
    options.images = images_of;
    client = std::make_unique<RowClient>(std::move(options));
    images_of->client = client.get();
  }
  ~Rank() { images_of->client = nullptr; }
  Rank(const Rank&) = delete;

  struct Fetch {
    int64_t step = 0;  // of the plan
    std::unique_ptr<Lists> lists;
  };
  struct Cut {
    int64_t step = 0;  // of the run
    Lists changed;
  };

  const int number;
  std::shared_ptr<Images> images_of;
  std::unique_ptr<RowClient> client;
  int in_network = 0;
  std::vector<Mover::Plan> plans;
  Mover mover;
  int64_t planned = 0, trained = 0;
  std::map<int64_t, Record> slots;
  std::set<int64_t> dirty, changed;  // since they came, and since the last cut
  std::map<RowHome::Ticket, Fetch> fetches;
  std::map<int64_t, std::map<int64_t, Record>> came;  // by step of the plan
  std::optional<Cut> cut;                             // to be called
  std::map<RowHome::Ticket, int64_t> cuts;            // that were called: steps of the run
  std::map<int64_t, std::shared_ptr<table::RowSnapshot>> images;  // by step of the run
};

/// Rank 0 reads an image from all servers while service goes on.
struct Checkpoint {
  int64_t step = 0;
  std::shared_ptr<table::RowSnapshot> image;
  std::map<int64_t, int> asked;  // number of a call: its server
  std::map<int64_t, Record> rows;
  int left = 0;  // servers
};

class Simulation {
 public:
  explicit Simulation(const ServiceSimulation& of)
      : of_(of),
        random_(of.seed),
        stream_(make_stream(random_, of.seed)),
        network_(of.seed + 1, 1 + static_cast<int>(random_() % 3), of.breaks, of.checks) {}

  ServiceOutcome run() {
    start();
    for (int turns = 0; outcome_.wrong.empty() && !is_over(); ++turns) {
      if (turns == 300'000) fail("nothing moves");
      turn();
    }
    if (outcome_.wrong.empty()) compare_at_the_end();
    outcome_.broken = network_.broken;
    return outcome_;
  }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  void fail(const std::string& what) {
    if (outcome_.wrong.empty()) outcome_.wrong = what;
  }
  int64_t step_of(int64_t x) const { return first_ + x; }  // of the run, of a plan's

  void turn() {
    if (of_.crashes && crashes_ < 4 && below(700) == 0) return void(crash());
    switch (below(8)) {
      case 0:
        return move(any_rank());
      case 1:
        return train(any_rank());
      case 2:
        return poll(any_rank());
      case 3:
        return commit_or_save();
      case 4:
        if (!zombies_.empty()) {
          Rank& zombie = *zombies_[static_cast<size_t>(below(std::ssize(zombies_)))];
          return below(2) == 0 ? move(zombie) : poll_zombie(zombie);
        }
        return;
      default:
        return network_.act();
    }
  }

  Rank& any_rank() { return *ranks_[static_cast<size_t>(below(std::ssize(ranks_)))]; }

  // Starts

  /// From the record of server 0, if there is one and no server has lost its rows.
  void start() {
    ranks_.clear();
    commit_.reset();
    checkpoint_.reset();
    record_call_.reset();
    const int ranks = 1 + static_cast<int>(below(3));
    remote::RowClientOptions options;
    options.greeting.run = "run";
    options.greeting.term = ++term_;
    options.greeting.ranks = ranks;
    options.greeting.servers = network_.servers();
    options.greeting.seed = of_.seed;
    options.greeting.tables = tables();
    options.greeting.deadline = 1e9;
    options.message_bytes = 8;
    options.message_rows = 1;
    const auto recorded = rows_lost_ ? -1 : recorded_step();
    options.greeting.fresh = recorded < 0;
    const bool restores = recorded < 0 && saved_;
    options.begin = recorded >= 0 ? recorded : restores ? saved_->first - 1 : -1;
    first_ = recorded >= 0 ? recorded + 1 : restores ? saved_->first + 1 : 0;
    rows_lost_ = false;
    recorded_ = recorded;
    if (term_ > 1) ++(recorded >= 0 ? outcome_.restarts : outcome_.anew);
    auto plans = make_plans(stream_, first_, ranks, random_);
    for (options.rank = 0; options.rank < ranks && outcome_.wrong.empty(); ++options.rank)
      if (!start_rank(options, std::move(plans[static_cast<size_t>(options.rank)]), restores))
        return;
  }

  int64_t recorded_step() {
    const Message answer = network_.ask(0, {MessageKind::recorded, 0});
    if (answer.kind == MessageKind::error || answer.step < 0) return -1;
    if (answer.body.text() != std::to_string(answer.step)) fail("a record of another step");
    return answer.step;
  }

  /// False: another start has begun meanwhile.
  bool start_rank(const remote::RowClientOptions& options, std::vector<Mover::Plan> plans,
                  bool restores) {
    ranks_.push_back(std::make_unique<Rank>(options, of_.mover, std::move(plans)));
    Rank& rank = *ranks_.back();
    rank.in_network = network_.add(*rank.client);
    if (!options.greeting.fresh) rank.images[options.begin] = rank.client->image_of_begin();
    if (restores) {
      Lists rows;
      if (rank.number == 0)
        for (const auto& [row, record] : saved_->second) rows.add(row, record);
      rank.client->put(rows.views<table::PutRows>(), saved_->first);
    }
    // Rank 0 opens the term at all servers before the others greet.
    while (rank.number == 0 && !rank.client->has_begun()) {
      network_.act();
      if (of_.crashes && crashes_ < 4 && below(200) == 0 && crash()) return false;
      if (rank.client->failure().ok()) continue;
      // An older rank 0 has recorded a commit since it was asked, or a server has lost its rows.
      const std::string& why = rank.client->failure().message();
      // A start that began anew, and was lost before it was heard of, may have dropped the commit.
      if (++refusals_ > 20 || (outcome_.anew == 0 && why.find("no commit") != std::string::npos))
        fail(why);
      if (!outcome_.wrong.empty()) return false;
      rows_lost_ = true;
      lose_ranks();
      start();
      return false;
    }
    return true;
  }

  void lose_ranks() {
    for (auto& rank : ranks_) {
      if (below(2) == 0) {
        zombies_.push_back(std::move(rank));
      } else {
        network_.remove(rank->in_network);
      }
    }
    ranks_.clear();
  }

  /// Whether ranks are started again.
  bool crash() {
    ++crashes_;
    if (below(3) == 0) {
      const auto server = static_cast<int>(below(network_.servers()));
      rows_lost_ |= network_.server(server).has_run();
      network_.restart(server);
      if (below(2) == 0) return false;  // the ranks find out
    }
    lose_ranks();
    start();
    return true;
  }

  // Ranks

  void train(Rank& rank) {
    const int64_t x = rank.trained;
    if (x >= std::ssize(rank.plans)) return;
    if (rank.planned < std::ssize(rank.plans) && rank.planned < x + 6)
      rank.mover.plan(rank.plans[static_cast<size_t>(rank.planned++)]);
    if (x >= rank.planned || (of_.lookups_wait && !rank.mover.is_ready(x))) return;
    for (const auto& other : ranks_)
      if (other->trained < x) return;
    const int64_t step = step_of(x);
    for (const RowInSlot& use : rank.plans[static_cast<size_t>(x)]->uses) {
      Record& record = rank.slots[use.row];
      if (record != stream_.before[static_cast<size_t>(step)][static_cast<size_t>(use.row)])
        return fail("a stale read of row " + std::to_string(use.row) + " in step " +
                    std::to_string(step));
      record = Stream::updated(record, step);
      rank.dirty.insert(use.row);
      rank.changed.insert(use.row);
    }
    rank.mover.done(x);
    ++rank.trained;
  }

  void move(Rank& rank) {
    if (rank.cut && step_of(rank.mover.left()) >= rank.cut->step &&
        (of_.cut_in_order || below(8) == 0))
      return call_cut(rank);
    const auto action = rank.mover.next();
    if (!action) return;
    const LookaheadStep& plan = *action->plan;
    switch (action->act) {
      case Mover::Act::fetch: {
        auto lists = std::make_unique<Lists>();
        for (const RowInSlot& row : plan.fetch) lists->add(row.row, Record(words_of(row.row)));
        const int64_t fence =
            of_.fences ? step_of(std::max<int64_t>(plan.fence, -1)) : RowHome::kNoFence;
        const auto ticket = rank.client->fetch(lists->views<table::FetchedRows>(), fence);
        rank.fetches[ticket] = {plan.step, std::move(lists)};
        break;
      }
      case Mover::Act::fill:
        for (const auto& [row, record] : rank.came[plan.step]) rank.slots[row] = record;
        rank.came.erase(plan.step);
        break;
      case Mover::Act::leave: {
        Lists rows;
        for (const RowInSlot& row : plan.evict) {
          if (rank.dirty.contains(row.row)) rows.add(row.row, rank.slots[row.row]);
          rank.dirty.erase(row.row);
          rank.changed.erase(row.row);
          rank.slots.erase(row.row);
        }
        rank.client->put(rows.views<table::PutRows>(), step_of(plan.step));
        break;
      }
    }
    rank.mover.carried_out(*action);
  }

  void call_cut(Rank& rank) {
    const int64_t step = rank.cut->step;
    const auto ticket = rank.client->cut(step, rank.cut->changed.views<table::PutRows>());
    rank.cuts[ticket] = step;
    rank.cut.reset();
    if (rank.number == 0 && !of_.record_waits) call_record(rank, step);
  }

  void call_record(Rank& rank, int64_t step) {
    record_call_ = rank.client->call(
        0, {MessageKind::record, 0, step, 0, remote::Bytes::text(std::to_string(step))});
  }

  void poll(Rank& rank) {
    std::vector<RowHome::Answer> answers;
    rank.client->poll(answers);
    if (!rank.client->failure().ok()) {
      if (!rows_lost_) return fail(rank.client->failure().message());
      lose_ranks();
      return start();
    }
    for (auto& answer : answers) {
      if (!answer.status.ok()) return fail(answer.status.message());
      take(rank, answer);
    }
    std::vector<RowClient::Reply> replies;
    rank.client->poll_replies(replies);
    for (const auto& reply : replies) {
      if (!reply.status.ok()) return fail(reply.status.message());
      if (rank.number == 0 && record_call_ == reply.number) {
        recorded_ = *commit_;
        commit_.reset();
        record_call_.reset();
        ++outcome_.commits;
      } else if (checkpoint_ && rank.number == 0 && checkpoint_->asked.contains(reply.number)) {
        take_read(rank, reply);
      }
    }
  }

  void take(Rank& rank, RowHome::Answer& answer) {
    take_rows(rank, answer.ticket);
    if (const auto cut = rank.cuts.find(answer.ticket); cut != rank.cuts.end()) {
      rank.images[cut->second] = std::move(answer.image);
      if (!of_.release_waits) rank.images.erase(rank.images.begin(), rank.images.find(cut->second));
      if (rank.number == 0 && of_.record_waits) call_record(rank, cut->second);
      rank.cuts.erase(cut);
    }
  }

  void take_rows(Rank& rank, RowHome::Ticket ticket) {
    const auto fetch = rank.fetches.find(ticket);
    if (fetch == rank.fetches.end()) return;
    const int64_t step = fetch->second.step;
    if (!rank.mover.is_ready(step)) {  // else a fill has not waited
      rank.mover.came(step);
      rank.came[step] = fetch->second.lists->records();
    }
    rank.fetches.erase(fetch);
  }

  // A rank of an older term, which does not know it.
  void poll_zombie(Rank& zombie) {
    std::vector<RowHome::Answer> answers;
    zombie.client->poll(answers);
    for (auto& answer : answers) {
      if (answer.status.ok()) take_rows(zombie, answer.ticket);
    }
  }

  // Commits and checkpoints: what the loop decides between iterations, for all ranks.

  void commit_or_save() {
    const int64_t trained = ranks_[0]->trained;
    for (const auto& rank : ranks_)
      if (rank->trained != trained) return;
    if (below(3) == 0 && !checkpoint_ && recorded_ >= 0 && ranks_[0]->images.contains(recorded_))
      return begin_checkpoint();
    if (commit_ || trained == 0 || below(3) > 0) return;
    const int64_t step = step_of(trained - 1);
    if (step <= recorded_) return;
    commit_ = step;
    for (const auto& rank : ranks_) {
      for (auto image = rank->images.begin();
           of_.release_waits && image != rank->images.end() && image->first < recorded_;)
        image = rank->images.erase(image);
      rank->cut.emplace();
      rank->cut->step = step;
      for (const int64_t row : std::exchange(rank->changed, {}))
        rank->cut->changed.add(row, rank->slots[row]);
    }
  }

  void begin_checkpoint() {
    Rank& rank = *ranks_[0];
    checkpoint_ = Checkpoint{recorded_, rank.images[recorded_], {}, {}, network_.servers()};
    for (int s = 0; s < network_.servers(); ++s) read(rank, s, 0);
  }

  void read(Rank& rank, int server, int64_t cursor) {
    const int64_t number =
        rank.client->call(server, {MessageKind::read, 0, checkpoint_->step, cursor});
    checkpoint_->asked[number] = server;
  }

  void take_read(Rank& rank, const RowClient::Reply& reply) {
    const int server = checkpoint_->asked.extract(reply.number).mapped();
    const auto shapes = remote::shapes_of(tables());
    const auto lists = remote::read_row_lists(reply.message.body.view(), true, shapes);
    if (!lists.ok()) return fail(lists.status().message());
    for (const remote::TableRows& of : *lists) {
      const std::byte* from = of.records.data();
      for (const int64_t of_table : of.rows) {
        const int64_t row = of_table + (of.table == 0 ? 0 : kRowsOfA);
        Record& record = checkpoint_->rows[row];
        record.resize(words_of(row));
        std::memcpy(record.data(), from, record.size() * 4);
        from += record.size() * 4;
      }
    }
    if (reply.message.detail >= 0) return read(rank, server, reply.message.detail);
    if (--checkpoint_->left > 0) return;
    publish();
  }

  void publish() {
    const auto& expected = stream_.before[static_cast<size_t>(checkpoint_->step + 1)];
    for (int64_t row = 0; row < kRows; ++row) {
      const auto touched = checkpoint_->rows.find(row);
      const Record& record = touched == checkpoint_->rows.end()
                                 ? stream_.before[0][static_cast<size_t>(row)]
                                 : touched->second;
      if (record != expected[static_cast<size_t>(row)])
        return fail("a checkpoint of step " + std::to_string(checkpoint_->step) + ": row " +
                    std::to_string(row));
    }
    saved_ = {checkpoint_->step, std::move(checkpoint_->rows)};
    checkpoint_.reset();
    ++outcome_.checkpoints;
  }

  // The end

  bool is_over() const {
    for (const auto& rank : ranks_) {
      if (rank->mover.left() + 1 < std::ssize(rank->plans)) return false;
      for (int s = 0; s < network_.servers(); ++s)
        if (!rank->client->is_connected(s)) return false;
    }
    return !ranks_.empty() && network_.is_idle();
  }

  void compare_at_the_end() {
    const table::RowShare shares[2] = {{kRowsOfA, 0, network_.servers()},
                                       {kRowsOfB, 0, network_.servers()}};
    for (int64_t row = 0; row < kRows; ++row) {
      const int t = table_of(row);
      const std::vector<remote::TableRows> named{{t, {row_of_table(row)}, {}}};
      const Message answer = network_.ask(
          shares[t].owner(row_of_table(row)),
          {MessageKind::fetch, 0, stream_.steps() - 1, 0, remote::write_row_lists(named)});
      Record record(words_of(row));
      if (answer.body.size() != record.size() * 4) return fail("a row cannot be read at the end");
      std::memcpy(record.data(), answer.body.view().data(), record.size() * 4);
      if (record != stream_.before.back()[static_cast<size_t>(row)])
        return fail("an update of row " + std::to_string(row) + " is lost or double at the end");
    }
  }

  const ServiceSimulation of_;
  std::mt19937_64 random_;
  const Stream stream_;
  remote::testing::SimulatedNetwork network_;
  ServiceOutcome outcome_;
  int64_t term_ = 0, first_ = 0;
  std::vector<std::unique_ptr<Rank>> ranks_, zombies_;
  int crashes_ = 0, refusals_ = 0;
  bool rows_lost_ = false;
  std::optional<int64_t> commit_;  // under way
  int64_t recorded_ = -1;          // as the ranks know
  std::optional<int64_t> record_call_;
  std::optional<Checkpoint> checkpoint_;
  std::optional<std::pair<int64_t, std::map<int64_t, Record>>> saved_;  // the newest: step, rows
};

}  // namespace

ServiceOutcome simulate_service(const ServiceSimulation& of) {
  return Simulation(of).run();
}

}  // namespace recmill::store::testing
