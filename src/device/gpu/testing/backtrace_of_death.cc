// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program (LD_PRELOAD), writes to the file RECMILL_BACKTRACE where a signal ended
// it: the frames of the thread, each with its library and its place there. It needs no debugger,
// which may not be there or not be let near a process.
#include <execinfo.h>
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <initializer_list>

namespace {

constexpr int kMostFrames = 64;
const char* file = nullptr;

// The signal then ends the program as it would have.
void write_frames(int) {
  void* frames[kMostFrames];
  const int count = backtrace(frames, kMostFrames);
  const int to = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  backtrace_symbols_fd(frames, count, to);
  close(to);
}

[[gnu::constructor]] void listen() {
  file = std::getenv("RECMILL_BACKTRACE");
  if (file == nullptr) return;
  void* frame = nullptr;
  backtrace(&frame, 1);  // loads what it needs, which a handler must not do
  struct sigaction action = {};
  action.sa_handler = &write_frames;
  action.sa_flags = SA_RESETHAND;
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    sigaction(number, &action, nullptr);
}

}  // namespace
