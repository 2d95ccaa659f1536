// SPDX-License-Identifier: Apache-2.0
#include "remote/row_server.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <span>

#include "base/json/json.h"

namespace recmill::remote {
namespace {

constexpr size_t kReadBytes = 1 << 20;  // of records in an answer to `read`
constexpr int kRowBits = 48;            // of a cursor, whose other bits are the table
constexpr int64_t kRowMask = (int64_t{1} << kRowBits) - 1;

std::string step_text(int64_t step) {
  return "step " + std::to_string(step);
}

}  // namespace

struct RowServer::Run {
  explicit Run(const Greeting& of) : greeting(of), shapes(shapes_of(of.tables)), versions(shapes) {
    for (const TableSpec& table : of.tables) {
      shares.emplace_back(table.rows, of.server, of.servers);
      initial.emplace_back(table, of.seed);
    }
  }

  Greeting greeting;  // of the first rank of the term
  std::vector<TableShape> shapes;
  std::vector<table::RowShare> shares;     // [tables]
  std::deque<table::InitialRows> initial;  // [tables]
  RowVersions versions;
  /// Of the last `read`.
  int64_t read_step = 0;
  int read_table = -1;
  std::vector<int64_t> read_rows;
};

bool RowServer::Image::is_whole() const {
  return std::ranges::all_of(cut_by, std::identity());
}
bool RowServer::Image::is_released() const {
  return std::ranges::all_of(released_by, std::identity());
}

RowServer::RowServer(int64_t instance, const ServerChecks& checks)
    : instance_(instance), checks_(checks) {}
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
    RECMILL_RETURN_IF_ERROR(join(greeting, message.step, rank));
    callers_[from] = {rank, greeting.term, opening_};
  }
  answer(from, message, write_server_greeting(instance_));
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
  if (greeting.fresh) {
    of_ = std::make_unique<Run>(greeting);
    record_.reset();
    images_.clear();
  } else {
    if (record_ && record_->step != begin)
      return Status::Failed("the last commit is of " + step_text(record_->step) + ", not of " +
                            step_text(begin));
    const Image* image = find_image(begin);
    if (image == nullptr || !image->is_whole())
      return Status::Failed("the server has no commit of " + step_text(begin));
    if (checks_.goes_back) {
      of_->versions.go_back(begin);
    } else {
      for (const Image& of : images_) of_->versions.drop(of.step);
      of_->versions.cut(begin);
    }
    of_->greeting = greeting;
    of_->read_table = -1;
    images_.clear();
    const std::vector<bool> none(static_cast<size_t>(greeting.ranks), false);
    images_.push_back({begin, std::vector<bool>(none.size(), true), none});
  }
  for (const Waiting& fetch : waiting_)
    refuse(fetch.from, fetch.request, Status::Failed("the run was started again"));
  waiting_.clear();
  tell_of_run();
  ++opening_;
  begin_ = begin;
  marks_.assign(static_cast<size_t>(greeting.ranks), begin);
  return {};
}

/// Before any row is taken.
void RowServer::tell_of_run() {
  constexpr double kMiB = 1 << 20;
  const Greeting& of = of_->greeting;
  int64_t rows = 0;
  double bytes = 0.0;
  for (size_t t = 0; t < of.tables.size(); ++t) {
    const int64_t here = of_->shares[t].slots();
    rows += here;
    bytes += static_cast<double>(here) *
             static_cast<double>(of_->shapes[t].record_bytes + RecordMap::kMostBytesBeside);
  }
  lines_.push_back("run '" + of.run + "', start " + std::to_string(of.term) + ", " +
                   std::to_string(of.ranks) + (of.ranks == 1 ? " rank: " : " ranks: ") +
                   std::to_string(of.tables.size()) + " tables; when all of its " +
                   std::to_string(rows) + " rows here have been changed they take " +
                   std::to_string(std::llround(bytes / kMiB)) +
                   " MiB, and what changes while an image is kept as much again");
}

void RowServer::closed(Connection connection) {
  callers_.erase(connection);
  std::erase_if(waiting_, [&](const Waiting& fetch) { return fetch.from == connection; });
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
  answer(from, message, records_of(rows));
  return {};
}

// Memory is far away: of a few rows at a time first their entries are asked for, then their
// records, and then these are copied.
Bytes RowServer::records_of(const std::vector<TableRows>& rows) const {
  constexpr size_t kAtOnce = 64;
  const size_t bytes = record_bytes_of(rows, of_->shapes);
  const std::shared_ptr<std::byte[]> records = std::make_unique_for_overwrite<std::byte[]>(bytes);
  std::array<const std::byte*, kAtOnce> found{};
  std::vector<std::byte> initial;  // at an address that records may be made at
  std::byte* to = records.get();
  for (const TableRows& of : rows) {
    const auto record_bytes = static_cast<size_t>(of_->shapes[of.table].record_bytes);
    initial.resize(record_bytes);
    for (size_t first = 0; first < of.rows.size(); first += kAtOnce) {
      const auto some =
          std::span(of.rows).subspan(first, std::min(kAtOnce, of.rows.size() - first));
      for (const int64_t row : some) of_->versions.prefetch(of.table, row);
      for (size_t i = 0; i < some.size(); ++i) {
        found[i] = of_->versions.find(of.table, some[i]);
        for (size_t at = 0; found[i] != nullptr && at < record_bytes; at += 64)
          __builtin_prefetch(found[i] + at);
      }
      for (size_t i = 0; i < some.size(); ++i, to += record_bytes) {
        if (found[i] == nullptr) {
          of_->initial[of.table].make(some[i], initial.data());
          found[i] = initial.data();
        }
        std::memcpy(to, found[i], record_bytes);
      }
    }
  }
  return {records, {records.get(), bytes}};
}

Status RowServer::put(Connection from, int rank, const Message& message) {
  int64_t& mark = marks_[static_cast<size_t>(rank)];
  if (message.step > mark || !checks_.repeats) {
    RECMILL_ASSIGN_OR_RETURN(const auto rows, rows_of(message, /*has_records=*/true));
    ++counts_.puts;
    for (const TableRows& of : rows) {
      counts_.put_rows += std::ssize(of.rows);
      of_->versions.put(of, message.step);
    }
    mark = std::max(mark, message.step);
    answer_fetches();
  }
  answer(from, message);
  return {};
}

void RowServer::answer_fetches() {
  const int64_t least = least_mark();
  std::erase_if(waiting_, [&](const Waiting& fetch) {
    if (fetch.fence > least) return false;
    answer(fetch.from, {MessageKind::fetch, fetch.request}, records_of(fetch.rows));
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
  of_->versions.cut(step);
  const std::vector<bool> none(marks_.size(), false);
  images_.push_back({step, none, none});
  return &images_.back();
}

Status RowServer::changed(Connection from, int rank, const Message& message) {
  RECMILL_ASSIGN_OR_RETURN(const auto rows, rows_of(message, /*has_records=*/true));
  RECMILL_ASSIGN_OR_RETURN(Image * image, image_to_cut(message.step));
  if (!image->cut_by[static_cast<size_t>(rank)])  // else it is a repeat
    for (const TableRows& of : rows) of_->versions.change(message.step, of);
  answer(from, message);
  return {};
}

Status RowServer::cut(Connection from, int rank, const Message& message) {
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
  const Image* image = find_image(message.step);
  if (image == nullptr || !image->is_whole())
    return Status::Failed("there is no image of " + step_text(message.step));
  auto table = static_cast<int>(message.detail >> kRowBits);
  int64_t row = message.detail & kRowMask;
  if (message.detail < 0 || table >= std::ssize(of_->shapes))
    return Status::Failed("a cursor beyond all tables");
  Run& of = *of_;
  std::vector<TableRows> tables;
  std::vector<std::byte> records;
  while (table < std::ssize(of.shapes) && records.size() < kReadBytes) {
    if (of.read_table != table || of.read_step != message.step) {
      of.read_rows = of.versions.touched_at(message.step, table);
      of.read_table = table;
      of.read_step = message.step;
    }
    const auto record_bytes = static_cast<size_t>(of.shapes[table].record_bytes);
    const auto first = std::ranges::lower_bound(of.read_rows, row);
    const auto most = static_cast<std::ptrdiff_t>((kReadBytes - records.size()) / record_bytes + 1);
    const auto end = first + std::min(most, of.read_rows.end() - first);
    if (first != end) {
      tables.push_back({table, {first, end}, {}});
      for (auto at = first; at != end; ++at) {
        const std::byte* record = of.versions.find_at(message.step, table, *at);
        records.insert(records.end(), record, record + record_bytes);
      }
    }
    const bool is_over = end == of.read_rows.end();
    row = is_over ? 0 : *end;
    table += is_over ? 1 : 0;
  }
  size_t first_record = 0;
  auto body = write_row_lists(tables, records.size(), first_record);
  std::ranges::copy(records, body.begin() + static_cast<std::ptrdiff_t>(first_record));
  const int64_t next =
      table == std::ssize(of.shapes) ? -1 : (static_cast<int64_t>(table) << kRowBits) + row;
  answer(from, message, std::move(body), message.step, next);
  return {};
}

Status RowServer::release(Connection from, int rank, const Message& message) {
  if (Image* image = find_image(message.step)) {  // else it is a repeat
    if (!image->is_whole())
      return Status::Failed("a release of " + step_text(message.step) + ", which is not cut");
    image->released_by[static_cast<size_t>(rank)] = true;
    if (image->is_released()) {
      of_->versions.drop(message.step);
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
  json["touched_rows"] = of_->versions.touched_rows();
  json["bytes"] = of_->versions.bytes();
  json["image_bytes"] = of_->versions.image_bytes();
  return json.dump();
}

}  // namespace recmill::remote
