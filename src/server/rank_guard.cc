// SPDX-License-Identifier: Apache-2.0
#include "server/rank_guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "server/child_process.h"
#include "server/message_line.h"
#include "server/shared_segments.h"

namespace recmill::server {
namespace {

constexpr int kBeatMilliseconds = 500;
constexpr double kJoinSeconds = 60.0;  // in which a rank joins the others

std::string own_host() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

class RankGuard {
 public:
  RankGuard(const GuardSetting& setting, MessageLine line)
      : setting_(setting), line_(std::move(line)) {}
  ~RankGuard() {
    end_rank();
    for (const std::string& segment : segments_) unlink(segment.c_str());
    for (const int descriptor : {signals_, notes_}) {
      if (descriptor >= 0) ::close(descriptor);
    }
  }

  Status start(const std::vector<std::string>& words);
  void run();

 private:
  bool read_messages();
  void pass_notes();
  bool heed_signals();
  void watch_rank();
  void end_rank();
  void look_for_segments();
  void tell(const char* what, int number) { line_.send({{"what", what}, {"number", number}}); }

  const GuardSetting setting_;
  MessageLine line_;
  int signals_ = -1, notes_ = -1;
  pid_t rank_ = -1;  // -1: has ended
  Stopwatch silence_, since_start_;
  std::vector<std::string> segments_;  // that the rank shares, or shared, with others
};

Status RankGuard::start(const std::vector<std::string>& words) {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&watched, signal);
  sigprocmask(SIG_BLOCK, &watched, nullptr);
  signals_ = signalfd(-1, &watched, SFD_NONBLOCK | SFD_CLOEXEC);
  int notes[2];
  if (signals_ < 0 || pipe(notes) != 0)
    return Status::Failed(std::string("guard: ") + std::strerror(errno));
  notes_ = notes[0];
  fcntl(notes_, F_SETFD, FD_CLOEXEC);
  fcntl(notes_, F_SETFL, O_NONBLOCK);
  const auto rank =
      start_process(words, {.variables = {{setting_.note_variable, std::to_string(notes[1])}},
                            .dies_with_parent = true});
  ::close(notes[1]);
  RECMILL_RETURN_IF_ERROR(rank.status());
  rank_ = *rank;
  line_.send({{"what", "came"},
              {"token", setting_.token},
              {"rank", setting_.rank},
              {"host", own_host()},
              {"process", static_cast<int64_t>(rank_)}});
  return {};
}

void RankGuard::run() {
  Stopwatch beat;
  while (true) {
    pollfd waits[] = {{line_.descriptor(), POLLIN, 0}, {signals_, POLLIN, 0}, {notes_, POLLIN, 0}};
    poll(waits, 3, kBeatMilliseconds / 2);
    if (!heed_signals() || !read_messages()) return;
    pass_notes();
    if (silence_.seconds() > setting_.lease_seconds) return;
    if (beat.seconds() * 1000 < kBeatMilliseconds) continue;
    beat.lap();
    tell("alive", 0);
    look_for_segments();
  }
}

// Whether to go on.
bool RankGuard::read_messages() {
  for (const Json& message : line_.receive()) {
    silence_.lap();
    const std::string what = message.value("what", "");
    if (what == "interrupt" && rank_ > 0) kill(rank_, SIGINT);
    if (what == "leave") return false;
  }
  return line_.open();
}

// A descriptor that has no writer any more would be ready for ever.
void RankGuard::pass_notes() {
  char note = 0;
  ssize_t got = 0;
  while (notes_ >= 0 && (got = read(notes_, &note, 1)) == 1) {
    if (note == static_cast<char>(RankNote::has_begun)) tell("begun", 0);
  }
  if (notes_ >= 0 && got == 0) {
    ::close(notes_);
    notes_ = -1;  // poll() passes over it
  }
}

// Whether to go on: the launcher ends a job by signals.
bool RankGuard::heed_signals() {
  signalfd_siginfo info;
  bool asked_to_end = false;
  while (read(signals_, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo != SIGCHLD) asked_to_end = true;
  }
  watch_rank();
  return !asked_to_end;
}

void RankGuard::watch_rank() {
  int status = 0;
  while (rank_ > 0 && waitpid(rank_, &status, WNOHANG | WUNTRACED | WCONTINUED) == rank_) {
    if (WIFSTOPPED(status)) {
      tell("stopped", WSTOPSIG(status));
    } else if (WIFCONTINUED(status)) {
      tell("continued", 0);
    } else {
      rank_ = -1;
      if (WIFSIGNALED(status)) {
        tell("killed", WTERMSIG(status));
      } else {
        tell("exited", WEXITSTATUS(status));
      }
    }
  }
}

// As long as the rank lives: later nobody can tell.
void RankGuard::look_for_segments() {
  if (rank_ <= 0 || !segments_.empty() || since_start_.seconds() > kJoinSeconds) return;
  segments_ = mpi_shared_segments(rank_);
}

// With all that it has started.
void RankGuard::end_rank() {
  look_for_segments();
  if (rank_ <= 0) return;
  kill(-rank_, SIGKILL);
  kill(rank_, SIGKILL);
  waitpid(rank_, nullptr, 0);
  rank_ = -1;
}

}  // namespace

Status guard_rank(const GuardSetting& setting, const std::vector<std::string>& words) {
  auto line = connect_to(setting.addresses);
  if (!line.ok())
    return line.status().at("rank " + std::to_string(setting.rank) + " on " + own_host() +
                            " cannot reach the supervisor of its job");
  RankGuard guard(setting, *std::move(line));
  RECMILL_RETURN_IF_ERROR(guard.start(words));
  guard.run();
  return {};
}

}  // namespace recmill::server
