// SPDX-License-Identifier: Apache-2.0
#include "remote/row_client.h"

#include <algorithm>
#include <cstring>

#include "remote/part_order.h"
#include "remote/remote_image.h"

namespace recmill::remote {
namespace {

constexpr double kPingPart = 0.25;  // of the deadline, without a word from a server
constexpr int kBehindUnderWay = 2;  // messages that go behind calls

using table::FetchedRows;
using table::PutRows;
using table::RowHome;

}  // namespace

RowClient::RowClient(RowClientOptions options)
    : options_(std::move(options)),
      shapes_(shapes_of(options_.greeting.tables)),
      servers_(static_cast<size_t>(options_.greeting.servers)),
      mark_(options_.begin) {
  for (const TableSpec& table : options_.greeting.tables)
    shares_.emplace_back(table.rows, 0, options_.greeting.servers);
}

std::string RowClient::name_of(int server) const {
  std::string name = "server " + std::to_string(server);
  if (!options_.addresses.empty())
    name += " (" + options_.addresses[static_cast<size_t>(server)] + ")";
  return name;
}

template <class Rows>
Status RowClient::check(std::span<const Rows> rows) const {
  for (const Rows& of : rows) {
    if (of.table < 0 || of.table >= std::ssize(shapes_))
      return Status::Failed("there is no table " + std::to_string(of.table));
    const TableShape& shape = shapes_[of.table];
    RECMILL_CHECK(std::ssize(of.records) == std::ssize(of.rows) * shape.record_bytes, shape.name);
    for (const int64_t row : of.rows)
      if (row < 0 || row >= shape.rows)
        return Status::Failed("table '" + shape.name + "': row " + std::to_string(row) +
                              " is outside of its " + std::to_string(shape.rows) + " rows");
  }
  return {};
}

/// Tables ascend in each part.
template <class Rows>
std::vector<std::vector<RowClient::Part>> RowClient::split(std::span<const Rows> rows,
                                                           bool in_one) const {
  std::vector<const Rows*> by_table;
  for (const Rows& of : rows) by_table.push_back(&of);
  std::ranges::stable_sort(by_table, {}, [](const Rows* of) { return of->table; });
  std::vector<std::vector<Part>> parts(servers_.size());
  const auto is_full = [&](const Part& part) {
    return !in_one && part.bytes >= options_.message_bytes &&
           std::ssize(part.places) >= options_.message_rows;
  };
  for (const Rows* of : by_table) {
    const auto bytes = static_cast<size_t>(shapes_[of->table].record_bytes);
    const table::RowShare& share = shares_[of->table];
    auto* record = const_cast<std::byte*>(of->records.data());
    for (const int64_t row : of->rows) {
      auto& at_server = parts[static_cast<size_t>(share.owner(row))];
      if (at_server.empty() || is_full(at_server.back())) at_server.emplace_back();
      Part& part = at_server.back();
      if (part.rows.empty() || part.rows.back().table != of->table)
        part.rows.push_back({of->table, {}, {}});
      part.rows.back().rows.push_back(row);
      part.places.push_back({record, bytes});
      part.bytes += bytes;
      record += bytes;
    }
  }
  return parts;
}

/// Rows and the records at their places.
std::vector<std::byte> RowClient::body_of(const Part& part) const {
  size_t at = 0;
  auto body = write_row_lists(part.rows, part.bytes, at);
  for (const Place& place : part.places) {
    std::memcpy(body.data() + at, place.to, place.bytes);
    at += place.bytes;
  }
  return body;
}

RowHome::Ticket RowClient::failed(Status why) {
  answers_.push_back({tickets_, std::move(why)});
  wake();
  return tickets_++;
}

void RowClient::enqueue(int server, Pending pending, bool behind) {
  Server& to = servers_[static_cast<size_t>(server)];
  if (to.calls.empty() && to.behind.empty()) to.heard = to.answered = now_;
  pending.message.request = to.requests++;
  (behind ? to.behind : to.calls).push_back(std::move(pending));
}

RowHome::Ticket RowClient::fetch(std::span<const FetchedRows> rows, int64_t fence) {
  if (!failure_.ok()) return failed(failure_);
  if (Status status = check(rows); !status.ok()) return failed(std::move(status));
  auto parts = split(rows, /*in_one=*/false);
  Call& call = calls_[tickets_];
  const auto send = [&](int server, Part part) {
    ++call.parts;
    Message message{MessageKind::fetch, 0, fence, 0, write_row_lists(part.rows)};
    enqueue(server, {std::move(message), tickets_, false, std::move(part.places)});
  };
  for (int s = 0; s < servers(); ++s)
    for (Part& part : parts[static_cast<size_t>(s)]) send(s, std::move(part));
  if (call.parts == 0) send(0, {});  // it waits for its fence
  return tickets_++;
}

RowHome::Ticket RowClient::put(std::span<const PutRows> rows, int64_t step) {
  if (!failure_.ok()) return failed(failure_);
  if (Status status = check(rows); !status.ok()) return failed(std::move(status));
  auto parts = split(rows, /*in_one=*/true);      // which moves the mark
  constexpr size_t kMostBytes = size_t{1} << 30;  // that streams take in one message
  for (int s = 0; s < servers(); ++s) {
    auto& at_server = parts[static_cast<size_t>(s)];
    if (at_server.empty()) at_server.emplace_back();
    if (at_server[0].bytes > kMostBytes)
      return failed(Status::Failed("the rows of step " + std::to_string(step) + " at " +
                                   name_of(s) +
                                   " take more than 1 GiB, which a put may have at "
                                   "most; use more servers"));
  }
  calls_[tickets_].parts = servers();
  for (int s = 0; s < servers(); ++s)
    enqueue(s,
            {{MessageKind::put, 0, step, 0, body_of(parts[static_cast<size_t>(s)][0])}, tickets_});
  mark_ = std::max(mark_, step);
  return tickets_++;
}

RowHome::Ticket RowClient::cut(int64_t step, std::span<const PutRows> changed) {
  if (!failure_.ok()) return failed(failure_);
  if (Status status = check(changed); !status.ok()) return failed(std::move(status));
  if (mark_ > step)
    return failed(Status::Failed("a cut after step " + std::to_string(step) +
                                 " comes behind the put of step " + std::to_string(mark_)));
  const auto parts = split(changed, /*in_one=*/false);
  Call& call = calls_[tickets_];
  call.image = step;
  for (int s = 0; s < servers(); ++s) {
    // The first one makes the image, before puts of later steps.
    const auto send = [&](const Part& part, bool behind) {
      ++call.parts;
      enqueue(s, {{MessageKind::changed, 0, step, 0, body_of(part)}, tickets_}, behind);
    };
    send({}, /*behind=*/false);
    for (const Part& part : parts[static_cast<size_t>(s)]) send(part, /*behind=*/true);
    ++call.parts;
    enqueue(s, {{MessageKind::cut, 0, step}, tickets_}, /*behind=*/true);
  }
  return tickets_++;
}

int64_t RowClient::call(int server, Message message) {
  const int64_t number = replies_asked_++;
  if (failure_.ok()) {
    enqueue(server, {std::move(message), number, /*is_reply=*/true});
  } else {
    replies_.push_back({number, failure_, {}});
    wake();
  }
  return number;
}

void RowClient::poll(std::vector<Answer>& answers) {
  std::ranges::move(answers_, std::back_inserter(answers));
  answers_.clear();
}

void RowClient::poll_replies(std::vector<Reply>& replies) {
  std::ranges::move(replies_, std::back_inserter(replies));
  replies_.clear();
}

void RowClient::release(int64_t step) {
  const auto image = images_.find(step);
  if (image == images_.end() || --image->second > 0) return;
  images_.erase(image);
  for (int s = 0; s < servers(); ++s) call(s, {MessageKind::release, 0, step});
}

bool RowClient::is_connected(int server) const {
  const Server& of = servers_[static_cast<size_t>(server)];
  return of.is_connected && of.is_greeted;
}

std::shared_ptr<table::RowSnapshot> RowClient::image_of_begin() {
  RECMILL_CHECK(!options_.greeting.fresh, "a term that begins anew");
  ++images_[options_.begin];
  return std::make_shared<RemoteImage>(options_, options_.begin);
}

bool RowClient::may_write_below(const std::string& folder) const {
  return std::ranges::all_of(servers_,
                             [&](const Server& of) { return is_below(of.checkpoints, folder); });
}

table::HomeRoom RowClient::room() const {
  return std::ranges::max(servers_, {}, &Server::room).room;
}

bool RowClient::has_begun() const {
  return std::ranges::all_of(servers_, [](const Server& of) { return of.instance != 0; });
}

void RowClient::end() {
  for (int s = 0; s < servers(); ++s) call(s, {MessageKind::goodbye});
}

bool RowClient::is_busy() const {
  return std::ranges::any_of(
      servers_, [](const Server& of) { return !of.calls.empty() || !of.behind.empty(); });
}

void RowClient::connected(int server, double now) {
  now_ = std::max(now_, now);
  Server& of = servers_[static_cast<size_t>(server)];
  of.is_connected = true;
  of.has_greeted = of.is_greeted = false;
}

void RowClient::disconnected(int server, double now, const Status& why) {
  now_ = std::max(now_, now);
  Server& of = servers_[static_cast<size_t>(server)];
  if (!why.ok()) of.last_end = why;
  if (why.code() == Status::Code::bad_request && failure_.ok()) lose(why.at(name_of(server)));
  of.is_connected = of.is_pinged = false;
  for (Pending& pending : of.calls) pending.is_sent = false;
  for (Pending& pending : of.behind) pending.is_sent = false;
}

std::optional<Message> RowClient::next(int server) {
  Server& of = servers_[static_cast<size_t>(server)];
  if (!of.is_connected || !failure_.ok()) return std::nullopt;
  if (!of.is_greeted) {
    // Server 0 says whether the term may begin as rank 0 thinks.
    if (options_.rank == 0 && server > 0 && servers_[0].instance == 0) return std::nullopt;
    if (std::exchange(of.has_greeted, true)) return std::nullopt;
    Greeting greeting = options_.greeting;
    greeting.server = server;
    greeting.again = of.instance;
    return Message{MessageKind::hello, -1, options_.begin, options_.rank, write_greeting(greeting)};
  }
  const auto unsent = [](const Pending& pending) { return !pending.is_sent; };
  auto pending = std::ranges::find_if(of.calls, unsent);
  if (pending == of.calls.end()) {
    if (std::ranges::count_if(of.behind, &Pending::is_sent) >= kBehindUnderWay) return std::nullopt;
    pending = std::ranges::find_if(of.behind, unsent);
    if (pending == of.behind.end()) return std::nullopt;
  }
  pending->is_sent = true;
  return pending->message;
}

void RowClient::take(int server, const Message& message, double now) {
  now_ = std::max(now_, now);
  if (!failure_.ok()) return;
  Server& of = servers_[static_cast<size_t>(server)];
  of.heard = now_;
  of.is_pinged = false;
  if (!of.is_greeted) {
    auto greeting = message.kind == MessageKind::error
                        ? Result<ServerGreeting>(Status::Failed(std::string(message.body.text())))
                        : read_server_greeting(message.body);
    if (!greeting.ok()) return lose(greeting.status().at(name_of(server)));
    of.instance = greeting->instance;
    of.checkpoints = std::move(greeting->checkpoints);
    of.is_greeted = true;
    return;
  }
  for (auto* queue : {&of.calls, &of.behind}) {
    const auto found = std::ranges::find_if(*queue, [&](const Pending& pending) {
      return pending.is_sent && pending.message.request == message.request;
    });
    if (found == queue->end()) continue;
    Pending pending = std::move(*found);
    queue->erase(found);
    of.answered = now_;
    return handle(server, pending, message);
  }
}

void RowClient::handle(int server, Pending& pending, const Message& message) {
  if (pending.message.kind == MessageKind::ping) return;
  Status status;
  if (message.kind == MessageKind::error)
    status = Status::Failed(std::string(message.body.text()));
  else if (pending.message.kind == MessageKind::fetch && !pending.is_reply)
    status = scatter(pending, message);
  else if (pending.message.kind == MessageKind::put)
    servers_[static_cast<size_t>(server)].room = static_cast<table::HomeRoom>(
        std::clamp<int64_t>(message.detail, 0, static_cast<int64_t>(table::HomeRoom::none)));
  if (!status.ok()) status = status.at(name_of(server));
  if (pending.is_reply) {
    replies_.push_back({pending.ticket, std::move(status), message});
    return wake();
  }
  answered(pending.ticket, std::move(status));
}

Status RowClient::scatter(const Pending& pending, const Message& message) const {
  std::span<const std::byte> records = message.body.view();
  for (const Place& place : pending.places) {
    if (records.size() < place.bytes) break;
    std::memcpy(place.to, records.data(), place.bytes);
    records = records.subspan(place.bytes);
  }
  size_t expected = 0;
  for (const Place& place : pending.places) expected += place.bytes;
  if (message.body.size() == expected) return {};
  return Status::Failed("records of " + std::to_string(message.body.size()) + " bytes came, not " +
                        std::to_string(expected));
}

void RowClient::answered(Ticket ticket, Status status) {
  const auto found = calls_.find(ticket);
  Call& call = found->second;
  if (call.status.ok()) call.status = std::move(status);
  if (--call.parts > 0) return;
  Answer answer{ticket, call.status};
  if (call.image && call.status.ok()) {
    ++images_[*call.image];
    answer.image = std::make_shared<RemoteImage>(options_, *call.image);
  }
  calls_.erase(found);
  answers_.push_back(std::move(answer));
  wake();
}

void RowClient::tick(double now) {
  now_ = std::max(now_, now);
  if (!failure_.ok()) return;
  for (int s = 0; s < servers(); ++s) {
    Server& of = servers_[static_cast<size_t>(s)];
    if (of.calls.empty() && of.behind.empty()) continue;
    const double silent = now_ - of.heard;
    if (silent >= options_.greeting.deadline)
      return lose(Status::Failed(
          name_of(s) + (of.is_greeted ? " has not answered for " : " cannot be reached for ") +
          std::to_string(static_cast<int64_t>(silent)) + " seconds (lookahead.deadline)" +
          (of.last_end.ok() ? "" : ": " + of.last_end.message())));
    // Whatever breaks its connection may do so each time.
    if (now_ - of.answered >= 2 * options_.greeting.deadline)
      return lose(Status::Failed(name_of(s) + " greets and answers nothing else for " +
                                 std::to_string(static_cast<int64_t>(now_ - of.answered)) +
                                 " seconds (twice lookahead.deadline)" +
                                 (of.last_end.ok() ? "" : ": " + of.last_end.message())));
    if (of.is_greeted && of.is_connected && !of.is_pinged &&
        silent >= options_.greeting.deadline * kPingPart) {
      of.is_pinged = true;
      enqueue(s, {{MessageKind::ping}, 0, true});
    }
  }
}

/// All calls end, those to come too.
void RowClient::lose(const Status& why) {
  failure_ = why;
  for (const auto& [ticket, call] : calls_) answers_.push_back({ticket, failure_});
  calls_.clear();
  for (Server& of : servers_) {
    for (auto* queue : {&of.calls, &of.behind})
      for (const Pending& pending : *queue)
        if (pending.is_reply && pending.message.kind != MessageKind::ping)
          replies_.push_back({pending.ticket, failure_, {}});
    of.calls.clear();
    of.behind.clear();
  }
  wake();
}

}  // namespace recmill::remote
