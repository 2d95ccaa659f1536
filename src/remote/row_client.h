// SPDX-License-Identifier: Apache-2.0
// A rank's side of embedding servers as a state machine without threads, sockets or clocks.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "remote/greeting.h"
#include "remote/message.h"
#include "remote/row_lists.h"
#include "table/home/recorded_home.h"
#include "table/home/row_home.h"
#include "table/row_share.h"

namespace recmill::remote {

/// How a rank reads images that RowClient has cut, or has them written: calls that wait, on any
/// thread.
class ImageAccess {
 public:
  virtual ~ImageAccess() = default;
  /// A `read` or a `write` of one server, and its answer.
  virtual Result<Message> ask(int server, Message message) = 0;
  /// Whether all servers write parts of checkpoints below `folder`.
  virtual bool may_write_below(const std::string& folder) const = 0;
  /// The rank lets an image go. Returns at once.
  virtual void release(int64_t step) = 0;
};

struct RowClientOptions {
  Greeting greeting;  // all but `server` and `again`
  int rank = 0;
  int64_t begin = table::RowHome::kNoFence;  // the step that the term begins at
  std::vector<std::string> addresses = {};   // of the servers, for messages
  std::shared_ptr<ImageAccess> images = {};
  /// Of images, this rank reads what is at the servers whose number is `image_share` modulo
  /// `image_shares`.
  int image_share = 0, image_shares = 1;
  /// Of a fetch, and of rows for an image, a message has records of about so many bytes, and at
  /// least so many rows: a server looks up what the next one names while the network has the last
  /// one's.
  size_t message_bytes = size_t{256} << 10;
  int64_t message_rows = 1000;
};

/// A writer of the home that the servers are together: each row is at the server that a hash names.
/// What is called becomes messages, which next() hands out, server by server; what comes of them
/// becomes answers. A server that is not connected is waited for until its deadline; then it is
/// lost, and so is the home. Times are seconds of one clock, told with what happens.
class RowClient final : public table::RowHome {
 public:
  explicit RowClient(RowClientOptions options);

  Ticket fetch(std::span<const table::FetchedRows> rows, int64_t fence) override;
  Ticket put(std::span<const table::PutRows> rows, int64_t step) override;
  /// `changed` travels behind everything that is called before it is sent.
  Ticket cut(int64_t step, std::span<const table::PutRows> changed) override;
  void poll(std::vector<Answer>& answers) override;
  void set_wake(std::function<void()> wake) override { wake_ = std::move(wake); }

  /// Other calls have numbers of their own, and replies.
  struct Reply {
    int64_t number = 0;
    Status status;
    Message message;
  };
  int64_t call(int server, Message message);
  void poll_replies(std::vector<Reply>& replies);

  /// Of an image that this writer has: from cut(), or of the step at which a term begins that does
  /// not begin anew.
  void release(int64_t step);
  std::shared_ptr<table::RowSnapshot> image_of_begin();
  /// Tells the servers that this rank ends.
  void end();
  /// Whether something has no answer yet.
  bool is_busy() const;

  // Of connections:
  int servers() const { return static_cast<int>(servers_.size()); }
  void connected(int server, double now);
  /// `why`: a bad request is refused again whenever it is made, so the server is lost at once.
  void disconnected(int server, double now, const Status& why = {});
  void take(int server, const Message& message, double now);
  /// What is to be sent next on the connection, if anything.
  std::optional<Message> next(int server);
  void tick(double now);
  /// Whether all servers have taken this rank.
  bool has_begun() const;
  /// Whether the server has taken this rank on the connection that there is.
  bool is_connected(int server) const;
  /// Whether all servers write parts of checkpoints below `folder`.
  bool may_write_below(const std::string& folder) const;
  /// The least that a server has told with its answer to a put.
  table::HomeRoom room() const;
  /// Why all calls fail, or ok.
  const Status& failure() const { return failure_; }

 private:
  /// Where the records of a fetch go, in the order in which they come.
  struct Place {
    std::byte* to = nullptr;
    size_t bytes = 0;
  };
  struct Pending {
    Message message;
    Ticket ticket = 0;
    bool is_reply = false;  // of call()
    std::vector<Place> places = {};
    bool is_sent = false;
  };
  struct Server {
    bool is_connected = false, has_greeted = false, is_greeted = false;
    bool is_pinged = false;
    int64_t instance = 0;
    std::string checkpoints = {};  // as it greeted
    int64_t requests = 0;
    double heard = 0.0, answered = 0.0;  // when it last said anything, and answered a call
    table::HomeRoom room = table::HomeRoom::enough;
    Status last_end = {};        // of a connection
    std::deque<Pending> calls;   // without an answer, in their order
    std::deque<Pending> behind;  // the same, of those that are sent when no call is
  };
  struct Call {
    int parts = 0;  // without an answer
    Status status;
    std::optional<int64_t> image;  // of a cut: its step
  };
  /// Of one call, by server.
  struct Part {
    std::vector<TableRows> rows = {};
    std::vector<Place> places = {};
    size_t bytes = 0;  // of records
  };

  template <class Rows>
  Status check(std::span<const Rows> rows) const;
  /// What goes to each server [servers], a message each, or all in one.
  template <class Rows>
  std::vector<std::vector<Part>> split(std::span<const Rows> rows, bool in_one) const;
  std::vector<std::byte> body_of(const Part& part) const;
  Ticket failed(Status why);
  void enqueue(int server, Pending pending, bool behind = false);
  void answered(Ticket ticket, Status status);
  void handle(int server, Pending& pending, const Message& message);
  Status scatter(const Pending& pending, const Message& message) const;
  void lose(const Status& why);
  std::string name_of(int server) const;
  void wake() const {
    if (wake_) wake_();
  }

  RowClientOptions options_;
  const std::vector<TableShape> shapes_;
  std::vector<table::RowShare> shares_;  // [tables]
  std::vector<Server> servers_;
  std::map<Ticket, Call> calls_;
  std::vector<Answer> answers_;
  std::vector<Reply> replies_;
  std::map<int64_t, int> images_;  // by step: how often this writer has it
  Ticket tickets_ = 0;
  int64_t replies_asked_ = 0;
  int64_t mark_;
  double now_ = 0.0;
  Status failure_;
  std::function<void()> wake_;
};

}  // namespace recmill::remote
