// SPDX-License-Identifier: Apache-2.0
// An embedding server (BagPipe, section 3.4) as a state machine without threads, sockets or clocks.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
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
#include "remote/part_order.h"
#include "remote/row_lists.h"
#include "table/home/recorded_home.h"
#include "table/home/served_rows.h"
#include "table/initial_rows.h"
#include "table/row_share.h"

namespace recmill::remote {

/// What a server insists on. Tests take one after the other away, to see that each is needed.
struct ServerChecks {
  bool fences = true;      // a fetch waits for the marks of all ranks
  bool terms = true;       // messages of an older term are refused
  bool repeats = true;     // a put that the mark has reached changes nothing
  bool whole_cuts = true;  // a cut is answered when all ranks have cut
  bool goes_back = true;   // a term begins with rows as after its step
  bool instances = true;   // who was connected to a server that had other rows is refused
};

struct ServerOptions {
  ServerChecks checks = {};
  /// Bytes that rows, images and a record may take; a quarter is set aside for what a commit under
  /// way takes.
  int64_t memory = std::numeric_limits<int64_t>::max();
  /// Where rows of a run are; null: in memory.
  std::function<Result<std::unique_ptr<table::ServedRows>>(std::span<const TableSpec> tables)>
      make_rows = nullptr;
  /// The folder below which it has parts of checkpoints written; empty: ranks read them.
  std::string checkpoints = "";
};

/// Since a server has begun.
struct ServerCounts {
  int64_t fetches = 0, fetched_rows = 0;
  int64_t puts = 0, put_rows = 0;  // repeats left out
  int64_t refused = 0;             // messages
};

/// Has the rows of one run at a time: those touched, and the rule that makes the others. Takes
/// messages of connections, and has answers for them. Times are seconds of one clock.
class RowServer {
 public:
  using Connection = int64_t;
  struct Outgoing {
    Connection to = 0;
    Message message;
    bool ends = false;  // the connection, behind the message
  };

  /// `instance` is another one for each start of a server, and not 0. Those below `servers` that
  /// are `server` by hash are its rows, as its first rank says.
  explicit RowServer(int64_t instance, ServerOptions options = {});
  ~RowServer();

  void take(Connection from, const Message& message, double now);
  void closed(Connection connection);
  /// Ends fetches that have waited for too long.
  void tick(double now);
  /// The messages to be sent, in order.
  std::vector<Outgoing> take_out() { return std::exchange(out_, {}); }

  /// A part of a checkpoint that a rank has ordered.
  struct Write {
    Greeting run;  // as the server knows it
    int64_t step = 0;
    PartOrder order;
  };
  /// The next one to be written, if none is. It is read by read_image(), which fails when the part
  /// is no longer wanted; a start of the run waits until written() says how it has ended.
  std::optional<Write> begin_write();
  void written(Result<std::string> part, double now);
  /// An answer to `read`.
  Result<Message> read_image(int64_t step, int64_t cursor);

  /// docs/formats/row_service.md
  std::string status() const;
  /// Of each run that has begun since, what it may take.
  std::vector<std::string> take_lines() { return std::exchange(lines_, {}); }
  bool has_run() const { return of_ != nullptr; }

 private:
  static constexpr int kGuest = -1;
  struct Caller {
    int rank = kGuest;
    int64_t term = 0;     // as it greeted
    int64_t opening = 0;  // of its term, here
  };
  struct Waiting {
    Connection from = 0;
    int64_t request = 0, fence = 0;
    std::vector<TableRows> rows;
    double since = 0.0;
  };
  struct Image {
    int64_t step = 0;
    std::vector<bool> cut_by, released_by;                     // [ranks]
    std::vector<std::pair<Connection, int64_t>> callers = {};  // of cuts that have no answer
    bool is_whole() const;
    bool is_released() const;
  };
  struct Record {
    int64_t step = 0;
    Bytes body;
  };
  struct Ordered {
    Connection from = 0;
    int64_t request = 0;
    Write write;
  };
  /// All of a run but its term.
  struct Run;

  // Each answers, or fails and the caller is told why:
  Status hello(Connection from, const Message& message);
  Status handle(Connection from, const Caller& caller, const Message& message, double now);
  Status fetch(Connection from, const Message& message, double now);
  Status put(Connection from, int rank, const Message& message);
  Status changed(Connection from, int rank, const Message& message);
  Status cut(Connection from, int rank, const Message& message);
  Status record(Connection from, const Message& message);
  Status recorded(Connection from, const Message& message);
  Status read(Connection from, const Message& message);
  Status write(Connection from, const Message& message);
  Status release(Connection from, int rank, const Message& message);

  Status join(const Greeting& greeting, int64_t begin, int rank);
  Status open(const Greeting& greeting, int64_t begin);
  Result<std::vector<TableRows>> rows_of(const Message& message, bool has_records) const;
  Result<Image*> image_to_cut(int64_t step);
  Image* find_image(int64_t step);
  int64_t least_mark() const;
  int late_rank(int64_t fence) const;
  Result<Bytes> records_of(const std::vector<TableRows>& rows) const;
  void end_calls(const Status& why);
  int64_t used() const;
  Status check_room(std::span<const table::PutRows> rows, int64_t step);
  Status told(Status status);
  void look_at_room();
  void answer_fetches();
  void answer(Connection to, const Message& question, Bytes body = {}, int64_t step = 0,
              int64_t detail = 0);
  void refuse(Connection to, int64_t request, const Status& why, bool ends = false);
  std::optional<int> connected_rank() const;

  void tell_of_run();

  const int64_t instance_;
  const ServerOptions options_;
  const ServerChecks& checks_ = options_.checks;
  ServerCounts counts_;
  std::vector<std::string> lines_;
  std::map<Connection, Caller> callers_;
  std::vector<Outgoing> out_;

  // Of the run, if any:
  std::unique_ptr<Run> of_;
  int64_t begin_ = 0;
  std::vector<int64_t> marks_;  // [ranks]
  std::deque<Waiting> waiting_;
  std::deque<Image> images_;  // oldest first; the last may not be whole
  std::optional<Record> record_;
  table::HomeRoom room_ = table::HomeRoom::enough;  // after the last put
  std::deque<Ordered> ordered_;                     // the first is under way where is_writing_
  bool is_writing_ = false, is_wanted_ = true;
  bool is_lost_ = false;                                // what the rows are on has failed
  std::vector<std::pair<Connection, Message>> starts_;  // greetings that wait for its end
  Status stuck_;         // since rows of this term had no room, or a disk failed
  int64_t opening_ = 0;  // of the term: how many there were
};

}  // namespace recmill::remote
