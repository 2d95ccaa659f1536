// SPDX-License-Identifier: Apache-2.0
#include "bench/rival.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/json/json.h"

namespace recmill::bench {
namespace {

constexpr double kPatienceAtEnd_s = 10;  // what a GPU holds may take its time to be given back

}  // namespace

Result<Rival> Rival::start(const std::string& python, const std::vector<std::string>& arguments) {
  Rival rival;
  rival.script_ = arguments.at(0);
  if (access(python.c_str(), X_OK) != 0)
    return Status::BadRequest("no rivals: run 'make rivals' first: " + python);
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
    return Status::Failed(std::string("cannot make a pipe: ") + std::strerror(errno));
  std::vector<char*> argv{const_cast<char*>(python.c_str())};
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  rival.pid_ = fork();
  if (rival.pid_ == 0) {
    dup2(to[0], 0);
    dup2(from[1], 1);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  if (rival.pid_ < 0) return Status::Failed("cannot start " + python);
  rival.to_ = fdopen(to[1], "w");
  rival.from_ = fdopen(from[0], "r");
  signal(SIGPIPE, SIG_IGN);  // a rival that died is an answer that does not come
  return rival;
}

Rival::~Rival() {
  stop();
}

Rival::Rival(Rival&& other) noexcept {
  *this = std::move(other);
}

Rival& Rival::operator=(Rival&& other) noexcept {
  if (this != &other) {
    stop();
    script_ = std::move(other.script_);
    pid_ = std::exchange(other.pid_, -1);
    to_ = std::exchange(other.to_, nullptr);
    from_ = std::exchange(other.from_, nullptr);
  }
  return *this;
}

void Rival::stop() {
  if (to_ != nullptr) fclose(std::exchange(to_, nullptr));  // the script ends at the end of input
  if (from_ != nullptr) fclose(std::exchange(from_, nullptr));
  const pid_t pid = std::exchange(pid_, -1);
  if (pid <= 0) return;
  const Stopwatch watch;
  while (waitpid(pid, nullptr, WNOHANG) == 0) {
    if (watch.seconds() > kPatienceAtEnd_s) kill(pid, SIGKILL);
    usleep(10'000);
  }
}

Result<Json> Rival::ask(const Json& request, std::optional<int> limit_s) {
  const std::string line = request.dump() + "\n";
  if (fwrite(line.data(), 1, line.size(), to_) != line.size() || fflush(to_) != 0)
    return Status::Failed("rival has ended: " + script_);
  pollfd answers{fileno(from_), POLLIN, 0};
  if (limit_s.has_value() && poll(&answers, 1, *limit_s * 1000) == 0) {
    kill(pid_, SIGKILL);
    return Status::Failed("rival gave no answer in " + std::to_string(*limit_s) + " s: " + script_);
  }
  char* answer = nullptr;
  size_t capacity = 0;
  const ssize_t length = getline(&answer, &capacity, from_);
  const std::string text(answer != nullptr && length > 0 ? answer : "",
                         length > 0 ? static_cast<size_t>(length) : 0);
  free(answer);
  const Json parsed = Json::parse(text, nullptr, false);
  if (parsed.is_discarded()) return Status::Failed("rival gave no answer: " + script_);
  if (parsed.contains("error"))
    return Status::Failed("rival: " + parsed["error"].dump() + ": " + script_);
  return parsed;
}

}  // namespace recmill::bench
