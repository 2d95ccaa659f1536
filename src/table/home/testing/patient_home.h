// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "table/home/row_home.h"

namespace recmill::table::testing {

/// Who polls without an answer waits for a moment each time: the contract of homes polls so often,
/// and then takes it that something is waited for.
class PatientHome final : public RowHome {
 public:
  /// `inner` outlives it.
  PatientHome(RowHome& inner, std::chrono::microseconds moment) : inner_(inner), moment_(moment) {}

  Ticket fetch(std::span<const FetchedRows> rows, int64_t fence) override {
    return inner_.fetch(rows, fence);
  }
  Ticket put(std::span<const PutRows> rows, int64_t step) override {
    return inner_.put(rows, step);
  }
  Ticket cut(int64_t step, std::span<const PutRows> changed) override {
    return inner_.cut(step, changed);
  }
  void poll(std::vector<Answer>& answers) override {
    const size_t before = answers.size();
    inner_.poll(answers);
    if (answers.size() == before) std::this_thread::sleep_for(moment_);
  }
  void set_wake(std::function<void()> wake) override { inner_.set_wake(std::move(wake)); }

 private:
  RowHome& inner_;
  const std::chrono::microseconds moment_;
};

}  // namespace recmill::table::testing
