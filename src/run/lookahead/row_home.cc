// SPDX-License-Identifier: Apache-2.0
#include "run/lookahead/row_home.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/log.h"
#include "base/split_mix.h"
#include "comm/gather_values.h"
#include "disk/disk_home.h"
#include "disk/rocksdb/rocksdb_library.h"
#include "remote/flight/flight_library.h"
#include "remote/guest.h"
#include "remote/remote_home.h"
#include "remote/secret.h"
#include "run/checkpoint/restore_checkpoint.h"
#include "run/checkpoint/saved_state.h"
#include "run/lookahead/row_commits.h"
#include "run/lookahead/run_cache.h"
#include "store/cached/ranks/home_ranks.h"
#include "store/tables/table_rows.h"
#include "table/home/embedded_home.h"
#include "table/row_record.h"

namespace recmill::train {
namespace {

constexpr int64_t kKeyBytes = 12;  // of a row on a disk

using remote::MessageKind;
using remote::RemoteHome;

/// What rank 0 says to all.
Result<std::string> text_of_rank_0(const std::string& own, Communicator& communicator) {
  RECMILL_ASSIGN_OR_RETURN(const Received received,
                           communicator.all_gather(std::as_bytes(std::span(own))));
  const auto bytes = received.from(0);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

/// Another one for each start: servers take no other run while this one is connected.
std::string new_run(const ResolvedRun& run) {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const auto number =
      split_mix(static_cast<uint64_t>(now) ^ split_mix(static_cast<uint64_t>(getpid())));
  return fmt::format("{}-{:012x}", run.options.name, number >> 16);
}

/// Where a start of the run begins: what rank 0 finds at the servers and tells all.
struct Beginning {
  std::string run;
  int64_t term = 1;
  int64_t step = table::RowHome::kNoFence;
  bool fresh = true;

  std::string text() const {
    return Json{{"run", run}, {"term", term}, {"step", step}, {"fresh", fresh}}.dump();
  }
  static Beginning of(const std::string& text) {
    const Json json = Json::parse(text);
    return {json["run"], json["term"], json["step"], json["fresh"]};
  }
};

/// Connects this rank of a run to its servers.
class Connecting {
 public:
  Connecting(const ResolvedRun& run, Communicator& communicator, remote::Transport& transport,
             remote::StreamSecurity security)
      : run_(run),
        communicator_(communicator),
        transport_(transport),
        security_(std::move(security)) {}

  Result<std::shared_ptr<RemoteHome>> connect(Beginning& at) const {
    if (communicator_.rank() > 0) return connect_to(at);
    RECMILL_ASSIGN_OR_RETURN(at, find());
    auto home = connect_to(at);
    if (home.ok() || at.fresh) return home;
    log_warning(kCommit + std::string(" cannot be gone on from: ") + home.status().message());
    at.step = table::RowHome::kNoFence;
    at.fresh = true;
    ++at.term;
    return connect_to(at);
  }

 private:
  const std::vector<std::string>& servers() const { return run_.options.lookahead.servers; }

  /// The last commit of an earlier start, where all servers still have that run and no checkpoint
  /// is newer.
  Result<Beginning> find() const {
    Beginning at{run_.home_run.empty() ? new_run(run_) : run_.home_run};
    if (run_.home_run.empty()) return at;
    bool all_have_it = true;
    for (const std::string& server : servers()) {
      RECMILL_ASSIGN_OR_RETURN(const auto answer, ask(server, {MessageKind::status}));
      const Json status = Json::parse(answer.body.text(), nullptr, /*allow_exceptions=*/false);
      const bool has_it = status.is_object() && status.value("run", "") == at.run;
      if (!has_it)
        log_info("server " + server +
                 " no longer has rows of this run, which goes on from the newest checkpoint");
      all_have_it &= has_it;
      if (has_it) at.term = std::max(at.term, status.value("term", int64_t{0}) + 1);
    }
    if (!all_have_it) return at;
    RECMILL_ASSIGN_OR_RETURN(const auto recorded, ask(servers()[0], {MessageKind::recorded}));
    if (recorded.step < 0) return at;
    RECMILL_ASSIGN_OR_RETURN(const auto state, PackedState::open(recorded.body.view(), kCommit));
    RECMILL_RETURN_IF_ERROR(check_origin(run_, *state.reader, /*for_training=*/true));
    if (state.reader->step() < run_.newest_checkpoint) return at;
    at.step = recorded.step;
    at.fresh = false;
    return at;
  }

  /// A server may have only just been started.
  Result<remote::Message> ask(const std::string& server, const remote::Message& question) const {
    const double deadline = run_.options.lookahead.deadline;
    const Stopwatch watch;
    while (true) {
      auto answer = remote::ask_as_guest(server, question, transport_, security_, deadline);
      if (answer.ok() || watch.seconds() >= deadline ||
          answer.status().code() == Status::Code::bad_request) {
        if (!answer.ok()) return answer.status().at("lookahead.servers");
        return answer;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  Result<std::shared_ptr<RemoteHome>> connect_to(const Beginning& at) const {
    remote::RowClientOptions options;
    options.greeting.run = at.run;
    options.greeting.term = at.term;
    options.greeting.fresh = at.fresh;
    options.begin = at.step;
    options.greeting.ranks = communicator_.ranks();
    options.greeting.servers = static_cast<int>(servers().size());
    options.greeting.deadline = run_.options.lookahead.deadline;
    options.greeting.seed = static_cast<uint64_t>(run_.options.train.seed);
    options.greeting.tables = run_.spec.tables;
    options.rank = options.image_share = communicator_.rank();
    options.image_shares = communicator_.ranks();
    options.addresses = servers();
    auto home = std::make_shared<RemoteHome>(options, transport_, security_);
    RECMILL_RETURN_IF_ERROR(home->wait_until_begun().at("lookahead.servers"));
    return home;
  }

  const ResolvedRun& run_;
  Communicator& communicator_;
  remote::Transport& transport_;
  const remote::StreamSecurity security_;
};

Result<store::CacheHomeRows> make_remote_home(const ResolvedRun& run, Communicator& communicator,
                                              Files& files, HomeStart& start) {
  const LookaheadOptions& of = run.options.lookahead;
  remote::StreamSecurity security;
  RECMILL_ASSIGN_OR_RETURN(security.token,
                           remote::read_secret("lookahead.token_file", of.token_file, files));
  RECMILL_ASSIGN_OR_RETURN(security.tls_roots,
                           remote::read_secret("lookahead.tls_ca", of.tls_ca, files));
  security.tls = !of.tls_ca.empty();
  RECMILL_ASSIGN_OR_RETURN(remote::Transport * transport, remote::flight_transport());
  const Connecting connecting(run, communicator, *transport, std::move(security));
  // Rank 0 opens the run at all servers before the others greet.
  Beginning at;
  Result<std::shared_ptr<RemoteHome>> home = std::shared_ptr<RemoteHome>();
  if (communicator.rank() == 0) home = connecting.connect(at);
  const bool is_bad = home.status().code() == Status::Code::bad_request;
  const std::string said =
      home.ok() ? "+" + at.text() : (is_bad ? "!" : "-") + home.status().message();
  RECMILL_ASSIGN_OR_RETURN(const std::string heard, text_of_rank_0(said, communicator));
  if (heard[0] == '!') return Status::BadRequest(heard.substr(1));
  if (heard[0] == '-') return Status::Failed(heard.substr(1));
  at = Beginning::of(heard.substr(1));
  if (communicator.rank() > 0) home = connecting.connect(at);
  if (!home.ok()) return home.status();
  start.run = at.run;
  start.home = *home;
  if (!at.fresh) {
    start.image = (*home)->image_of_begin();
    RECMILL_ASSIGN_OR_RETURN(const auto recorded, (*home)->ask(0, {MessageKind::recorded}));
    const auto bytes = recorded.body.view();
    start.record.assign(bytes.begin(), bytes.end());
  }
  store::CacheHomeRows rows(*std::move(home));
  rows.begin = at.step;
  rows.is_shared = true;
  return rows;
}

/// Whether all ranks are well; else why not, on each of them.
Status all_well(const Status& own, Communicator& communicator) {
  const std::string said = own.code() == Status::Code::bad_request ? "!" + own.message()
                           : own.ok()                              ? ""
                                                                   : "-" + own.message();
  RECMILL_ASSIGN_OR_RETURN(const Received received,
                           communicator.all_gather(std::as_bytes(std::span(said))));
  for (int rank = 0; rank < communicator.ranks(); ++rank) {
    const auto bytes = received.from(rank);
    if (bytes.empty()) continue;
    const std::string why(reinterpret_cast<const char*>(bytes.data()) + 1, bytes.size() - 1);
    return bytes[0] == std::byte{'!'} ? Status::BadRequest(why) : Status::Failed(why);
  }
  return {};
}

/// What rank 0 finds recorded on its disk, where no checkpoint is newer.
Result<std::optional<disk::DiskHome::Recorded>> find_on_disk(const ResolvedRun& run,
                                                             const disk::DiskHome& home) {
  RECMILL_ASSIGN_OR_RETURN(auto recorded, home.recorded());
  if (!recorded) return recorded;
  RECMILL_ASSIGN_OR_RETURN(const auto state,
                           PackedState::open(std::as_bytes(std::span(recorded->bytes)), kCommit));
  RECMILL_RETURN_IF_ERROR(check_origin(run, *state.reader, /*for_training=*/true));
  if (state.reader->step() < run.newest_checkpoint) recorded.reset();
  return recorded;
}

/// A line of what the rows of this rank may take.
std::string disk_line(const ResolvedRun& run, const std::string& path, int ranks) {
  double bytes = 0.0;
  for (const TableSpec& table : run.spec.tables)
    bytes += static_cast<double>(table.rows) *
             static_cast<double>(table::RowRecord(table).bytes() + kKeyBytes);
  return fmt::format(
      "rows on a disk: {:.0f} MiB{} in {} when all of them have been changed, and "
      "as much again for what changes between two commits",
      bytes / ranks / (1 << 20), ranks > 1 ? " at each rank" : "", path);
}

Result<store::CacheHomeRows> make_disk_home(const ResolvedRun& run, Communicator& communicator,
                                            HomeStart& start) {
  const LookaheadOptions& of = run.options.lookahead;
  const int rank = communicator.rank(), ranks = communicator.ranks();
  RECMILL_ASSIGN_OR_RETURN(
      start.run, text_of_rank_0(run.home_run.empty() ? new_run(run) : run.home_run, communicator));
  // Rows that are not kept are apart from those of training.
  const std::string path =
      of.disk_path + "/" + (run.keeps_rows ? "" : start.run + "-") + "rank-" + std::to_string(rank);
  const auto open = [&]() -> Result<std::shared_ptr<disk::DiskHome>> {
    RECMILL_ASSIGN_OR_RETURN(disk::RowDatabases * databases, disk::rocksdb_databases());
    RECMILL_RETURN_IF_ERROR(
        posix_files().make_folder(of.disk_path));  // RocksDB knows no other disk
    RECMILL_ASSIGN_OR_RETURN(auto database, databases->open(path, of.disk_memory, run.keeps_rows));
    return disk::DiskHome::open(std::move(database), path,
                                {start.run, run.options.name, rank, ranks,
                                 static_cast<uint64_t>(run.options.train.seed), run.spec.tables});
  };
  const auto home = open();
  RECMILL_RETURN_IF_ERROR(all_well(home.status().at("lookahead.disk_path"), communicator));
  std::optional<disk::DiskHome::Recorded> recorded;
  Status found;
  if (rank == 0) {
    auto of_rank_0 = find_on_disk(run, **home);
    found = of_rank_0.status();
    if (of_rank_0.ok()) recorded = *std::move(of_rank_0);
    log_info(disk_line(run, of.disk_path, ranks));
  }
  RECMILL_RETURN_IF_ERROR(all_well(found, communicator));
  RECMILL_ASSIGN_OR_RETURN(
      const std::string step,
      text_of_rank_0(recorded ? std::to_string(recorded->step) : "", communicator));
  const int64_t wanted = step.empty() ? table::RowHome::kNoFence : std::stoll(step);
  const bool has_it = !step.empty() && std::ranges::count((*home)->steps(), wanted) > 0;
  RECMILL_ASSIGN_OR_RETURN(const auto have_it, gather_values(int64_t{has_it}, communicator));
  const bool goes_on = std::ranges::count(have_it, 0) == 0;
  auto image = (*home)->begin(goes_on ? std::optional(wanted) : std::nullopt);
  RECMILL_RETURN_IF_ERROR(all_well(image.status().at("lookahead.disk_path"), communicator));
  start.image = *std::move(image);
  start.is_apart = true;
  start.home = *home;
  store::CacheHomeRows rows(*home);
  if (goes_on) {
    RECMILL_ASSIGN_OR_RETURN(const std::string bytes,
                             text_of_rank_0(recorded ? recorded->bytes : "", communicator));
    const auto view = std::as_bytes(std::span(bytes));
    start.record.assign(view.begin(), view.end());
    rows.begin = wanted;
  }
  return rows;
}

}  // namespace

Result<store::CacheHomeRows> make_row_home(const ResolvedRun& run, Communicator& communicator,
                                           ThreadPool& pool, Files& files, HomeStart& start) {
  if (has_servers(run)) return make_remote_home(run, communicator, files, start);
  if (has_rows_elsewhere(run)) return make_disk_home(run, communicator, start);
  const store::HomeRanks homes(run.spec, communicator.ranks());
  RECMILL_ASSIGN_OR_RETURN(
      auto tables, store::create_tables(run.spec, static_cast<uint64_t>(run.options.train.seed),
                                        homes.shares(communicator.rank()), pool));
  return store::CacheHomeRows(table::make_embedded_home(std::move(tables), pool));
}

}  // namespace recmill::train
