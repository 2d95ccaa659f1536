// SPDX-License-Identifier: Apache-2.0
// Bytes that a stranger sends: a server answers with one line or nothing, and a client too.
#include <cstring>

#include "base/testing/fuzz.h"
#include "remote/row_client.h"
#include "remote/row_server.h"

namespace recmill {
namespace {

using namespace remote;

Greeting greeting() {
  Greeting of;
  of.run = "run";
  of.seed = 7;
  TableSpec table;
  table.name = "a";
  table.rows = 9;
  table.dim = 2;
  of.tables = {table, table};
  of.tables[1].name = "b";
  of.tables[1].precision = RowPrecision::bfloat16;
  return of;
}

std::string bytes_of(const Message& message) {
  const auto header = header_of(message);
  std::string bytes(reinterpret_cast<const char*>(header.data()), header.size());
  return bytes + std::string(message.body.text());
}

std::optional<Message> parse(const std::string& bytes) {
  const auto all = std::as_bytes(std::span(bytes));
  const size_t header = std::min(all.size(), sizeof(MessageHeader));
  const auto body = all.subspan(header);
  return message_of(all.first(header), std::vector<std::byte>(body.begin(), body.end()));
}

void feed_server(const Message& message) {
  RowServer server(1, {.checkpoints = "/runs"});
  server.take(1, message, 0.0);  // as a first message, too
  server.take(2, {MessageKind::hello, 0, -1, 0, write_greeting(greeting())}, 0.0);
  server.take_out();
  server.take(2, message, 0.0);
  server.take(2, {MessageKind::cut, 1 << 20, 3}, 0.0);
  if (message.kind == MessageKind::write) server.take(2, message, 0.0);
  if (const auto write = server.begin_write())
    RECMILL_CHECK(is_below("/runs", write->order.folder));
  server.tick(1e6);
  for (const auto& out : server.take_out())
    RECMILL_CHECK(out.message.kind == MessageKind::answer || !out.message.body.text().empty());
  server.take(3, {MessageKind::hello, 0, 0, -1, write_guest_greeting()}, 0.0);
  server.take(3, message, 0.0);
  RECMILL_CHECK(!server.status().empty());
}

void feed_client(Message message) {
  RowClientOptions options;
  options.greeting = greeting();
  RowClient client(options);
  client.connected(0, 0.0);
  std::vector<int64_t> rows{3, 1};
  std::vector<std::byte> records(2 * shapes_of(options.greeting.tables)[0].record_bytes);
  const table::FetchedRows list{0, rows, records};
  client.fetch({&list, 1}, -1);
  client.next(0);
  client.take(0, {MessageKind::answer, -1, 0, 0, write_server_greeting({1})}, 0.0);
  client.next(0);
  message.request = 0;
  client.take(0, message, 0.0);
  std::vector<table::RowHome::Answer> answers;
  client.poll(answers);
  RECMILL_CHECK(answers.size() == 1);
  RECMILL_CHECK(!answers[0].status.ok() || message.body.size() == records.size());
  RowClient other(options);
  other.connected(0, 0.0);
  other.next(0);
  other.take(0, message, 0.0);
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  using enum MessageKind;
  std::vector<std::byte> bytes(shapes_of(greeting().tables)[0].record_bytes);
  const std::vector<TableRows> rows{{0, {4}, bytes}};
  const std::vector<TableRows> named{{0, {4, 8}, {}}, {1, {0}, {}}};
  std::vector<std::string> seeds{bytes_of({hello, 0, -1, 0, write_greeting(greeting())}),
                                 bytes_of({hello, 0, 0, -1, write_guest_greeting()}),
                                 bytes_of({fetch, 1, 5, 0, write_row_lists(named)}),
                                 bytes_of({fetch, 1, -1, 0, write_row_lists(named)}),
                                 bytes_of({put, 1, 3, 0, write_row_lists(rows)}),
                                 bytes_of({changed, 1, 3, 0, write_row_lists(rows)}),
                                 bytes_of({write, 1, 3, 0, write_part_order({"/runs/a", 2})}),
                                 bytes_of({answer, 0, 0, 0, std::vector<std::byte>(16)}),
                                 bytes_of({answer, 0, 0, 0, write_server_greeting({3})}),
                                 bytes_of({error, 0, 0, 0, Bytes::text("no")})};
  for (const auto kind : {cut, MessageKind::record, recorded, read, release, goodbye, ping, status})
    seeds.push_back(bytes_of({kind, 2, 3, 0, {}}));
  return seeds;
}

void fuzz::feed(const std::string& bytes) {
  const auto message = parse(bytes);
  if (!message) return;
  feed_server(*message);
  feed_client(*message);
}

}  // namespace recmill
