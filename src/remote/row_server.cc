// SPDX-License-Identifier: Apache-2.0
#include "remote/row_server.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <span>

#include "base/json/json.h"
#include "base/saturating.h"
#include "remote/row_versions.h"

namespace recmill::remote {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr size_t kReadBytes = 1 << 20;  // of records in an answer to `read`
constexpr int kRowBits = 48;            // of a cursor, whose other bits are the table
constexpr int64_t kRowMask = (int64_t{1} << kRowBits) - 1;

std::string mib(int64_t bytes) {
  return std::to_string((bytes + kMiB / 2) / kMiB) + " MiB";
}

std::string step_text(int64_t step) {
  return "step " + std::to_string(step);
}

std::vector<table::PutRows> puts_of(const std::vector<TableRows>& rows) {
  std::vector<table::PutRows> puts;
  for (const TableRows& of : rows) puts.push_back({of.table, of.rows, of.records});
  return puts;
}

}  // namespace

struct RowServer::Run {
  Run(const Greeting& of, std::unique_ptr<table::ServedRows> rows_of_run)
      : greeting(of), shapes(shapes_of(of.tables)), rows(std::move(rows_of_run)) {
    for (const TableSpec& table : of.tables) {
      shares.emplace_back(table.rows, of.server, of.servers);
      initial.emplace_back(table, of.seed);
    }
  }

  Greeting greeting;  // of the first rank of the term
  std::vector<TableShape> shapes;
  std::vector<table::RowShare> shares;     // [tables]
  std::deque<table::InitialRows> initial;  // [tables]
  std::unique_ptr<table::ServedRows> rows;
};

bool RowServer::Image::is_whole() const {
  return std::ranges::all_of(cut_by, std::identity());
}
bool RowServer::Image::is_released() const {
  return std::ranges::all_of(released_by, std::identity());
}

RowServer::RowServer(int64_t instance, ServerOptions options)
    : instance_(instance), options_(std::move(options)) {}
RowServer::~RowServer() = default;

void RowServer::answer(Connection to, const Message& question, Bytes body, int64_t step,
                       int64_t detail) {
  out_.push_back({to, {MessageKind::answer, question.request, step, detail, std::move(body)}});
}

void RowServer::refuse(Connection to, int64_t request, const Status& why, bool ends) {
  ++counts_.refused;
  out_.push_back({to, {MessageKind::error, request, 0, 0, Bytes::text(why.message())}, ends});
}

void RowServer::take(Connection from, const Message& message, double now) {
  if (message.kind == MessageKind::hello) {
    if (Status status = hello(from, message); !status.ok())
      refuse(from, message.request, status, /*ends=*/true);
    return;
  }
  const auto caller = callers_.find(from);
  Status status = caller == callers_.end() ? Status::Failed("a connection begins with a greeting")
                                           : handle(from, caller->second, message, now);
  if (!status.ok()) refuse(from, message.request, status);
}

Status RowServer::handle(Connection from, const Caller& caller, const Message& message,
                         double now) {
  using Kind = MessageKind;
  const int rank = caller.rank;
  const bool of_guests = message.kind == Kind::fetch || message.kind == Kind::recorded ||
                         message.kind == Kind::ping || message.kind == Kind::status ||
                         message.kind == Kind::goodbye;
  if (rank == kGuest && !of_guests) return Status::Failed("a guest may only read");
  if (checks_.terms && rank != kGuest && caller.opening != opening_)
    return Status::Failed("the run was started again; a rank of term " +
                          std::to_string(caller.term) + " no longer belongs to it");
  switch (message.kind) {
    case Kind::ping:
      answer(from, message);
      return {};
    case Kind::status:
      answer(from, message, Bytes::text(status()));
      return {};
    case Kind::goodbye:
      callers_.erase(from);
      answer(from, message);
      return {};
    default:
      break;
  }
  if (of_ == nullptr) return Status::Failed("the server has no rows of any run");
  switch (message.kind) {
    case Kind::fetch:
      return fetch(from, message, now);
    case Kind::put:
      return put(from, rank, message);
    case Kind::changed:
      return changed(from, rank, message);
    case Kind::cut:
      return cut(from, rank, message);
    case Kind::record:
      return record(from, message);
    case Kind::recorded:
      return recorded(from, message);
    case Kind::read:
      return read(from, message);
    case Kind::release:
      return release(from, rank, message);
    case Kind::write:
      return write(from, message);
    default:
      return Status::Failed("a message that no rank sends");
  }
}

std::optional<int> RowServer::connected_rank() const {
  for (const auto& [connection, caller] : callers_)
    if (caller.rank != kGuest && caller.opening == opening_) return caller.rank;
  return std::nullopt;
}

Status RowServer::hello(Connection from, const Message& message) {
  if (message.detail == kGuest) {
    RECMILL_RETURN_IF_ERROR(check_protocol(message.body));
    callers_[from] = {};
  } else {
    RECMILL_ASSIGN_OR_RETURN(const Greeting greeting, read_greeting(message.body));
    if (message.detail < 0 || message.detail >= greeting.ranks)
      return Status::Failed("rank " + std::to_string(message.detail) + " of " +
                            std::to_string(greeting.ranks) + " greets");
    const auto rank = static_cast<int>(message.detail);
    if (is_writing_ && (of_->greeting.run != greeting.run || of_->greeting.term < greeting.term)) {
      is_wanted_ = false;
      starts_.emplace_back(from, message);
      return {};
    }
    RECMILL_RETURN_IF_ERROR(join(greeting, message.step, rank));
    callers_[from] = {rank, greeting.term, opening_};
  }
  answer(from, message, write_server_greeting({instance_, options_.checkpoints}));
  return {};
}

// Either the run is the one that is here, in its term or a later one, or it may take its place.
Status RowServer::join(const Greeting& greeting, int64_t begin, int rank) {
  if (checks_.instances && greeting.again != 0 && greeting.again != instance_)
    return Status::Failed("the server was started again since rank " + std::to_string(rank) +
                          " was connected, and its rows are lost");
  const bool is_other = of_ != nullptr && of_->greeting.run != greeting.run;
  if (is_other) {
    if (const auto there = connected_rank())
      return Status::Failed("the server has rows of run '" + of_->greeting.run +
                            "', of which rank " + std::to_string(*there) + " is connected");
  }
  if (of_ == nullptr || is_other) {
    if (checks_.instances && greeting.again != 0)
      return Status::Failed("the server has no rows of run '" + greeting.run + "' any more");
    if (!greeting.fresh)
      return Status::Failed("the server has no rows of run '" + greeting.run + "'");
    return open(greeting, begin);
  }
  const Greeting& here = of_->greeting;
  if (const auto difference = difference_of_tables(greeting, here); !difference.empty())
    return Status::Failed("the run was begun with other tables: " + difference);
  if (greeting.server != here.server || greeting.servers != here.servers)
    return Status::Failed(
        "the server is number " + std::to_string(here.server) + " of " +
        std::to_string(here.servers) + ", not " + std::to_string(greeting.server) + " of " +
        std::to_string(greeting.servers) + ": name the servers of a run in the same order");
  if (greeting.term < here.term && checks_.terms)
    return Status::Failed("the run was started again; term " + std::to_string(greeting.term) +
                          " is over");
  if (greeting.term > here.term) return open(greeting, begin);
  if (greeting.ranks != here.ranks || begin != begin_ || greeting.fresh != here.fresh)
    return Status::Failed("ranks of one term greet with different numbers of ranks or steps");
  return {};
}

Status RowServer::open(const Greeting& greeting, int64_t begin) {
  const Status again = Status::Failed("the run was started again");
  if (greeting.fresh) {
    end_calls(again);
    of_ = nullptr;  // its disk, too
    record_.reset();
    images_.clear();
    std::unique_ptr<table::ServedRows> rows;
    if (options_.make_rows) {
      RECMILL_ASSIGN_OR_RETURN(rows, options_.make_rows(greeting.tables));
    } else {
      rows = std::make_unique<MemoryRows>(shapes_of(greeting.tables));
    }
    of_ = std::make_unique<Run>(greeting, std::move(rows));
  } else {
    if (record_ && record_->step != begin)
      return Status::Failed("the last commit is of " + step_text(record_->step) + ", not of " +
                            step_text(begin));
    const Image* image = find_image(begin);
    if (image == nullptr || !image->is_whole())
      return Status::Failed("the server has no commit of " + step_text(begin));
    if (is_lost_) return stuck_;
    end_calls(again);
    if (checks_.goes_back) {
      RECMILL_RETURN_IF_ERROR(told(of_->rows->go_back(begin)));
    } else {
      for (const Image& of : images_) RECMILL_RETURN_IF_ERROR(of_->rows->drop(of.step));
      RECMILL_RETURN_IF_ERROR(of_->rows->cut(begin));
    }
    of_->greeting = greeting;
    images_.clear();
    const std::vector<bool> none(static_cast<size_t>(greeting.ranks), false);
    images_.push_back({begin, std::vector<bool>(none.size(), true), none});
  }
  tell_of_run();
  stuck_ = {};
  is_lost_ = false;
  room_ = table::HomeRoom::enough;
  ++opening_;
  begin_ = begin;
  marks_.assign(static_cast<size_t>(greeting.ranks), begin);
  return {};
}

void RowServer::end_calls(const Status& why) {
  for (const Waiting& fetch : waiting_) refuse(fetch.from, fetch.request, why);
  for (const Ordered& of : ordered_) refuse(of.from, of.request, why);
  waiting_.clear();
  ordered_.clear();
}

/// What rows say. They are not called again after an error: what the server has of the run is lost.
Status RowServer::told(Status status) {
  if (status.ok()) return status;
  is_lost_ = true;
  stuck_ = std::move(status);
  return stuck_;
}

/// Before any row is taken.
void RowServer::tell_of_run() {
  const Greeting& of = of_->greeting;
  int64_t rows = 0;
  int64_t bytes = 0;
  for (size_t t = 0; t < of.tables.size(); ++t) {
    const int64_t here = of_->shares[t].slots();
    rows += here;
    bytes = saturating_sum({bytes, saturating_product({here, of_->shapes[t].record_bytes +
                                                                 RecordMap::kMostBytesBeside})});
  }
  lines_.push_back("run '" + of.run + "', start " + std::to_string(of.term) + ", " +
                   std::to_string(of.ranks) + (of.ranks == 1 ? " rank: " : " ranks: ") +
                   std::to_string(of.tables.size()) + " tables; when all of its " +
                   std::to_string(rows) + " rows here have been changed they take " + mib(bytes) +
                   ", and what changes while an image is kept as much again" +
                   (!options_.make_rows && bytes > options_.memory - options_.memory / 4
                        ? "; its memory is " + mib(options_.memory) +
                              ", so that ranks are asked for commits where that gets scarce, and "
                              "what does not fit is refused"
                        : ""));
}

int64_t RowServer::used() const {
  const auto sizes = of_->rows->sizes();
  return sizes.bytes + sizes.image_bytes +
         (record_ ? static_cast<int64_t>(record_->body.size()) : 0);
}

/// A commit helps where images keep much.
void RowServer::look_at_room() {
  using enum table::HomeRoom;
  const int64_t bytes = used(), memory = options_.memory;
  const table::HomeRoom before = std::exchange(room_, enough);
  if (bytes <= memory - memory / 4 || of_->rows->sizes().image_bytes < memory / 16) return;
  room_ = bytes <= memory - memory / 8 ? scarce : none;
  if (before == enough)
    lines_.push_back("run '" + of_->greeting.run + "': " + mib(bytes) + " of " + mib(memory) +
                     " are used; ranks are asked for a commit");
}

/// Counts rows only where all of them might not fit. What comes behind rows that do not is refused
/// too: it was sent before the rank heard of that.
Status RowServer::check_room(std::span<const table::PutRows> rows, int64_t step) {
  RECMILL_RETURN_IF_ERROR(stuck_);
  const int64_t left = options_.memory - used();
  int64_t most = 0;
  for (const table::PutRows& of : rows)
    most += 2 * std::ssize(of.rows) *
            (of_->shapes[of.table].record_bytes + RecordMap::kMostBytesBeside);
  if (most <= left) return {};
  const int64_t grown = of_->rows->growth(rows, step);
  if (grown == 0 || grown <= left) return {};
  const auto sizes = of_->rows->sizes();
  stuck_ =
      Status::Failed("its memory of " + mib(options_.memory) + " (--memory) is full: rows take " +
                     mib(sizes.bytes) + ", what images keep " + mib(sizes.image_bytes) +
                     "; give it more or use more servers, and resume the run");
  return stuck_;
}

void RowServer::closed(Connection connection) {
  callers_.erase(connection);
  std::erase_if(waiting_, [&](const Waiting& fetch) { return fetch.from == connection; });
  std::erase_if(starts_, [&](const auto& start) { return start.first == connection; });
  for (Image& image : images_)
    std::erase_if(image.callers, [&](const auto& caller) { return caller.first == connection; });
}

int64_t RowServer::least_mark() const {
  return *std::ranges::min_element(marks_);
}

int RowServer::late_rank(int64_t fence) const {
  return static_cast<int>(std::ranges::find_if(marks_, [&](int64_t mark) { return mark < fence; }) -
                          marks_.begin());
}

void RowServer::tick(double now) {
  std::erase_if(waiting_, [&](const Waiting& fetch) {
    if (now - fetch.since < of_->greeting.deadline) return false;
    const int rank = late_rank(fetch.fence);
    refuse(fetch.from, fetch.request,
           Status::Failed("rank " + std::to_string(rank) + " has put up to " +
                          step_text(marks_[static_cast<size_t>(rank)]) + ", not to " +
                          step_text(fetch.fence) + ", for " +
                          std::to_string(std::llround(now - fetch.since)) + " seconds"));
    return true;
  });
}

Result<std::vector<TableRows>> RowServer::rows_of(const Message& message, bool has_records) const {
  RECMILL_ASSIGN_OR_RETURN(auto tables,
                           read_row_lists(message.body.view(), has_records, of_->shapes));
  for (const TableRows& of : tables) {
    const table::RowShare& share = of_->shares[of.table];
    if (share.ranks() == 1) continue;
    for (const int64_t row : of.rows)
      if (!share.owns(row))
        return Status::Failed("table '" + of_->shapes[of.table].name + "': row " +
                              std::to_string(row) + " is at server " +
                              std::to_string(share.owner(row)) + ", not at server " +
                              std::to_string(share.rank()));
  }
  return tables;
}

Status RowServer::fetch(Connection from, const Message& message, double now) {
  RECMILL_ASSIGN_OR_RETURN(auto rows, rows_of(message, /*has_records=*/false));
  ++counts_.fetches;
  for (const TableRows& of : rows) counts_.fetched_rows += std::ssize(of.rows);
  if (checks_.fences && message.step > least_mark()) {
    waiting_.push_back({from, message.request, message.step, std::move(rows), now});
    return {};
  }
  auto records = records_of(rows);
  RECMILL_RETURN_IF_ERROR(told(records.status()));
  answer(from, message, *std::move(records));
  return {};
}

Result<Bytes> RowServer::records_of(const std::vector<TableRows>& rows) const {
  if (is_lost_) return stuck_;
  const size_t bytes = record_bytes_of(rows, of_->shapes);
  const std::shared_ptr<std::byte[]> records = std::make_unique_for_overwrite<std::byte[]>(bytes);
  std::vector<bool> touched;
  std::vector<std::byte> initial;  // at an address that records may be made at
  std::byte* to = records.get();
  for (const TableRows& of : rows) {
    const auto record_bytes = static_cast<size_t>(of_->shapes[of.table].record_bytes);
    const std::span<std::byte> of_table(to, of.rows.size() * record_bytes);
    RECMILL_RETURN_IF_ERROR(of_->rows->read({of.table, of.rows, of_table}, touched));
    initial.resize(record_bytes);
    for (size_t i = 0; i < of.rows.size(); ++i, to += record_bytes) {
      if (touched[i]) continue;
      of_->initial[of.table].make(of.rows[i], initial.data());
      std::memcpy(to, initial.data(), record_bytes);
    }
  }
  return Bytes(records, {records.get(), bytes});
}

Status RowServer::put(Connection from, int rank, const Message& message) {
  int64_t& mark = marks_[static_cast<size_t>(rank)];
  if (message.step > mark || !checks_.repeats) {
    RECMILL_ASSIGN_OR_RETURN(const auto rows, rows_of(message, /*has_records=*/true));
    const auto puts = puts_of(rows);
    RECMILL_RETURN_IF_ERROR(check_room(puts, message.step));
    RECMILL_RETURN_IF_ERROR(told(of_->rows->put(puts, message.step)));
    ++counts_.puts;
    for (const TableRows& of : rows) counts_.put_rows += std::ssize(of.rows);
    mark = std::max(mark, message.step);
    answer_fetches();
    look_at_room();
  }
  answer(from, message, {}, 0, static_cast<int64_t>(room_));
  return {};
}

void RowServer::answer_fetches() {
  const int64_t least = least_mark();
  std::erase_if(waiting_, [&](const Waiting& fetch) {
    if (fetch.fence > least) return false;
    auto records = records_of(fetch.rows);
    if (told(records.status()).ok())
      answer(fetch.from, {MessageKind::fetch, fetch.request}, *std::move(records));
    else
      refuse(fetch.from, fetch.request, records.status());
    return true;
  });
}

RowServer::Image* RowServer::find_image(int64_t step) {
  const auto found = std::ranges::find(images_, step, &Image::step);
  return found == images_.end() ? nullptr : &*found;
}

Result<RowServer::Image*> RowServer::image_to_cut(int64_t step) {
  if (Image* image = find_image(step)) return image;
  const int64_t ahead = *std::ranges::max_element(marks_);
  if (ahead > step)
    return Status::Failed("a cut after " + step_text(step) + " comes behind the put of " +
                          step_text(ahead));
  if (!images_.empty() && images_.back().step > step)
    return Status::Failed("a cut after " + step_text(step) + " comes behind one after " +
                          step_text(images_.back().step));
  RECMILL_RETURN_IF_ERROR(told(of_->rows->cut(step)));
  const std::vector<bool> none(marks_.size(), false);
  images_.push_back({step, none, none});
  return &images_.back();
}

Status RowServer::changed(Connection from, int rank, const Message& message) {
  RECMILL_ASSIGN_OR_RETURN(const auto rows, rows_of(message, /*has_records=*/true));
  RECMILL_ASSIGN_OR_RETURN(Image * image, image_to_cut(message.step));
  const auto puts = puts_of(rows);
  RECMILL_RETURN_IF_ERROR(check_room(puts, message.step));
  if (!image->cut_by[static_cast<size_t>(rank)])  // else it is a repeat
    RECMILL_RETURN_IF_ERROR(told(of_->rows->change(message.step, puts)));
  answer(from, message);
  return {};
}

Status RowServer::cut(Connection from, int rank, const Message& message) {
  RECMILL_RETURN_IF_ERROR(stuck_);
  RECMILL_ASSIGN_OR_RETURN(Image * image, image_to_cut(message.step));
  image->cut_by[static_cast<size_t>(rank)] = true;
  if (image->is_whole() || checks_.whole_cuts) image->callers.emplace_back(from, message.request);
  if (!checks_.whole_cuts) answer(from, message);
  if (!image->is_whole()) return {};
  for (const auto& [caller, request] : image->callers) answer(caller, {MessageKind::cut, request});
  image->callers.clear();
  return {};
}

Status RowServer::record(Connection from, const Message& message) {
  const Image* image = find_image(message.step);
  if (image == nullptr || (checks_.whole_cuts && !image->is_whole()))
    return Status::Failed("a record of " + step_text(message.step) + ", which is not cut");
  record_ = {message.step, message.body};
  answer(from, message);
  return {};
}

Status RowServer::recorded(Connection from, const Message& message) {
  if (record_)
    answer(from, message, record_->body, record_->step);
  else
    answer(from, message, {}, -1);
  return {};
}

Status RowServer::read(Connection from, const Message& message) {
  RECMILL_ASSIGN_OR_RETURN(Message rows, read_image(message.step, message.detail));
  rows.request = message.request;
  out_.push_back({from, std::move(rows)});
  return {};
}

Result<Message> RowServer::read_image(int64_t step, int64_t cursor) {
  if (is_lost_) return stuck_;
  const Image* image = find_image(step);
  if (image == nullptr || !image->is_whole() || !is_wanted_)
    return Status::Failed("there is no image of " + step_text(step));
  auto table = static_cast<int>(cursor >> kRowBits);
  int64_t row = cursor & kRowMask;
  if (cursor < 0 || table >= std::ssize(of_->shapes))
    return Status::Failed("a cursor beyond all tables");
  std::vector<TableRows> tables;
  std::vector<std::byte> records;
  while (table < std::ssize(of_->shapes) && records.size() < kReadBytes) {
    const auto some = of_->rows->read_image(step, table, row, kReadBytes - records.size());
    RECMILL_RETURN_IF_ERROR(told(some.status()));
    records.insert(records.end(), some->records.begin(), some->records.end());
    if (!some->rows.empty() && (tables.empty() || tables.back().table != table))
      tables.push_back({table, {}, {}});
    if (!some->rows.empty())
      tables.back().rows.insert(tables.back().rows.end(), some->rows.begin(), some->rows.end());
    row = std::max<int64_t>(some->next, 0);
    table += some->next < 0 ? 1 : 0;
  }
  size_t first_record = 0;
  auto body = write_row_lists(tables, records.size(), first_record);
  std::ranges::copy(records, body.begin() + static_cast<std::ptrdiff_t>(first_record));
  const int64_t next =
      table == std::ssize(of_->shapes) ? -1 : (static_cast<int64_t>(table) << kRowBits) + row;
  return Message{MessageKind::answer, 0, step, next, std::move(body)};
}

Status RowServer::write(Connection from, const Message& message) {
  RECMILL_ASSIGN_OR_RETURN(PartOrder order, read_part_order(message.body));
  if (options_.checkpoints.empty())
    return Status::Failed("the server writes no checkpoints (--checkpoints)");
  if (!is_below(options_.checkpoints, order.folder))
    return Status::Failed("'" + order.folder + "' is not below '" + options_.checkpoints +
                          "' (--checkpoints), where it writes");
  const Image* image = find_image(message.step);
  if (image == nullptr || !image->is_whole())
    return Status::Failed("there is no image of " + step_text(message.step));
  ordered_.push_back({from, message.request, {of_->greeting, message.step, std::move(order)}});
  return {};
}

// Who has ordered it may be gone, and its repeat be behind: the part is written once more then.
std::optional<RowServer::Write> RowServer::begin_write() {
  if (is_writing_ || ordered_.empty()) return std::nullopt;
  is_writing_ = true;
  return ordered_.front().write;
}

void RowServer::written(Result<std::string> part, double now) {
  const Ordered of = std::move(ordered_.front());
  ordered_.pop_front();
  is_writing_ = false;
  is_wanted_ = true;
  if (part.ok())
    out_.push_back({of.from, {MessageKind::answer, of.request, 0, 0, Bytes::text(*part)}});
  else
    refuse(of.from, of.request, part.status());
  for (const auto& [from, message] : std::exchange(starts_, {})) take(from, message, now);
}

Status RowServer::release(Connection from, int rank, const Message& message) {
  if (Image* image = find_image(message.step)) {  // else it is a repeat
    if (!image->is_whole())
      return Status::Failed("a release of " + step_text(message.step) + ", which is not cut");
    image->released_by[static_cast<size_t>(rank)] = true;
    if (image->is_released()) {
      RECMILL_RETURN_IF_ERROR(told(of_->rows->drop(message.step)));
      std::erase_if(images_, [&](const Image& of) { return of.step == message.step; });
    }
  }
  answer(from, message);
  return {};
}

std::string RowServer::status() const {
  Json json = {{"protocol", kProtocol},
               {"instance", instance_},
               {"run", of_ == nullptr ? "" : of_->greeting.run},
               {"connections", callers_.size()},
               {"waiting", waiting_.size()},
               {"recorded", record_ ? record_->step : -1},
               {"fetches", counts_.fetches},
               {"fetched_rows", counts_.fetched_rows},
               {"puts", counts_.puts},
               {"put_rows", counts_.put_rows},
               {"refused", counts_.refused}};
  if (of_ == nullptr) return json.dump();
  const Greeting& greeting = of_->greeting;
  json["term"] = greeting.term;
  json["ranks"] = greeting.ranks;
  json["begin"] = begin_;
  json["marks"] = marks_;
  json["server"] = greeting.server;
  json["servers"] = greeting.servers;
  json["tables"] = greeting.tables.size();
  const auto sizes = of_->rows->sizes();
  json["touched_rows"] = sizes.touched_rows;
  json["memory"] = options_.memory;
  json["bytes"] = sizes.bytes;
  json["image_bytes"] = sizes.image_bytes;
  return json.dump();
}

}  // namespace recmill::remote
