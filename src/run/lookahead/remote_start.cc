// SPDX-License-Identifier: Apache-2.0
#include "run/lookahead/remote_start.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/json/json_keys.h"
#include "base/log.h"
#include "remote/flight/flight_library.h"
#include "remote/guest.h"
#include "remote/remote_home.h"
#include "remote/secret.h"
#include "run/checkpoint/restore_checkpoint.h"
#include "run/checkpoint/saved_state.h"
#include "run/lookahead/row_commits.h"

namespace recmill::train {
namespace {

using remote::MessageKind;
using remote::RemoteHome;

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
    Beginning at{run_.home_run.empty() ? new_home_run(run_) : run_.home_run};
    if (run_.home_run.empty()) return at;
    bool all_have_it = true;
    for (const std::string& server : servers()) {
      RECMILL_ASSIGN_OR_RETURN(const auto answer, ask(server, {MessageKind::status}));
      const Json status = Json::parse(answer.body.text(), nullptr, /*allow_exceptions=*/false);
      std::string there;
      int64_t term = 0;
      KeyReader read{status, "status", "", {}};
      if (status.is_object()) read("run", there);
      const bool has_it = read.status.ok() && there == at.run;
      if (has_it) read("term", term);
      if (!has_it)
        log_info("server " + server +
                 " no longer has rows of this run, which goes on from the newest checkpoint");
      all_have_it &= has_it;
      if (has_it) at.term = std::max(at.term, term + 1);
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

}  // namespace

Result<store::CacheHomeRows> start_at_servers(const ResolvedRun& run, Communicator& communicator,
                                              Files& files, HomeStart& start) {
  const LookaheadOptions& of = run.options.lookahead;
  remote::StreamSecurity security;
  RECMILL_ASSIGN_OR_RETURN(security.token,
                           remote::read_secret("lookahead.token_file", of.token_file, files));
  RECMILL_ASSIGN_OR_RETURN(security.tls_roots,
                           remote::read_pem("lookahead.tls_ca", of.tls_ca, "CERTIFICATE", files));
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

}  // namespace recmill::train
