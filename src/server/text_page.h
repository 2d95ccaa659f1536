// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/status.h"

namespace recmill::server {

/// One page of plain text over HTTP, for those who watch a process. Asked one after the other; who
/// is slow to ask is given up.
class TextPage {
 public:
  /// Listens at HOST:PORT, an IPv4 address, or port 0 for any that is free; `text` is called on a
  /// thread of the page, and outlives it.
  static Result<std::unique_ptr<TextPage>> open(const std::string& address,
                                                std::function<std::string()> text);
  ~TextPage();
  TextPage(const TextPage&) = delete;

  int port() const { return port_; }

 private:
  TextPage(int descriptor, int port, std::function<std::string()> text);
  void run();
  void answer(int descriptor) const;

  const int descriptor_;
  const int port_;
  const std::function<std::string()> text_;
  std::atomic<bool> stop_{false};
  std::thread thread_;  // last
};

}  // namespace recmill::server
