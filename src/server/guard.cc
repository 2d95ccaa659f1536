// SPDX-License-Identifier: Apache-2.0
#include "server/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/json/json.h"
#include "server/child_process.h"
#include "server/message_line.h"
#include "server/shared_segments.h"

namespace recmill::server {
namespace {

constexpr int kBeatMilliseconds = 500, kEndMilliseconds = 10;
constexpr size_t kLongestNote = 4096;  // bytes
constexpr double kJoinSeconds = 60.0;  // in which a rank joins the others

std::string own_host() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

class Guard {
 public:
  Guard(const GuardSetting& setting, MessageLine line)
      : setting_(setting), line_(std::move(line)) {}
  ~Guard() {
    end();
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
  void watch();
  void pass_note(const std::string& note);
  void end();
  bool ends_in_time();
  void look_for_segments();
  void tell(const char* what, int number) { line_.send({{"what", what}, {"number", number}}); }

  const GuardSetting setting_;
  MessageLine line_;
  int signals_ = -1, notes_ = -1;
  std::string noted_;   // of which the end of the line is still to come
  pid_t process_ = -1;  // -1: has ended
  bool is_stopped_ = false;
  Stopwatch silence_, since_start_;
  std::vector<std::string> segments_;  // that a rank shares, or shared, with others
};

Status Guard::start(const std::vector<std::string>& words) {
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
  adopt_orphans();  // of the process
  const auto process =
      start_process(words, {.variables = {{setting_.note_variable, std::to_string(notes[1])}},
                            .dies_with_parent = true});
  ::close(notes[1]);
  RECMILL_RETURN_IF_ERROR(process.status());
  process_ = *process;
  line_.send({{"what", "came"},
              {"token", setting_.token},
              {"index", setting_.index},
              {"host", own_host()},
              {"process", static_cast<int64_t>(process_)}});
  return {};
}

void Guard::run() {
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
bool Guard::read_messages() {
  for (const Json& message : line_.receive()) {
    silence_.lap();
    const std::string what = message.value("what", "");
    if (what == "interrupt" && process_ > 0) kill(process_, SIGINT);
    if (what == "leave") return false;
  }
  return line_.open();
}

// A descriptor that has no writer any more would be ready for ever.
void Guard::pass_notes() {
  char piece[256];
  ssize_t got = 0;
  while (notes_ >= 0 && (got = read(notes_, piece, sizeof(piece))) > 0) noted_.append(piece, got);
  for (size_t end = 0; (end = noted_.find('\n')) != std::string::npos; noted_.erase(0, end + 1))
    pass_note(noted_.substr(0, end));
  if (noted_.size() > kLongestNote) noted_.clear();
  if (notes_ >= 0 && got == 0) {
    ::close(notes_);
    notes_ = -1;  // poll() passes over it
  }
}

void Guard::pass_note(const std::string& note) {
  constexpr std::string_view kAddress = "address ";
  if (note + "\n" == kBegunNote) tell("begun", 0);
  if (note.starts_with(kAddress))
    line_.send({{"what", "address"}, {"address", note.substr(kAddress.size())}});
}

// Whether to go on: the launcher ends a job by signals.
bool Guard::heed_signals() {
  signalfd_siginfo info;
  bool asked_to_end = false;
  while (read(signals_, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo != SIGCHLD) asked_to_end = true;
  }
  watch();
  return !asked_to_end;
}

void Guard::watch() {
  int status = 0;
  for (pid_t changed = 0; (changed = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0;) {
    if (changed != process_) continue;
    is_stopped_ = WIFSTOPPED(status);
    if (is_stopped_) {
      tell("stopped", WSTOPSIG(status));
    } else if (WIFCONTINUED(status)) {
      tell("continued", 0);
    } else {
      process_ = -1;
      pass_notes();
      if (WIFSIGNALED(status)) {
        tell("killed", WTERMSIG(status));
      } else {
        tell("exited", WEXITSTATUS(status));
      }
    }
  }
}

// As long as the rank lives: later nobody can tell.
void Guard::look_for_segments() {
  if (process_ <= 0 || !segments_.empty() || since_start_.seconds() > kJoinSeconds) return;
  segments_ = mpi_shared_segments(process_);
}

// With all that it has started.
void Guard::end() {
  look_for_segments();
  if (process_ > 0 && !ends_in_time()) {
    kill(-process_, SIGKILL);
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  process_ = -1;
  for (const pid_t left : descendants()) kill(left, SIGKILL);
}

/// Of its own accord, when asked to, which one that is stopped does not hear.
bool Guard::ends_in_time() {
  if (setting_.grace_seconds <= 0 || is_stopped_) return false;
  kill(process_, SIGTERM);
  const Stopwatch asked;
  while (asked.seconds() < setting_.grace_seconds) {
    if (waitpid(process_, nullptr, WNOHANG) == process_) return true;
    poll(nullptr, 0, kEndMilliseconds);
  }
  return false;
}

}  // namespace

Status guard_process(const GuardSetting& setting, const std::vector<std::string>& words) {
  auto line = connect_to(setting.addresses);
  if (!line.ok())
    return line.status().at(setting.role + " " + std::to_string(setting.index) + " on " +
                            own_host() + " cannot reach the supervisor of its job");
  Guard guard(setting, *std::move(line));
  RECMILL_RETURN_IF_ERROR(guard.start(words));
  guard.run();
  return {};
}

}  // namespace recmill::server
