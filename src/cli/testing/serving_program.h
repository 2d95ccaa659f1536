// SPDX-License-Identifier: Apache-2.0
// The program, and embedding servers that it may use. They are asked to end after the test.
#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/testing/program.h"

namespace recmill::cli {

using Words = std::vector<std::string>;

inline void sleep_milliseconds(int64_t milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

inline std::string in_quotes(const std::string& address) {
  return '"' + address + '"';
}

class ServingProgram : public Program {
 protected:
  void TearDown() override { end_servers(); }

  /// Each has to end well.
  void end_servers() {
    for (const pid_t server : servers_) {
      kill(server, SIGTERM);
      kill(server, SIGCONT);
      int status = 0;
      waitpid(server, &status, 0);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    servers_.clear();
  }

  /// Starts a server, and returns its address. What it says is in the file serverN.
  std::string serve(const Words& options = {}) {
    Words words{"server", "embedding"};
    words.insert(words.end(), options.begin(), options.end());
    const std::string name = "server" + std::to_string(served_++), said = path(name);
    std::string out = std::exchange(out_, name + ".out"), err = std::exchange(err_, name);
    Words launcher = std::exchange(launcher_, {});
    servers_.push_back(start(words));
    out_ = std::move(out);
    err_ = std::move(err);
    launcher_ = std::move(launcher);
    const std::string before = "embedding server at ";
    for (int look = 0; look < 2000; ++look) {
      if (const auto text = read_text(posix_files(), said); text.ok())
        if (const size_t at = text->find(before); at != std::string::npos)
          if (const size_t end = text->find_first_of(",\n", at); end != std::string::npos)
            return text->substr(at + before.size(), end - at - before.size());
      sleep_milliseconds(5);
    }
    ADD_FAILURE() << "no server";
    return "";
  }

  std::vector<pid_t> servers_;
  int served_ = 0;  // servers that have been started
};

}  // namespace recmill::cli
