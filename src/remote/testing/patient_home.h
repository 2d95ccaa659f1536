// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "remote/remote_home.h"

namespace recmill::remote::testing {

/// Who polls without an answer waits for a moment each time: the contract of homes polls so often,
/// and then takes it that something is waited for.
class PatientHome final : public table::RowHome {
 public:
  PatientHome(const RowClientOptions& options, Transport& transport,
              std::chrono::microseconds moment)
      : home_(options, transport, {}), moment_(moment) {
    const Status begun = home_.wait_until_begun();
    EXPECT_TRUE(begun.ok()) << begun.message();
  }
  Ticket fetch(std::span<const table::FetchedRows> rows, int64_t fence) override {
    return home_.fetch(rows, fence);
  }
  Ticket put(std::span<const table::PutRows> rows, int64_t step) override {
    return home_.put(rows, step);
  }
  Ticket cut(int64_t step, std::span<const table::PutRows> changed) override {
    return home_.cut(step, changed);
  }
  void poll(std::vector<Answer>& answers) override {
    const size_t before = answers.size();
    home_.poll(answers);
    if (answers.size() == before) std::this_thread::sleep_for(moment_);
  }
  void set_wake(std::function<void()> wake) override { home_.set_wake(std::move(wake)); }

 private:
  RemoteHome home_;
  const std::chrono::microseconds moment_;
};

}  // namespace recmill::remote::testing
